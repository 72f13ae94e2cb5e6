//! The command line: arguments, help and exit codes. Each command has its own file.
//!
//! Data goes to standard output, messages to standard error. The lower layers do the work.

mod accounts;
mod cache;
mod check;
mod command_error;
mod command_line;
mod config_watch;
mod control;
mod demo;
mod exit;
mod explain;
mod group_args;
mod health;
mod input_file;
mod input_lines;
mod keys;
mod location_args;
mod nodes;
mod output_file;
mod printer;
mod reload;
mod scoring;
mod serve;
mod status;
mod store;
mod suspects;
mod top;
mod usage;
mod version;

pub use command_line::main;
pub use exit::Exit;
