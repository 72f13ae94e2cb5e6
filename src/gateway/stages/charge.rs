//! Stages 4 and 6 in one step, for a request whose response is ready: the request is admitted and charged under one
//! lock of its account.
//!
//! `admit` and `settle` process the requests that have to wait.

use crate::{accounts::Charge, quota::Leases};
use scoregate_base::clock::Now;

use super::authenticate::Caller;

/// Charges a request: for a document, or for a 304 if the caller's copy is unchanged.
pub fn charge(leases: &Leases, caller: &Caller, is_unchanged: bool, now: Now) -> Charge {
    caller.account.state().charge(
        &caller.limits,
        leases.gateways(),
        now,
        is_unchanged,
        leases.is_unreachable(),
    )
}
