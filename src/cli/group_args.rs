//! Arguments that commands have in common.

use clap::{Args, Subcommand};

use super::serve::ServerArgs;

/// A command of a group, its server and its output.
#[derive(Debug, Args)]
pub(super) struct GroupArgs<C: Subcommand> {
    #[command(subcommand)]
    pub(super) command: C,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    pub(super) json: bool,
}

/// The server and the output of a command.
#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// Print JSON instead of text.
    #[arg(long)]
    pub(super) json: bool,
}
