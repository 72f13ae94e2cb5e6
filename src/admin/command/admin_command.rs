//! All commands, by group.

use serde::{Deserialize, Serialize};

use super::{
    accounts::AccountsCommand,
    keys::{KeyRotation, KeysCommand, NewKey},
    nodes::NodesCommand,
    status::StatusCommand,
    suspects::SuspectsCommand,
    usage::UsageExportCommand,
};
use crate::admin::{administration::Administration, command_problem::CommandResult};
use scoregate_base::secret::Secret;

/// A command, by group.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdminCommand {
    /// A command for applications and their keys.
    Keys(KeysCommand),
    /// A command for owner accounts.
    Accounts(AccountsCommand),
    /// A command for the gateways that use the store.
    Nodes(NodesCommand),
    /// A command for applications that may be misusing the service.
    Suspects(SuspectsCommand),
    /// A command for a month's usage.
    Usage(UsageExportCommand),
    /// A command for status page messages.
    Status(StatusCommand),
}

impl AdminCommand {
    /// Sets the key that the command creates. Returns whether the command creates or rotates a key, or changes a tier.
    pub(in crate::admin) fn take_key(&mut self, key: &Secret) -> bool {
        match self {
            Self::Keys(
                KeysCommand::Create(NewKey { issued, .. })
                | KeysCommand::Rotate(KeyRotation { issued, .. }),
            ) => *issued = Some(key.clone()),
            Self::Keys(KeysCommand::SetTier { .. })
            | Self::Accounts(AccountsCommand::SetTier { .. }) => {}
            Self::Keys(_)
            | Self::Accounts(_)
            | Self::Nodes(_)
            | Self::Suspects(_)
            | Self::Usage(_)
            | Self::Status(_) => return false,
        }
        true
    }

    /// Performs the command, and records it in the audit trail under `actor`.
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
            Self::Usage(command) => command.perform(reports).await,
            Self::Status(command) => command.perform(&administration.messages, actor).await,
        }
    }
}
