//! Usage on the side port: `GET /v1/usage/top` for the top callers, and `GET /v1/usage/show` for one application.
//! With `fleet`, the usage covers all gateways.
//!
//! The counts are in the memory of the running server. `GET /v1/keys/show` reports the units that the ledger granted.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    gateway::Gateway,
    statistics::{ApplicationUse, UnauthenticatedUse},
};
use scoregate_base::{clock::Day, keys::ApplicationId};

use super::{
    administration::Administration,
    command::UsageCommand,
    command_problem::{CommandProblem, CommandResult},
};

/// Maximum number of applications, and of addresses, in a response.
const MAX_LIMIT: usize = 1_024;

/// The top callers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UsageView {
    /// Start of the counts: the start of the process, or midnight UTC.
    pub since: String,
    /// The applications with the most requests.
    pub applications: Vec<ApplicationUse>,
    /// The unauthenticated addresses with the most refused requests.
    pub unauthenticated: Vec<UnauthenticatedUse>,
}

/// The top callers, or the usage of one application.
pub async fn perform(
    gateway: &Gateway,
    administration: &Administration,
    command: UsageCommand,
) -> CommandResult {
    match command {
        UsageCommand::Top { most, fleet, day } => {
            top(gateway, administration, most, fleet, day).await
        }
        UsageCommand::Show { id } => {
            let account = administration.registrar.account(id).await?;
            let account = account.ok_or_else(|| no_usage(id))?;
            let requests = &gateway.recorders.requests;
            Ok(json!(requests.usage_of(&account, gateway.clock.now())))
        }
    }
}

/// The top callers of this gateway, or the applications with the highest daily usage across all gateways.
async fn top(
    gateway: &Gateway,
    administration: &Administration,
    most: usize,
    fleet: bool,
    day: Option<Day>,
) -> CommandResult {
    if !(1..=MAX_LIMIT).contains(&most) {
        return Err(CommandProblem::bad(format!(
            "`most` must be from 1 to {MAX_LIMIT}"
        )));
    }
    if fleet {
        return Ok(json!(administration.reports.usage(day, most).await?));
    }
    if day.is_some() {
        return Err(CommandProblem::bad("`day` needs `fleet=true`"));
    }
    let recorders = &gateway.recorders;
    let now = gateway.clock.now();
    Ok(json!(UsageView {
        since: recorders.usage.since(now).rfc3339(),
        applications: recorders.requests.applications(most, now),
        unauthenticated: recorders.usage.unauthenticated(most, now),
    }))
}

fn no_usage(id: ApplicationId) -> CommandProblem {
    CommandProblem::bad(format!(
        "{id} has no usage: all its keys expired or were revoked long ago"
    ))
}
