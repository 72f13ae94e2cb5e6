//! Stage 4: checks the caller's budget. One decision takes a minute token and holds a day unit, or takes nothing.
//! Dropping a hold returns the unit. Only a 200 spends the unit; every other outcome, including a disconnect, returns
//! it. Balances are in `limits`.

use std::{num::NonZeroU32, sync::Arc};

use crate::{
    accounts::{Account, AdmissionEnd, AdmissionStep, Shortage, UnitSupply, charged_day},
    gateway::Refusal,
    quota::Leases,
};
use scoregate_base::{
    clock::{Day, Now},
    limits::LeaseAvailability,
};

use super::authenticate::Caller;

/// Maximum number of ledger calls that a request waits for. Other requests may take the units that a call obtains.
const MAX_LEASES: u32 = 32;

/// The result of admission.
#[derive(Debug)]
pub enum Admission<'a> {
    /// A unit of the day is held, so the request may fetch.
    ToFetch(HeldUnit<'a>),
    /// No unit is available, so the request may only revalidate the caller's copy.
    ToRevalidate(TakenToken<'a>),
}

#[derive(Debug)]
pub struct HeldUnit<'a> {
    account: &'a Account,
    day: Day,
    kept: bool,
}

/// A minute token that was taken and can be returned.
#[derive(Debug)]
pub struct TakenToken<'a> {
    account: &'a Account,
    without_unit: Refusal,
}

impl HeldUnit<'_> {
    /// Charges the unit for a response. Returns the day that is charged, if any.
    pub(crate) fn deliver(mut self, is_unchanged: bool) -> Option<Day> {
        let charged = charged_day(self.day, is_unchanged);
        self.kept = charged.is_some();
        charged
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
    /// Gives back the token of a request that was not served, and returns the reason why the request has no unit.
    pub(crate) fn give_back(self) -> Refusal {
        self.account.state().give_back_token();
        self.without_unit
    }
}

impl<'a> Admission<'a> {
    /// The result of admission for this account. It holds the unit or the token.
    pub(crate) fn new(end: AdmissionEnd, account: &'a Account) -> Result<Self, Refusal> {
        match end {
            AdmissionEnd::Hold { day, .. } => Ok(Self::ToFetch(HeldUnit {
                account,
                day,
                kept: false,
            })),
            AdmissionEnd::Revalidate(shortage) => Ok(Self::ToRevalidate(TakenToken {
                account,
                without_unit: shortage.into(),
            })),
            AdmissionEnd::Refuse(shortage) => Err(shortage.into()),
        }
    }
}

/// Admits a request or names the exhausted rule. Waits only if units must be leased first, and calls `before_waiting`
/// before that.
pub async fn admit<'a>(
    leases: &Arc<Leases>,
    caller: &'a Caller,
    conditional: bool,
    mut now: Now,
    mut before_waiting: impl FnMut(),
) -> Result<Admission<'a>, Refusal> {
    let mut ledger = LeaseAvailability::Reachable;
    for _ in 0..MAX_LEASES {
        match decide(leases, leases.gateways(), caller, conditional, now, ledger) {
            AdmissionStep::End(end) => {
                follow_up(leases, caller, &end);
                return Admission::new(end, &caller.account);
            }
            AdmissionStep::WithoutLedger => ledger = leases.without_ledger(&caller.account),
            // Every round trip either obtains units or tokens, which concurrent requests may take first, or shows that there are
            // none.
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
    Err(Shortage::Units.into())
}

/// Leases more units if few are left, and counts decisions that result from an unreachable ledger.
fn follow_up(leases: &Arc<Leases>, caller: &Caller, end: &AdmissionEnd) {
    match end {
        AdmissionEnd::Hold { supply, .. } => match supply {
            UnitSupply::Sufficient => {}
            UnitSupply::Low => leases.lease_ahead(&caller.account),
            UnitSupply::Grace => leases.delivers_on_grace(),
        },
        AdmissionEnd::Refuse(Shortage::Units | Shortage::Token { .. }) => leases.refused(),
        AdmissionEnd::Refuse(Shortage::Limit(_)) | AdmissionEnd::Revalidate(_) => {}
    }
}

/// Decides whether a request is admitted. `gateways` is the number of gateways that share minute limits. Changes only the caller's account.
pub fn decide(
    leases: &Leases,
    gateways: Option<NonZeroU32>,
    caller: &Caller,
    conditional: bool,
    now: Now,
    ledger: LeaseAvailability,
) -> AdmissionStep {
    let limits = caller.account.terms().limits;
    let mut state = caller.account.state();
    let verdict = state.admit(&limits, gateways, now, conditional, ledger);
    drop(state);
    AdmissionStep::of(verdict, ledger, leases.is_unreachable())
}
