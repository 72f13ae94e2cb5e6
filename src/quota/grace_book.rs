//! The grace shares of this gateway, the units owed by earlier processes, and the accounts with reserved units.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use scoregate_base::{
    clock::{Day, Mono},
    keys::ApplicationId,
    limits::{GraceClaim, GraceShare},
};
use scoregate_store::{HeldGraceShare, OwedRecords, OwedUnits};

use crate::accounts::Account;

/// Interval between claims while a share is missing, and between confirmations of held shares, in seconds.
// Claims are more frequent than confirmations, so that a missing share is claimed before an outage begins.
const CLAIM_EVERY: u64 = 10;
const CONFIRM_EVERY: u64 = 60;

/// The shares of this gateway and the units owed on them.
#[derive(Debug, Default)]
// All fields share one lock, because a claim compares and changes both shares and tokens.
pub struct GraceBook(Mutex<GraceEntries>);

#[derive(Debug, Default)]
struct GraceEntries {
    shares: Vec<HeldGraceShare>,
    /// Tokens of unanswered claims.
    tokens: HashMap<Day, u64>,
    next_claim: Mono,
    /// The day of the last claims.
    claimed_on: Day,
    /// Units of earlier processes that have not been charged within the quota. They count against this gateway's shares until
    /// the day ends.
    carried: HashMap<(ApplicationId, Day), Vec<OwedUnits>>,
    /// Accounts that reserved units and have not been charged.
    accounts: Vec<Arc<Account>>,
}

impl GraceBook {
    /// A book that continues the shares and the owed units of an earlier process.
    pub fn continuing(records: &OwedRecords) -> Self {
        let mut carried = HashMap::<_, Vec<OwedUnits>>::new();
        for one in &records.owed {
            carried
                .entry((one.application, one.day))
                .or_default()
                .push(*one);
        }
        let shares = records.shares.iter().map(|held| HeldGraceShare {
            // With this number, the ledger detects and refuses a process on a copy of the data directory.
            life: held.life.saturating_add(1),
            ..*held
        });
        Self(Mutex::new(GraceEntries {
            shares: shares.collect(),
            carried,
            ..GraceEntries::default()
        }))
    }

    /// Units that the account may owe on this gateway on its current day.
    pub fn part(&self, account: &Account, today: Day) -> u32 {
        let day = account.state().day().on(today).day();
        let grace = account.terms().limits.grace;
        let entries = self.0.lock();
        let held = entries.shares.iter().find(|held| held.day == day);
        let part = held.map_or(0, |held| held.share.part(grace));
        let carried = entries
            .carried
            .get(&(account.id, day))
            .into_iter()
            .flatten();
        carried.fold(part, |part, one| part.saturating_sub(one.owed))
    }

    /// Units of earlier processes for this day and later days, ordered by process.
    pub fn carried(&self, today: Day) -> Vec<OwedUnits> {
        let entries = self.0.lock();
        let mut all: Vec<_> = entries
            .carried
            .values()
            .flatten()
            .filter(|one| one.day >= today)
            .copied()
            .collect();
        all.sort_unstable_by_key(|one| (one.node, one.day, one.application));
        all
    }

    /// Removes units of an earlier process that were charged within the quota, as if they had been leased.
    pub fn settle_carried(&self, settled: &OwedUnits) {
        if let Some(carried) = self
            .0
            .lock()
            .carried
            .get_mut(&(settled.application, settled.day))
        {
            carried.retain(|one| one != settled);
        }
    }

    /// Whether this gateway holds a share of this day.
    pub fn holds(&self, day: Day) -> bool {
        self.0.lock().shares.iter().any(|held| held.day == day)
    }

    /// The shares of this day and later days. Owed units of earlier days are not kept, so no process may continue the
    /// shares of those days, even if the clock is set back.
    pub fn shares(&self, today: Day) -> Vec<HeldGraceShare> {
        self.0
            .lock()
            .shares
            .iter()
            .filter(|held| held.day >= today)
            .copied()
            .collect()
    }

    /// Removes all shares, so that nothing more is delivered on grace. Returns the shares of this day and later days.
    pub fn take_shares(&self, today: Day) -> Vec<HeldGraceShare> {
        let taken = self.shares(today);
        self.0.lock().shares.clear();
        taken
    }

    /// The claims for today and tomorrow that are due, with a new token for each day without a share. When a day
    /// begins, the claims are due immediately, because an outage could last until the next day.
    pub fn due_claims(
        &self,
        today: Day,
        node: u64,
        gateways: u32,
        now: Mono,
        token: impl Fn() -> Option<u64>,
    ) -> Vec<GraceClaim> {
        let entries = &mut *self.0.lock();
        if now < entries.next_claim && today == entries.claimed_on {
            return Vec::new();
        }
        entries.claimed_on = today;
        entries.shares.retain(|held| held.day >= today);
        entries.tokens.retain(|day, _| *day >= today);
        let days = [today, today.next()];
        let has_all = days
            .iter()
            .all(|day| entries.shares.iter().any(|held| held.day == *day));
        let wait = if has_all { CONFIRM_EVERY } else { CLAIM_EVERY };
        entries.next_claim = now.plus(std::time::Duration::from_secs(wait));
        let mut claims = Vec::new();
        for day in days {
            let held = entries.shares.iter().find(|held| held.day == day);
            let (share, life) = held.map_or((None, 0), |held| (Some(held.share), held.life));
            // An unanswered claim may have taken a share. Its token is used again, so that the gateway does not take a
            // second share.
            let waiting = held
                .map(|held| held.token)
                .or_else(|| entries.tokens.get(&day).copied());
            let Some(token) = waiting.or_else(&token) else {
                continue;
            };
            if share.is_none() {
                entries.tokens.insert(day, token);
            }
            claims.push(GraceClaim {
                day,
                gateways,
                held: share,
                token,
                life,
                node,
            });
        }
        claims
    }

    /// Makes all claims due immediately. Called after an outage.
    pub fn claim_soon(&self) {
        self.0.lock().next_claim = Mono::default();
    }

    /// Records the reply to a claim. Returns whether the shares changed.
    pub fn claimed(&self, claim: &GraceClaim, share: Option<GraceShare>) -> bool {
        let entries = &mut *self.0.lock();
        entries.tokens.remove(&claim.day);
        if share == claim.held {
            return false;
        }
        entries.shares.retain(|held| held.day != claim.day);
        if let Some(share) = share {
            let GraceClaim {
                day, token, life, ..
            } = *claim;
            entries.shares.push(HeldGraceShare {
                day,
                share,
                token,
                life,
            });
        } else {
            // Another process holds this share. Since another share may be free, the next claim is due immediately.
            entries.next_claim = Mono::default();
        }
        true
    }

    /// Lists an account that reserved units.
    pub fn list(&self, account: &Arc<Account>) {
        // The account is unlocked before the list is locked, because `drop_settled` takes the locks in the opposite
        // order.
        if !std::mem::replace(&mut account.state().is_uncharged, true) {
            self.0.lock().accounts.push(Arc::clone(account));
        }
    }

    /// The listed accounts.
    pub fn listed(&self) -> Vec<Arc<Account>> {
        self.0.lock().accounts.clone()
    }

    /// Removes from the list all accounts that owe nothing, and drops their reserves.
    pub fn drop_settled(&self, today: Day) {
        self.0.lock().accounts.retain(|account| {
            let mut state = account.state();
            // The decision is made under the lock of the account, so that a later reservation lists the account again.
            state.is_uncharged = state.owes_on(today);
            if !state.is_uncharged {
                state.drop_reserve();
            }
            state.is_uncharged
        });
    }
}
