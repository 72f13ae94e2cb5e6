//! All commands with their arguments and help.

use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, Parser, Subcommand, error::ErrorKind};
use rustix::fs::Mode;

use crate::admin::{AccountsCommand, CacheCommand, StatusCommand, UsageExportCommand};

use super::{
    accounts, cache, check,
    command_error::{CommandError, CommandOutcome},
    demo,
    exit::Exit,
    explain,
    group_args::{GroupArgs, OutputArgs},
    health, keys,
    location_args::LocationArgs,
    nodes, printer, reload, scoring, serve, status, store, suspects, top, usage, version,
};

const AFTER_HELP: &str = "Try it:\n  scoregate demo\n\nRun it:\n  echo 'upstream = \"built-in\"' > scoregate.toml\n  \
scoregate check --sample >> scoregate.toml\n  \
scoregate check --config scoregate.toml\n  scoregate serve --config scoregate.toml\n\n\
Exit codes: 0 success, 1 invalid input, 2 internal error.";

/// A read-through caching API gateway for a public data API of AI-model benchmarks.
#[derive(Debug, Parser)]
#[command(name = "scoregate", version, propagate_version = true, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Run a demo: the gateway, the built-in backend with simulated data, and a key for each tier.
    #[command(
        after_help = "Examples:\n  scoregate demo\n  scoregate demo --data-dir demo-data --listen 127.0.0.1:8081\n\n\
        Prints a key for each tier and a curl command when it is ready. Stop it with Ctrl-C.\n\
        Without --data-dir the state is in a temporary directory, which is removed at shutdown."
    )]
    Demo {
        #[command(flatten)]
        location: LocationArgs,
        /// Seed of the simulated data.
        #[arg(long, value_name = "NUMBER", default_value_t = 42)]
        seed: u64,
    },
    /// Run the gateway with a configuration file.
    #[command(after_help = "Example:\n  scoregate serve --config scoregate.toml\n\n\
        SIGTERM and Ctrl-C stop the server: open requests finish, and leased quota is returned. SIGHUP reloads the\n\
        settings, like `scoregate reload`.\n\
        Environment variables can set every setting; `scoregate check --sample` lists them.")]
    Serve {
        /// The configuration file.
        #[arg(long, env = "SCOREGATE_CONFIG")]
        config: Option<PathBuf>,
        /// Reload the settings when the configuration file changes, for example when a mounted `ConfigMap` is replaced.
        #[arg(long, requires = "config")]
        reload_on_change: bool,
        #[command(flatten)]
        location: LocationArgs,
    },
    /// Check a configuration and report all errors.
    #[command(
        after_help = "Examples:\n  scoregate check --sample > scoregate.toml\n  \
        scoregate check --config scoregate.toml\n\n\
        Prints nothing if the configuration is valid. Environment variables are checked too.\n\
        Everything in the sample is commented out: append your settings, at least the backend."
    )]
    Check {
        /// The configuration file.
        #[arg(long, env = "SCOREGATE_CONFIG", required_unless_present = "sample")]
        config: Option<PathBuf>,
        /// Print a sample configuration with every setting, and check nothing.
        #[arg(long)]
        sample: bool,
    },
    /// Manage applications and their API keys.
    #[command(after_help = keys::AFTER_HELP)]
    Keys(keys::KeysArgs),
    /// List, suspend and delete the accounts of owners who signed up.
    #[command(after_help = accounts::AFTER_HELP)]
    Accounts(GroupArgs<AccountsCommand>),
    /// List the gateways that use the store.
    #[command(after_help = nodes::AFTER_HELP)]
    Nodes(OutputArgs),
    /// List applications that look like mirrors, shared keys, multiple accounts of one owner or inefficient pollers.
    #[command(after_help = suspects::AFTER_HELP)]
    Suspects(suspects::SuspectsArgs),
    /// Export the usage of a month for billing.
    #[command(after_help = usage::AFTER_HELP)]
    Usage(GroupArgs<UsageExportCommand>),
    /// Publish incident updates on the status page.
    #[command(after_help = status::AFTER_HELP)]
    Status(GroupArgs<StatusCommand>),
    /// Check, back up, export and import the store of keys and quotas.
    #[command(after_help = store::AFTER_HELP)]
    Store(store::StoreArgs),
    /// Import benchmark runs for the built-in backend, or run that backend alone.
    #[command(after_help = scoring::AFTER_HELP)]
    Scoring(scoring::ScoringArgs),
    /// List and purge the cached documents of a running server.
    #[command(after_help = cache::AFTER_HELP)]
    Cache(GroupArgs<CacheCommand>),
    /// Explain how a request would be answered: the state, each decision, and the answer with its cost.
    #[command(after_help = explain::AFTER_HELP)]
    Explain(explain::ExplainArgs),
    /// Reload the settings and certificates of a running server.
    #[command(after_help = reload::AFTER_HELP)]
    Reload(OutputArgs),
    /// Monitor a running server: request rates, latency, the backend, top callers.
    #[command(after_help = top::AFTER_HELP)]
    Top(top::TopArgs),
    /// Check whether a server is ready; the exit code is the result.
    #[command(after_help = health::AFTER_HELP)]
    Health(health::HealthArgs),
    #[command(flatten)]
    About(AboutCommand),
}

/// Commands about the program itself.
#[derive(Debug, Subcommand)]
enum AboutCommand {
    /// Print the version; with --verbose also the build and its file formats.
    #[command(after_help = "Example:\n  scoregate version --verbose")]
    Version {
        /// Also print the commit, the build and the file formats.
        #[arg(long)]
        verbose: bool,
    },
    /// Write the man pages, one for each command.
    #[command(after_help = "Example:\n  scoregate man --to /usr/local/share/man/man1")]
    Man {
        /// An existing directory for the pages.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
    /// Print shell completions.
    #[command(
        after_help = "Example:\n  scoregate completions bash > /etc/bash_completion.d/scoregate"
    )]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Parses the command line and runs the command.
pub fn main() -> Exit {
    // All created files are private, including the files that SQLite creates.
    let umask = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    match Cli::try_parse() {
        Ok(cli) => match cli.command.run(umask) {
            Ok(()) => Exit::Done,
            Err(error) => printer::report(error),
        },
        Err(refused) => print(&refused),
    }
}

/// Prints help, the version, or the error in the arguments.
fn print(refused: &clap::Error) -> Exit {
    let printed = refused.print();
    let is_wanted = matches!(
        refused.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    );
    if is_wanted && printed.is_ok() {
        Exit::Done
    } else {
        Exit::Input
    }
}

impl CliCommand {
    fn run(self, umask: Mode) -> CommandOutcome {
        match self {
            Self::Demo { location, seed } => demo::run(&location, seed),
            Self::Serve {
                config,
                reload_on_change,
                location,
            } => serve::run(config.as_deref(), &location, reload_on_change),
            Self::Check { config, sample } => check::run(config.as_deref(), sample),
            Self::Keys(args) => keys::run(args),
            Self::Accounts(args) => accounts::run(args),
            Self::Nodes(args) => nodes::run(&args),
            Self::Suspects(args) => suspects::run(args),
            Self::Usage(args) => usage::run(args),
            Self::Status(args) => status::run(args),
            Self::Store(args) => store::run(&args),
            Self::Scoring(args) => scoring::run(args),
            Self::Cache(args) => cache::run(args),
            Self::Explain(args) => explain::run(args),
            Self::Reload(args) => reload::run(&args),
            Self::Top(args) => top::run(&args),
            Self::Health(args) => health::run(&args),
            Self::About(command) => command.run(umask),
        }
    }
}

impl AboutCommand {
    fn run(self, umask: Mode) -> CommandOutcome {
        match self {
            Self::Version { verbose } => version::run(verbose),
            Self::Man { to } => write_man_pages(&to, umask),
            Self::Completions { shell } => print_completions(shell),
        }
    }
}

/// Writes the man pages, which every user can read.
fn write_man_pages(to: &Path, umask: Mode) -> CommandOutcome {
    rustix::process::umask(umask);
    clap_mangen::generate_to(Cli::command(), to)
        .map_err(|error| CommandError::Input(format!("{}: {error}", to.display())))?;
    Ok(())
}

fn print_completions(shell: clap_complete::Shell) -> CommandOutcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "scoregate", &mut script);
    Ok(printer::data(&String::from_utf8_lossy(&script))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
