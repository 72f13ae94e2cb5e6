//! All commands by their groups.

use serde::{Deserialize, Serialize};

use super::accounts::AccountsCommand;
use super::keys::KeysCommand;
use super::nodes::NodesCommand;
use super::status::StatusCommand;
use super::suspects::SuspectsCommand;
use super::usage::UsageExportCommand;
use crate::admin::administration::Administration;
use crate::admin::command_problem::CommandResult;

/// A command, by its group.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdminCommand {
    /// A command on applications and their keys.
    Keys(KeysCommand),
    /// A command on accounts of owners.
    Accounts(AccountsCommand),
    /// A command on the gateways on the store.
    Nodes(NodesCommand),
    /// A command on applications whose use looks like misuse.
    Suspects(SuspectsCommand),
    /// A command on the messages of the status page.
    /// A command on the usage of a month.
    Usage(UsageExportCommand),
    Status(StatusCommand),
}

impl AdminCommand {
    /// Performs the command, recorded in the audit trail under `actor`.
    pub async fn perform(self, administration: &Administration, actor: &str) -> CommandResult {
        let reports = &administration.reports;
        match self {
            Self::Keys(command) => {
                let keys = &administration.registrar;
                command.perform(keys, reports, actor).await
            }
            Self::Accounts(command) => command.perform(administration, actor).await,
            Self::Nodes(command) => command.perform(reports).await,
            Self::Suspects(command) => command.perform(reports).await,
            Self::Status(command) => command.perform(&administration.messages, actor).await,
        }
    }
}
            Self::Usage(command) => command.perform(reports).await,
