//! Minute limits that gateways share: the applications with a share here, and the shares to return.
//! `limits::MinuteShare` decides about the size and the end of a share.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use scoregate_base::clock::{Mono, Now};
use scoregate_base::keys::ApplicationId;
use scoregate_base::limits::{Limits, MinuteGrant, MinuteReport, MinuteShare, NodeReport};
use scoregate_store::LedgerReport;

use crate::accounts::{Account, AccountState};

/// Shares of minutes on this gateway.
#[derive(Default)]
pub(crate) struct SharedMinutes {
    /// The setting. `None` if this is the only gateway, which needs no shares.
    setting: Option<NonZeroU32>,
    /// The number by which the limit is divided: the setting, or the number of live gateways if that is larger. 0 without a
    /// setting.
    gateways: AtomicU32,
    holders: Mutex<HashMap<ApplicationId, Arc<Account>>>,
}

impl SharedMinutes {
    pub(crate) fn among(setting: NonZeroU32) -> Self {
        Self {
            setting: Some(setting),
            gateways: setting.get().into(),
            holders: Mutex::default(),
        }
    }

    pub(crate) fn gateways(&self) -> Option<NonZeroU32> {
        // The number is read independently of other values, so no ordering is needed.
        NonZeroU32::new(self.gateways.load(Ordering::Relaxed))
    }

    /// Records the number of live gateways. Returns the setting, and whether the number has just exceeded it.
    pub(crate) fn found_live(&self, live: u32) -> (NonZeroU32, bool) {
        let Some(setting) = self.setting else {
            return (NonZeroU32::MIN, false);
        };
        let before = self
            .gateways
            // It is never below the setting, which includes gateways that do not run at the moment.
            .swap(setting.get().max(live), Ordering::Relaxed);
        (setting, before == setting.get() && live > before)
    }

    /// The report about the account's share that goes with a report about its day, if one is due.
    pub(crate) fn report_if_due(
        &self,
        state: &mut AccountState,
        limits: &Limits,
        now: Mono,
    ) -> Option<MinuteReport> {
        let gateways = self.gateways()?.get();
        state.change_share(|share, tokens| {
            if !share.is_due(tokens, limits, now) {
                return (tokens, None);
            }
            let (tokens, report) = share.report(tokens, limits, gateways, now);
            (tokens, Some(report))
        })
    }

    /// Applies the reply to a report that was made at `asked`.
    pub(crate) fn apply(
        &self,
        account: &Arc<Account>,
        report: &MinuteReport,
        grant: &MinuteGrant,
        asked: Mono,
        now: Mono,
    ) {
        account
            .state()
            .change_share(|share, tokens| (share.apply(tokens, report, grant, asked, now), ()));
        if grant.capacity > 0 {
            // The account is unlocked here: elsewhere `holders` is locked first and then the accounts.
            self.holders.lock().insert(account.id, Arc::clone(account));
        }
    }

    /// Whether another gateway may return tokens that the account needs.
    pub(crate) fn awaits_recall(account: &Account, now: Mono) -> bool {
        let limit = account.terms().limits.minute;
        account
            .state()
            .change_share(|share, tokens| (tokens, share.awaits_recall(tokens, limit, now)))
    }

    /// An account with a share here.
    pub(crate) fn holder(&self) -> Option<Arc<Account>> {
        self.holders.lock().values().next().cloned()
    }

    /// Reduces all shares to the parts that gateways use while the ledger is unreachable.
    pub(crate) fn reduce(&self, now: Mono) {
        let gateways = self.gateways().map_or(1, NonZeroU32::get);
        for account in self.holders.lock().values() {
            let limit = account.terms().limits.minute;
            account.state().change_share(|share, tokens| {
                let reduced = share.reduce(tokens, limit, gateways, now);
                (reduced, ())
            });
        }
    }

    /// Accounts whose shares should be returned, because they are recalled or not in use.
    pub(crate) fn to_return(
        &self,
        recalled: &HashSet<ApplicationId>,
        now: Mono,
    ) -> Vec<Arc<Account>> {
        let mut holders = self.holders.lock();
        // Accounts whose shares have ended are removed from the list only here.
        holders.retain(|_, account| account.state().has_share(now));
        let is_due = |account: &&Arc<Account>| {
            recalled.contains(&account.id) || account.state().has_idle_share(now)
        };
        holders.values().filter(is_due).cloned().collect()
    }

    /// The report that returns the account's share, if it has one, or half of it if `in_use`.
    pub(crate) fn release(
        account: &Account,
        state: &mut AccountState,
        in_use: bool,
        now: Now,
    ) -> LedgerReport {
        let terms = account.terms();
        let limit = terms.limits.minute;
        let release =
            |share: &mut MinuteShare, tokens| share.release(tokens, limit, in_use, now.mono);
        let minute = state
            .has_share(now.mono)
            .then(|| state.change_share(release));
        let day = state.open_day(now.wall.day(), &terms.limits);
        let totals = NodeReport {
            known: day.totals(),
            ..NodeReport::default()
        };
        let terms = Some(terms.assumed());
        LedgerReport {
            application: account.id,
            day: day.day(),
            totals,
            windows: Vec::new(),
            minute,
            terms,
        }
    }

    /// Removes all shares, and returns the reports that return them to the ledger.
    pub(crate) fn drain(&self, now: Now) -> Vec<LedgerReport> {
        let holders = std::mem::take(&mut *self.holders.lock());
        let holders = holders
            .values()
            .filter(|account| account.state().has_share(now.mono));
        holders
            .map(|account| Self::release(account, &mut account.state(), false, now))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::accounts::{TermsByTier, stored};
    use crate::quota::shared_minutes::*;
    use scoregate_base::clock::Day;
    use scoregate_base::plans::standard_tiers;

    #[test]
    fn without_the_ledger_a_gateway_keeps_a_part_of_a_share() {
        let stored = stored("pro", &["key"]);
        let terms = TermsByTier::new(&standard_tiers(), 60)
            .of("pro", stored.own)
            .unwrap();
        let limits = terms.limits;
        let account = Arc::new(Account::new(&stored, terms, Day::default()));
        let minutes = SharedMinutes::among(NonZeroU32::new(3).unwrap());
        let now = Mono::from_nanos(5);
        let report = minutes.report_if_due(&mut account.state(), &limits, now);
        let report = report.unwrap();
        let grant = MinuteGrant {
            round: report.round,
            capacity: limits.minute,
            tokens: i64::from(limits.minute) * 1_000_000,
            ..MinuteGrant::default()
        };
        minutes.apply(&account, &report, &grant, now, now);
        let capacity = || {
            let state = account.state();
            state
                .known_share()
                .unwrap()
                .capacity(limits.minute, now, true)
        };
        assert_eq!(capacity(), limits.minute);
        minutes.reduce(now);
        assert_eq!(capacity(), limits.minute / 3);
    }
}
