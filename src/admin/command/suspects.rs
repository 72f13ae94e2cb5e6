//! Commands on applications whose use looks like misuse: `scoregate suspects`.

use clap::Subcommand;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::admin::{command_problem::CommandResult, fleet::FleetReports};
use scoregate_base::keys::ApplicationId;

/// A command about applications whose use looks like misuse.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SuspectsCommand {
    /// List the findings. On the command line, this is the default action.
    #[command(skip)]
    List {
        /// The number of days to evaluate, including today.
        days: Option<u32>,
    },
    /// Show the evidence about an application, with its requests by hour and day.
    #[command(
        after_help = "Examples:\n  scoregate suspects show app_3kTMd9Qw0aB --data-dir DIR\n  \
scoregate suspects show app_3kTMd9Qw0aB --letter --data-dir DIR > letter.txt"
    )]
    Show {
        /// The application.
        id: ApplicationId,
        /// Print a letter to the owner, for `scoregate accounts contact`.
        #[arg(long, conflicts_with = "json")]
        #[serde(skip)]
        letter: bool,
    },
}

impl SuspectsCommand {
    pub(super) async fn perform(self, reports: &FleetReports) -> CommandResult {
        match self {
            Self::List { days } => Ok(json!(reports.suspects(days).await?)),
            Self::Show { id, .. } => Ok(json!(reports.evidence(id).await?)),
        }
    }
}
