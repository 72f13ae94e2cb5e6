//! Commands on the state in the memory of a running server. A stopped one has none. They are performed in `serve`.

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use crate::admin::explain::ExplainBody;
use scoregate_base::clock::Day;
use scoregate_base::keys::ApplicationId;

/// Applications, and addresses, in a response.
const DEFAULT_MOST: usize = 20;

/// A command, by its group.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LiveCommand {
    /// A command on cached documents.
    Cache(CacheCommand),
    /// On a request that is not sent.
    Requests(RequestsCommand),
    /// On the usage that this gateway counts.
    Usage(UsageCommand),
    /// On the backend.
    Upstream(UpstreamCommand),
    /// On the settings.
    Settings(SettingsCommand),
    /// On the event log.
    Log(LogCommand),
    /// On the built-in backend.
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

/// A command on a request that is not sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestsCommand {
    /// Explain how it would be answered.
    Explain(ExplainBody),
}

/// A command on usage.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum UsageCommand {
    /// List the top callers of this gateway, or the applications with the highest usage at all gateways.
    Top {
        /// Maximum number of rows.
        #[serde(default = "default_most")]
        most: usize,
        /// At all gateways.
        #[serde(default)]
        fleet: bool,
        /// The day at all gateways; today if left out.
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
    /// Show its state.
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
    /// Show its level.
    Show {},
    /// Change its level until the next reload or start.
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
