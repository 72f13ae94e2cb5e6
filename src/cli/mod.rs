//! The command line: what can be said, and what comes of it. One file a command, one printer, one exit type.
//!
//! Standard output is data, standard error is talk. Not for: doing the work, which lies in the layers below.

mod cache;
mod check;
mod control;
mod demo;
mod exit;
mod health;
mod input_lines;
mod keys;
mod printer;
mod reload;
mod scoring;
mod serve;
mod store;
mod top;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, Parser, Subcommand};

pub use exit::Exit;

const AFTER_HELP: &str = "Try it:\n  scoregate demo\n\nRun it:\n  scoregate check --sample > scoregate.toml\n  \
echo 'upstream = \"built-in\"' >> scoregate.toml\n  \
scoregate check --config scoregate.toml\n  scoregate serve --config scoregate.toml\n\n\
Exit codes: 0 done, 1 something in your input, 2 our fault.";

/// The front door of a public data API for AI-model benchmarks: a read-through caching API gateway.
#[derive(Debug, Parser)]
#[command(name = "scoregate", version, propagate_version = true, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Run everything at once with made-up data: the gateway, its built-in backend, and a key for each tier.
    #[command(
        after_help = "Examples:\n  scoregate demo\n  scoregate demo --data-dir demo-data --listen 127.0.0.1:8081\n\n\
        Prints a key for each tier and a curl to paste, once everything is up. Stop it with Ctrl-C.\n\
        Without --data-dir its state lies in a temporary directory that is removed at the end."
    )]
    Demo {
        #[command(flatten)]
        place: LocationArgs,
        /// Which made-up data: the same seed gives the same.
        #[arg(long, value_name = "NUMBER", default_value_t = 42)]
        seed: u64,
    },
    /// Run the gateway by a configuration: the production form.
    #[command(after_help = "Example:\n  scoregate serve --config scoregate.toml\n\n\
        Stops on SIGTERM or Ctrl-C: open requests are finished, leased quota is given back. SIGHUP reads the\n\
        settings again, as `scoregate reload` does.\n\
        Every setting can be said by the environment too; `scoregate check --sample` shows them all.")]
    Serve {
        /// The configuration file.
        #[arg(long, env = "SCOREGATE_CONFIG")]
        config: Option<PathBuf>,
        #[command(flatten)]
        place: LocationArgs,
    },
    /// Name everything that is wrong with a configuration, at once.
    #[command(after_help = "Examples:\n  scoregate check --sample > scoregate.toml\n  \
        scoregate check --config scoregate.toml\n\n\
        Prints nothing if nothing is wrong. The environment is checked too, as `serve` would use it.\n\
        The sample is all comments: append your settings to it, the backend at least.")]
    Check {
        /// The configuration file.
        #[arg(long, env = "SCOREGATE_CONFIG", required_unless_present = "sample")]
        config: Option<PathBuf>,
        /// Print a sample configuration with every setting in place of checking one.
        #[arg(long)]
        sample: bool,
    },
    /// Create, list and change applications and their keys, on a running server or a stopped one.
    #[command(after_help = keys::AFTER_HELP)]
    Keys(keys::KeysArgs),
    /// Check, back up, export and import the store of keys and quotas.
    #[command(after_help = store::AFTER_HELP)]
    Store(store::StoreArgs),
    /// Bring benchmark runs to the built-in backend, or run it by itself.
    #[command(after_help = scoring::AFTER_HELP)]
    Scoring(scoring::ScoringArgs),
    /// List and purge the documents that a running server has.
    #[command(after_help = cache::AFTER_HELP)]
    Cache(cache::CacheArgs),
    /// Have a running server read its settings and certificates again.
    #[command(after_help = reload::AFTER_HELP)]
    Reload(reload::ReloadArgs),
    /// Watch a running server: rates, latency, the backend, and who asks most.
    #[command(after_help = top::AFTER_HELP)]
    Top(top::TopArgs),
    /// Say by the exit code whether a server is ready.
    #[command(after_help = health::AFTER_HELP)]
    Health(health::HealthArgs),
    /// Print completions for a shell.
    #[command(after_help = "Example:\n  scoregate completions bash > /etc/bash_completion.d/scoregate")]
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

/// Where it runs. Each wins over the configuration file.
#[derive(Clone, Debug, Default, Args)]
struct LocationArgs {
    /// Where the public port listens, such as 127.0.0.1:8080.
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Where the side port (metrics, health) listens, such as 127.0.0.1:9464.
    #[arg(long, value_name = "ADDR")]
    admin_listen: Option<SocketAddr>,
    /// Where keys and quotas are kept.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Reads the command line and does what it says.
pub fn main() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(told) => {
            use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
            let printed = told.print();
            let is_fine = matches!(told.kind(), DisplayHelp | DisplayVersion);
            return if is_fine && printed.is_ok() { Exit::Done } else { Exit::Input };
        }
    };
    match cli.command {
        CliCommand::Demo { place, seed } => demo::run(&place, seed),
        CliCommand::Serve { config, place } => serve::run(config.as_deref(), &place),
        CliCommand::Check { config, sample } => check::run(config.as_deref(), sample),
        CliCommand::Keys(args) => keys::run(args),
        CliCommand::Store(args) => store::run(&args),
        CliCommand::Scoring(args) => scoring::run(args),
        CliCommand::Cache(args) => cache::run(args),
        CliCommand::Reload(args) => reload::run(&args),
        CliCommand::Top(args) => top::run(&args),
        CliCommand::Health(args) => health::run(&args),
        CliCommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "scoregate", &mut script);
            printer::data(&String::from_utf8_lossy(&script))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
