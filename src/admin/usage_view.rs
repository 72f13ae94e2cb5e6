//! Usage over the side port: `GET /v1/usage` for the top callers, and `GET /v1/usage/APP` for one application. Usage of all
//! gateways is in `fleet`.
//!
//! Counts are in the memory of the running server, so a stopped one has none. The units granted by the ledger are in
//! `GET /v1/keys/show`.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::gateway::Gateway;
use crate::statistics::ApplicationUse;
use crate::statistics::UnauthenticatedUse;
use scoregate_base::clock::Day;
use scoregate_base::keys::ApplicationId;

use super::administration::Administration;
use super::command_problem::{CommandProblem, CommandResult};
use super::paths::USAGE;
use super::query::{QueryPairs, parsed_id};

/// Applications, and addresses, in a response.
const DEFAULT_LIMIT: usize = 20;
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

/// The top callers of this gateway or of all, or the usage of one application.
pub(super) async fn read(
    gateway: &Gateway,
    administration: &Administration,
    path: &str,
    query: Option<&str>,
) -> CommandResult {
    let recorders = &gateway.recorders;
    let now = gateway.clock.now();
    if let Some(id) = path
        .strip_prefix(USAGE)
        .and_then(|below| below.strip_prefix('/'))
    {
        let id: ApplicationId = parsed_id(id)?;
        let account = administration
            .registrar
            .account(id)
            .await?
            .ok_or_else(|| no_usage(id))?;
        return Ok(json!(recorders.requests.usage_of(&account, now)));
    }
    let (limit, fleet, day) = parameters(query)?;
    if fleet {
        return Ok(json!(administration.reports.usage(day, limit).await?));
    }
    Ok(json!(UsageView {
        since: recorders.usage.since(now).rfc3339(),
        applications: recorders.requests.applications(limit, now),
        unauthenticated: recorders.usage.unauthenticated(limit, now),
    }))
}

fn no_usage(id: ApplicationId) -> CommandProblem {
    CommandProblem::bad(format!(
        "all keys of {id} expired or were revoked long ago: it has no usage"
    ))
}

/// The parameters of `GET /v1/usage`: the limit, whether usage of all gateways is requested, and the day; today if absent.
fn parameters(query: Option<&str>) -> CommandResult<(usize, bool, Option<Day>)> {
    let pairs = QueryPairs::read(query, &["most", "fleet", "day"])?;
    let limit = pairs.number("most")?.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(CommandProblem::bad(format!(
            "`most` must be from 1 to {MAX_LIMIT}"
        )));
    }
    let fleet = match pairs.get("fleet") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(CommandProblem::bad("`fleet` must be true or false")),
    };
    let day = pairs.get("day").map(|text| {
        let bad =
            || CommandProblem::bad("`day` must be a day such as 2027-01-31, with `fleet=true`");
        Day::parse(text).filter(|_| fleet).ok_or_else(bad)
    });
    Ok((limit, fleet, day.transpose()?))
}
