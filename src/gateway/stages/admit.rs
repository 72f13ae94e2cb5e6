//! Stage 4: checks the caller's budget. One decision takes a minute token and holds a day unit, or takes nothing.
//!
//! Dropping a hold returns it. Only a 200 keeps it; every other end, a disconnect included, gives it back. The guard,
//! which limits refusals, is here too. How balances work is in `limits`.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::accounts::{Account, Leases};
use crate::gateway::guard::AddressGuard;
use crate::gateway::refusal::Refusal;
use crate::gateway::request::exchange::Peer;
use scoregate_base::clock::{Day, Now};
use scoregate_base::limits::{AdmissionVerdict, LeaseAvailability, LimitRule};

use super::authenticate::Caller;

/// Maximum number of ledger calls that a request waits for.
const MAX_LEASES: u32 = 32;

/// No unit can be had until the ledger is reachable again.
const NO_UNITS: Refusal = Refusal::LedgerUnavailable { token_in: None };

/// The result of admission.
#[derive(Debug)]
pub(crate) enum Admission<'a> {
    /// A unit of the day is held: the request may fetch.
    ToFetch(HeldUnit<'a>),
    /// No unit can be had: the request may only revalidate the caller's copy.
    ToRevalidate(TakenToken<'a>),
}

#[derive(Debug)]
pub(crate) struct HeldUnit<'a> {
    account: &'a Account,
    pub(crate) day: Day,
    kept: bool,
}

/// A minute token that was taken and can be returned.
#[derive(Debug)]
pub(crate) struct TakenToken<'a> {
    account: &'a Account,
    without_unit: Refusal,
}

impl HeldUnit<'_> {
    /// Keeps the unit: a document was delivered.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }

    pub(crate) fn give_token_back(&self) {
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
    pub(crate) fn give_back(self) -> Refusal {
        self.account.state().give_back_token();
        self.without_unit
    }
}

/// The next step after a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AdmissionStep {
    /// Admission ends.
    End(AdmissionEnd),
    /// More is leased, and the request decided again.
    Lease,
    /// Units of grace are reserved, and the request decided again.
    Reserve,
    /// The request is decided again with what may be used without the ledger.
    WithoutLedger,
}

/// The end of admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AdmissionEnd {
    /// A unit of the day is held.
    Hold(Day),
    /// No unit can be had for this reason.
    Revalidate(Refusal),
    Refuse(Refusal),
}

impl AdmissionStep {
    pub(crate) fn of(
        verdict: AdmissionVerdict,
        ledger: LeaseAvailability,
        is_unreachable: impl FnOnce() -> bool,
    ) -> Self {
        Self::End(match verdict {
            AdmissionVerdict::Admitted { day, .. } | AdmissionVerdict::OnGrace { day } => {
                AdmissionEnd::Hold(day)
            }
            AdmissionVerdict::RevalidateOnly => {
                AdmissionEnd::Revalidate(Refusal::Limited(LimitRule::Day))
            }
            AdmissionVerdict::RevalidateWithoutUnits => AdmissionEnd::Revalidate(NO_UNITS),
            // The share of the minute may be used up and not the limit.
            AdmissionVerdict::Refused(LimitRule::Minute)
                if ledger == LeaseAvailability::Reachable && is_unreachable() =>
            {
                return Self::WithoutLedger;
            }
            AdmissionVerdict::Refused(rule) => AdmissionEnd::Refuse(Refusal::Limited(rule)),
            AdmissionVerdict::NoToken { wait } => {
                AdmissionEnd::Refuse(Refusal::LedgerUnavailable {
                    token_in: Some(wait),
                })
            }
            AdmissionVerdict::NoUnits => AdmissionEnd::Refuse(NO_UNITS),
            AdmissionVerdict::LeaseFirst => return Self::Lease,
            AdmissionVerdict::ReserveFirst => return Self::Reserve,
        })
    }
}

impl AdmissionEnd {
    /// The result for this account, in which the unit or the token is taken.
    pub(crate) fn result(self, account: &Account) -> Result<Admission<'_>, Refusal> {
        match self {
            Self::Hold(day) => Ok(Admission::ToFetch(HeldUnit {
                account,
                day,
                kept: false,
            })),
            Self::Revalidate(without_unit) => Ok(Admission::ToRevalidate(TakenToken {
                account,
                without_unit,
            })),
            Self::Refuse(refusal) => Err(refusal),
        }
    }
}

/// Admits a request or names the exhausted rule. Waits only if units must be leased first, and calls `before_waiting`.
pub(crate) async fn admit<'a>(
    leases: &Arc<Leases>,
    caller: &'a Caller,
    conditional: bool,
    mut now: Now,
    mut before_waiting: impl FnMut(),
) -> Result<Admission<'a>, Refusal> {
    let mut ledger = LeaseAvailability::Reachable;
    for _ in 0..MAX_LEASES {
        let verdict = decide(leases.gateways(), caller, conditional, now, ledger);
        match AdmissionStep::of(verdict, ledger, || leases.is_unreachable()) {
            AdmissionStep::End(end) => {
                if let AdmissionVerdict::Admitted { runs_low: true, .. } = verdict {
                    leases.lease_ahead(&caller.account);
                }
                if let AdmissionVerdict::OnGrace { .. } = verdict {
                    leases.delivers_on_grace();
                }
                if let AdmissionEnd::Refuse(Refusal::LedgerUnavailable { .. }) = end {
                    leases.refused();
                }
                return end.result(&caller.account);
            }
            AdmissionStep::WithoutLedger => ledger = leases.without_ledger(&caller.account),
            // Every round trip brings units or tokens, which concurrent requests may take, or shows that there are none.
            AdmissionStep::Lease => {
                before_waiting();
                match leases.lease(&caller.account).await {
                    Ok(answered) => now = answered,
                    Err(_) => ledger = leases.without_ledger(&caller.account),
                }
            }
            AdmissionStep::Reserve => {
                before_waiting();
                ledger = leases.reserve_grace(&caller.account).await;
            }
        }
    }
    leases.refused();
    Err(NO_UNITS)
}

/// Decides on a request of one of `gateways` and changes its account, and nothing else.
pub(crate) fn decide(
    gateways: Option<NonZeroU32>,
    caller: &Caller,
    conditional: bool,
    now: Now,
    ledger: LeaseAvailability,
) -> AdmissionVerdict {
    let limits = caller.account.terms().limits;
    caller
        .account
        .state()
        .admit(&limits, gateways, now, conditional, ledger)
}

/// Replaces a refusal by a 429 if the caller has had too many refusals.
pub(crate) fn guarded(
    refusal: Refusal,
    guard: &AddressGuard,
    caller: Option<&Caller>,
    peer: Peer,
    now: Now,
) -> Refusal {
    if refusal.costs_guard_token() && !take_guard_token(guard, caller, peer, now) {
        return Refusal::TooManyRefusals;
    }
    refusal
}

/// Takes the bytes of a page from the allowance of the address.
pub(crate) fn take_page(
    guard: &AddressGuard,
    bytes: usize,
    peer: Peer,
    now: Now,
) -> Result<(), Refusal> {
    guard
        .take_page(peer.address, bytes, now)
        .map_err(|retry_after| Refusal::TooManyPages { retry_after })
}

/// Takes a guard token for a refusal or for `/me`: of the application if it is known, else of the address. Returns
/// `false` if none is left.
pub(crate) fn take_guard_token(
    guard: &AddressGuard,
    caller: Option<&Caller>,
    peer: Peer,
    now: Now,
) -> bool {
    let Some(caller) = caller else {
        return guard.take(peer.address, now);
    };
    caller.account.state().take_guard(&caller.limits, now)
}
