//! Stage 4: checks the caller's budget. One decision takes a minute token and holds a day unit, or takes nothing.
//!
//! Dropping a hold returns it. Only a 200 keeps it; every other end, a disconnect included, gives it back. The guard,
//! which limits refusals, is here too. How balances work is in `limits`.

use std::sync::Arc;

use crate::accounts::{Account, Leases};
use scoregate_base::clock::{Day, Now};
use scoregate_base::limits::{AdmissionVerdict, LeaseAvailability, LimitRule};

use super::authenticate::Caller;
use super::exchange::Peer;
use super::guard::AddressGuard;
use super::refusal::Refusal;

/// Maximum number of ledger calls that a request waits for.
const MAX_LEASES: u32 = 32;

/// No unit can be had until the ledger is reachable again.
const NO_UNITS: Refusal = Refusal::LedgerUnavailable { token_in: None };

/// The result of admission.
#[derive(Debug)]
pub(super) enum Admission<'a> {
    /// A unit of the day is held: the request may fetch.
    ToFetch(HeldUnit<'a>),
    /// No unit can be had: the request may only revalidate the caller's copy.
    ToRevalidate(TakenToken<'a>),
}

#[derive(Debug)]
pub(super) struct HeldUnit<'a> {
    account: &'a Account,
    pub(super) day: Day,
    kept: bool,
}

/// A minute token that was taken and can be returned.
#[derive(Debug)]
pub(super) struct TakenToken<'a> {
    account: &'a Account,
    without_unit: Refusal,
}

impl HeldUnit<'_> {
    /// Keeps the unit: a document was delivered.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }

    pub(super) fn give_token_back(&self) {
        self.account.state().give_back_token();
    }
}

impl Drop for HeldUnit<'_> {
    fn drop(&mut self) {
        self.account.state().settle(self.day, self.kept);
    }
}

impl TakenToken<'_> {
    /// Returns the token: the request was not served. Returns the reason why it has no unit.
    pub(super) fn give_back(self) -> Refusal {
        self.account.state().give_back_token();
        self.without_unit
    }
}

/// Admits a request or names the exhausted rule. Waits only if units must be leased first, and calls `before_waiting`.
pub(super) async fn admit<'a>(
    leases: &Arc<Leases>,
    caller: &'a Caller,
    conditional: bool,
    mut now: Now,
    mut before_waiting: impl FnMut(),
) -> Result<Admission<'a>, Refusal> {
    let hold = |day| Ok(Admission::ToFetch(HeldUnit { account: &caller.account, day, kept: false }));
    let revalidate =
        |without_unit| Ok(Admission::ToRevalidate(TakenToken { account: &caller.account, without_unit }));
    let mut ledger = LeaseAvailability::Reachable;
    for _ in 0..MAX_LEASES {
        match decide(leases, caller, conditional, now, ledger) {
            AdmissionVerdict::Admitted { day, runs_low } => {
                if runs_low {
                    leases.lease_ahead(&caller.account);
                }
                return hold(day);
            }
            AdmissionVerdict::OnGrace { day } => {
                leases.delivers_on_grace();
                return hold(day);
            }
            AdmissionVerdict::RevalidateOnly => return revalidate(Refusal::Limited(LimitRule::Day)),
            AdmissionVerdict::RevalidateWithoutUnits => return revalidate(NO_UNITS),
            // The share of the minute may be used up and not the limit.
            AdmissionVerdict::Refused(LimitRule::Minute)
                if ledger == LeaseAvailability::Reachable && leases.is_unreachable() =>
            {
                ledger = leases.without_ledger(&caller.account);
            }
            AdmissionVerdict::Refused(rule) => return Err(Refusal::Limited(rule)),
            // Every round trip brings units or tokens, which concurrent requests may take, or shows that there are none.
            AdmissionVerdict::LeaseFirst => {
                before_waiting();
                match leases.lease(&caller.account).await {
                    Ok(answered) => now = answered,
                    Err(_) => ledger = leases.without_ledger(&caller.account),
                }
            }
            AdmissionVerdict::ReserveFirst => {
                before_waiting();
                ledger = leases.reserve_grace(&caller.account).await;
            }
            AdmissionVerdict::NoToken { wait } => {
                leases.refused();
                return Err(Refusal::LedgerUnavailable { token_in: Some(wait) });
            }
            AdmissionVerdict::NoUnits => break,
        }
    }
    leases.refused();
    Err(NO_UNITS)
}

fn decide(
    leases: &Leases,
    caller: &Caller,
    conditional: bool,
    now: Now,
    ledger: LeaseAvailability,
) -> AdmissionVerdict {
    let limits = caller.account.terms().limits;
    caller.account.state().admit(&limits, leases.gateways(), now, conditional, ledger)
}

/// Takes the bytes of a page from the allowance of the address.
pub(super) fn take_page(guard: &AddressGuard, bytes: usize, peer: Peer, now: Now) -> Result<(), Refusal> {
    guard.take_page(peer.address, bytes, now).map_err(|retry_after| Refusal::TooManyPages { retry_after })
}

/// Takes a guard token for a refusal or for `/me`: of the application if it is known, else of the address. Returns
/// `false` if none is left.
pub(super) fn take_guard_token(guard: &AddressGuard, caller: Option<&Caller>, peer: Peer, now: Now) -> bool {
    let Some(caller) = caller else { return guard.take(peer.address, now) };
    caller.account.state().take_guard(&caller.limits, now)
}
