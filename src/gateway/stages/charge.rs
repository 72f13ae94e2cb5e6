//! Stages 4 and 6 in one step, for a request whose response is ready: admits, charges and counts it under one lock of its
//! account.
//!
//! The decision is that of `limits`. What has to wait is left to `admit` and `settle`; then nothing is taken here.

use std::sync::Arc;

use super::authenticate::Caller;
use crate::accounts::{DocumentUse, Leases, RequestCounter, SettledRequest};
use crate::gateway::refusal::Refusal;
use scoregate_base::clock::{Day, Now};
use scoregate_base::limits::LimitStatus;
use scoregate_base::routes::Route;

/// A request that was admitted and settled, or refused by a limit.
#[derive(Debug)]
pub(crate) struct ChargedRequest {
    /// The day that was charged with a unit, if any.
    pub(crate) result: Result<Option<Day>, Refusal>,
    /// Status of the minute and the day.
    pub(crate) statuses: [LimitStatus; 2],
}

/// Charges a request for a document or for a 304. `None` if the request has to wait.
pub(crate) fn charge(
    leases: &Arc<Leases>,
    counter: &RequestCounter,
    caller: &Caller,
    route: Route,
    document: DocumentUse,
    now: Now,
) -> Option<ChargedRequest> {
    let settled = decide(leases, caller, route, document, now)?;
    counter.list_settled(&caller.account, &settled);
    if settled.runs_low {
        leases.lease_ahead(&caller.account);
    }
    Some(ChargedRequest::of(&settled))
}

/// Decides on the request and changes its account, and nothing else.
pub(crate) fn decide(
    leases: &Leases,
    caller: &Caller,
    route: Route,
    document: DocumentUse,
    now: Now,
) -> Option<SettledRequest> {
    RequestCounter::admit_and_settle(
        &caller.account,
        &caller.limits,
        leases,
        now,
        route,
        document,
    )
}

impl ChargedRequest {
    pub(crate) fn of(settled: &SettledRequest) -> Self {
        let result = settled
            .refused
            .map_or(Ok(settled.charged), |rule| Err(Refusal::Limited(rule)));
        Self {
            result,
            statuses: settled.statuses,
        }
    }
}
