//! Arguments that commands have in common.

use clap::{Args, Subcommand};

use super::serve::ServerArgs;

/// A command of a group, its server and its output.
#[derive(Debug, Args)]
pub struct GroupArgs<C: Subcommand> {
    #[command(subcommand)]
    pub command: C,
    #[command(flatten)]
    pub server: ServerArgs,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    pub json: bool,
}

/// The server and the output of a command.
#[derive(Debug, Args)]
pub struct OutputArgs {
    #[command(flatten)]
    pub server: ServerArgs,
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
}
