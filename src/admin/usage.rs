//! Who asks how much, over the side port: `GET /v1/usage`, and `GET /v1/usage/APP` for one application.
//!
//! What is counted lives in the memory of a running server, so there is nothing of this on a stopped one. Not for: what
//! the ledger granted, which `GET /v1/applications/APP` says.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::accounts::Registrar;
use crate::gateway::{ApplicationUse, CountedRequests, Gateway, StrangerUse};
use crate::keys::ApplicationId;
use crate::limits::LimitStatus;

use super::command::CommandProblem;
use super::paths::USAGE;
use super::query::QueryPairs;

/// How many of a kind are listed if nothing is said of it, and at the most.
const USUAL: usize = 20;
const MOST: usize = 1_024;

/// The heaviest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UsageView {
    /// From when on it is counted: the start of the process, or midnight UTC.
    pub since: String,
    /// The applications with the most requests.
    pub applications: Vec<ApplicationUseView>,
    /// The addresses of strangers with the most refused requests.
    pub unauthenticated: Vec<StrangerUseView>,
}

/// What one application used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApplicationUseView {
    /// Which one.
    pub application: String,
    /// Its name.
    pub name: String,
    /// Its tier.
    pub tier: String,
    /// What is left to it, by rule.
    pub limits: Vec<AllowanceView>,
    /// Its requests; null if there are too few of them to be counted.
    pub requests: Option<CountedRequests>,
}

/// What is left under a rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AllowanceView {
    /// The rule.
    pub name: String,
    /// What it allows.
    pub limit: u32,
    /// What is left of that.
    pub remaining: u32,
    /// When all of it is there again.
    pub reset_at: String,
}

/// What a stranger had refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StrangerUseView {
    /// The address; of IPv6, the network that counts as one.
    pub address: String,
    /// The refused requests.
    pub requests: CountedRequests,
}

/// Answers a request for one of these paths.
pub(super) async fn answer(
    gateway: &Gateway,
    registrar: &Registrar,
    method: &Method,
    path: &str,
    query: Option<&str>,
) -> Result<Value, CommandProblem> {
    let (usage, now) = (&gateway.usage, gateway.clock.now());
    match (method, path.strip_prefix(USAGE)) {
        (&Method::GET, Some("")) => {
            let most = most(query)?;
            let view = UsageView {
                since: usage.since(now).rfc3339(),
                applications: usage.applications(most, now).iter().map(Into::into).collect(),
                unauthenticated: usage.strangers(most, now).iter().map(Into::into).collect(),
            };
            Ok(json!(view))
        }
        (&Method::GET, Some(below)) => {
            let id = below.strip_prefix('/').unwrap_or(below);
            let id: ApplicationId = id.parse().map_err(|bad| CommandProblem::bad(format!("{bad}")))?;
            let account = registrar.account(id).await?.ok_or_else(|| forgotten(id))?;
            Ok(json!(ApplicationUseView::from(&usage.of(&account, now))))
        }
        _ => Err(CommandProblem::not_found()),
    }
}

fn forgotten(id: ApplicationId) -> CommandProblem {
    CommandProblem::bad(format!(
        "every key of {id} has ended and is forgotten: there is nothing that it could use"
    ))
}

fn most(query: Option<&str>) -> Result<usize, CommandProblem> {
    let most = QueryPairs::read(query, &["most"])?.number("most")?.unwrap_or(USUAL);
    let bad = || CommandProblem::bad(format!("`most` has to be from 1 to {MOST}"));
    (1..=MOST).contains(&most).then_some(most).ok_or_else(bad)
}

impl From<&ApplicationUse> for ApplicationUseView {
    fn from(used: &ApplicationUse) -> Self {
        Self {
            application: used.id.to_string(),
            name: used.name.to_string(),
            tier: used.tier.clone(),
            limits: used.standings.iter().map(AllowanceView::from).collect(),
            requests: used.counted,
        }
    }
}

impl From<&LimitStatus> for AllowanceView {
    fn from(standing: &LimitStatus) -> Self {
        Self {
            name: standing.rule.name().into(),
            limit: standing.limit,
            remaining: standing.remaining,
            reset_at: standing.reset.rfc3339(),
        }
    }
}

impl From<&StrangerUse> for StrangerUseView {
    fn from(used: &StrangerUse) -> Self {
        Self { address: used.network.to_string(), requests: used.counted }
    }
}
