//! Stage 4: does the caller's budget allow it? One decision takes a minute token and holds a day unit, or nothing.
//!
//! The hold is settled by drop: kept by a 200, given back by everything else, a client that leaves included. The
//! guard, which is asked only about refusals, is here too. Not for: how balances work (`limits`).

use std::sync::Arc;

use crate::accounts::{Account, Leases};
use crate::clock::{Day, Now};
use crate::limits::{AdmissionVerdict, LeaseAvailability};

use super::authenticate::Caller;
use super::exchange::Peer;
use super::guard::AddressGuard;
use super::refusal::Refusal;

/// What admission gives.
#[derive(Debug)]
pub(super) enum Admission<'a> {
    /// A unit of the day is held: the request may fetch.
    ToFetch(HeldUnit<'a>),
    /// The day is spent: the request may only look whether its copy is still current.
    ToLook(TakenToken<'a>),
}

/// A unit of an application's day, held by a request.
#[derive(Debug)]
pub(super) struct HeldUnit<'a> {
    account: &'a Account,
    pub(super) day: Day,
    kept: bool,
}

/// A minute token that was taken, and can be given back.
#[derive(Debug)]
pub(super) struct TakenToken<'a> {
    account: &'a Account,
}

impl HeldUnit<'_> {
    /// Data is delivered: the unit is spent.
    pub(super) fn keep(mut self) {
        self.kept = true;
    }

    /// Returns the minute's token.
    pub(super) fn give_token_back(&self) {
        let mut books = self.account.books();
        books.balance = books.balance.give_back_token();
    }
}

impl Drop for HeldUnit<'_> {
    fn drop(&mut self) {
        let mut books = self.account.books();
        books.balance.day = books.balance.day.settle(self.day, self.kept);
    }
}

impl TakenToken<'_> {
    /// The work was not done after all.
    pub(super) fn give_back(self) {
        let mut books = self.account.books();
        books.balance = books.balance.give_back_token();
    }
}

/// Admits a request, or names the rule that is used up. Waits only if units must be leased first.
pub(super) async fn admit<'a>(
    leases: &Arc<Leases>,
    caller: &'a Caller,
    conditional: bool,
    now: Now,
) -> Result<Admission<'a>, Refusal> {
    let hold = |day| Ok(Admission::ToFetch(HeldUnit { account: &caller.account, day, kept: false }));
    let mut ledger = LeaseAvailability::Near;
    loop {
        match decide(caller, conditional, now, ledger) {
            AdmissionVerdict::Admitted { day, runs_low } => {
                if runs_low {
                    leases.lease_ahead(&caller.account);
                }
                return hold(day);
            }
            AdmissionVerdict::OnGrace { day } => {
                leases.owes(&caller.account);
                return hold(day);
            }
            AdmissionVerdict::MayLook => {
                return Ok(Admission::ToLook(TakenToken { account: &caller.account }));
            }
            AdmissionVerdict::Refused(rule) => return Err(Refusal::Limited(rule)),
            // Every round trip leaves the ledger with fewer units or shows that it has none. The next turn decides by
            // the terms of that moment, as the ledger was asked by them: so this ends.
            AdmissionVerdict::LeaseFirst => {
                let answered = leases.lease(&caller.account).await.is_ok();
                ledger = if answered { LeaseAvailability::Near } else { LeaseAvailability::Away };
            }
            AdmissionVerdict::NoUnits => {
                leases.refused();
                return Err(Refusal::LedgerUnavailable);
            }
        }
    }
}

fn decide(caller: &Caller, conditional: bool, now: Now, ledger: LeaseAvailability) -> AdmissionVerdict {
    let limits = caller.account.terms().limits;
    let mut books = caller.account.books();
    let (balance, verdict) = books.balance.admit(&limits, now, conditional, ledger);
    books.balance = balance;
    verdict
}

/// Asks the guard about a refusal, or about `/me`: of the application if it is known, else of the address.
/// `false` if it has no token left.
pub(super) fn ask_guard(guard: &AddressGuard, caller: Option<&Caller>, peer: Peer, now: Now) -> bool {
    let Some(caller) = caller else { return guard.take(peer.address, now) };
    let limits = caller.account.terms().limits;
    let mut books = caller.account.books();
    let taken = books.balance.take_guard(&limits, now);
    if let Some(balance) = taken {
        books.balance = balance;
    }
    taken.is_some()
}
