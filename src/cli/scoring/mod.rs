//! `scoregate scoring`: imports, exports and deletes runs, lists incidents, manages the suite table, and serves the
//! built-in backend without a gateway.

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

pub use scoring_command::{AFTER_HELP, ScoringArgs, run};
