//! Commands on the state in the memory of a running server. `serve` performs them.

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use crate::admin::explain::ExplainBody;
use scoregate_base::{clock::Day, keys::ApplicationId};

/// Default maximum number of applications, and of addresses, in a response.
const DEFAULT_MOST: usize = 20;

/// A command, by group.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LiveCommand {
    /// A command on cached documents.
    Cache(CacheCommand),
    /// Explains a request without sending it.
    Requests(RequestsCommand),
    /// A command on the usage that this gateway counts.
    Usage(UsageCommand),
    /// A command on the backend.
    Upstream(UpstreamCommand),
    /// A command on the settings.
    Settings(SettingsCommand),
    /// A command on the event log.
    Log(LogCommand),
    /// A command on the built-in backend.
    Scoring(SnapshotCommand),
}

/// A command on the cached documents.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum CacheCommand {
    /// List the stored documents.
    #[command(after_help = "Example:\n  scoregate cache list --data-dir DIR --json")]
    List {},
    /// Purge documents, so that they are fetched again.
    #[command(after_help = "Examples:\n  \
        scoregate cache purge '/api/v1/models/atlas/history?period=7d' --data-dir DIR\n  \
        scoregate cache purge /api/v1/models/:id --data-dir DIR\n  \
        scoregate cache purge all --hard --data-dir DIR\n\n\
        Omitted models and parameters match all. Purged documents are served stale while they are refreshed;\n\
        with --hard they are removed, and the next request for each waits for the backend.")]
    Purge(PurgeBody),
}

/// The documents to purge.
#[derive(Clone, Debug, Args, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PurgeBody {
    /// `all`, or an API path, with or without a model and parameters.
    pub documents: String,
    /// Remove the documents instead of serving them stale during the refresh.
    #[arg(long)]
    #[serde(default)]
    pub hard: bool,
}

/// Explains a request without sending it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestsCommand {
    /// Explain how the request would be answered.
    Explain(ExplainBody),
}

/// A command on usage.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum UsageCommand {
    /// List the top callers of this gateway, or the applications with the highest usage across all gateways.
    Top {
        /// Maximum number of rows.
        #[serde(default = "default_most")]
        most: usize,
        /// Whether to list usage across all gateways.
        #[serde(default)]
        fleet: bool,
        /// The day for usage across all gateways. Default: today.
        day: Option<Day>,
    },
    /// Show the usage of an application.
    Show {
        /// The application.
        id: ApplicationId,
    },
}

/// A command on the backend.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum UpstreamCommand {
    /// Show the state of the backend.
    Show {},
}

/// A command on the settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SettingsCommand {
    /// List the settings in force.
    List {},
    /// Reload the settings.
    Reload {},
}

/// A command on the event log.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum LogCommand {
    /// Show the log level.
    Show {},
    /// Change the log level until the next reload or start.
    Set {
        /// The level.
        level: String,
    },
}

/// A command on the built-in backend.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SnapshotCommand {
    /// Publish imported runs.
    Refresh {},
}

const fn default_most() -> usize {
    DEFAULT_MOST
}
