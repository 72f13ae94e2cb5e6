//! The command line, files of settings and secrets, and the commands in the documentation.

mod audit_users;
pub mod cli_accounts;
mod cli_contact;
mod cli_demo;
mod cli_explain;
mod cli_health;
mod cli_keys;
mod cli_messages;
mod cli_store;
mod cli_top;
mod documented_commands;
mod keys_import;
mod keys_scan;
mod private_files;
mod sample_config;
mod secret_files;
