//! `scoregate scoring`: import, export and deletion of runs, incidents, the suite table, and the built-in backend without a gateway.

mod archive_place;
mod delete;
mod equal_messages;
mod export;
mod import;
mod incidents;
mod run_file;
mod scoring_command;
mod serve;
mod suites;
mod tool_logs;

pub(super) use scoring_command::{AFTER_HELP, ScoringArgs, run};
