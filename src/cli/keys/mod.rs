//! `scoregate keys`: manages applications and their keys.

mod csv;
mod export;
mod import;
mod keys_command;
mod scan;
mod show;
mod shown_usage;

pub use keys_command::{AFTER_HELP, KeysArgs, run};
