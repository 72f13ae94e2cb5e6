//! `scoregate scoring`: import, export and change of runs, incidents, the suite table, and the built-in backend without a gateway.

mod archive_place;
mod audit;
mod change;
mod equal_messages;
mod export;
mod import;
mod import_counts;
mod incidents;
mod reader_thread;
mod scoring_command;
mod serve;
mod suites;
mod tool_logs;

pub(super) use scoring_command::{AFTER_HELP, ScoringArgs, run};
