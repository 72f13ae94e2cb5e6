//! Commands for the gateways that use the store.

use serde::{Deserialize, Serialize};

use crate::admin::{command_problem::CommandResult, fleet::FleetReports};

/// A command for the gateways that use the store.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum NodesCommand {
    /// List the gateways.
    List {},
}

impl NodesCommand {
    pub(super) async fn perform(self, reports: &FleetReports) -> CommandResult {
        let Self::List {} = self;
        reports.nodes().await
    }
}
