//! Minute limits that gateways share: the applications with tokens here, and the tokens to return.
//! `limits::MinuteLease` decides about the number of requested tokens and about the time of a report.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use scoregate_base::clock::{Mono, Now};
use scoregate_base::keys::ApplicationId;
use scoregate_base::limits::{Limits, MinuteGrant, MinuteReport, NodeReport};
use scoregate_store::LedgerReport;

use crate::accounts::{Account, AccountState};

/// Tokens of minutes on this gateway.
#[derive(Default)]
pub(crate) struct SharedMinutes {
    /// The setting. `None` if this is the only gateway, which leases no tokens.
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

    /// The report about the account's tokens that goes with a report about its day, if one is due.
    pub(crate) fn report_if_due(
        &self,
        state: &mut AccountState,
        limits: &Limits,
        now: Mono,
    ) -> Option<MinuteReport> {
        let gateways = self.gateways()?;
        let lease = state.minute_lease();
        lease
            .is_due(now)
            .then(|| lease.report(limits.minute, gateways, now))
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
        let mut state = account.state();
        let lease = state.minute_lease();
        lease.apply(report, grant, asked, now);
        let is_leased = lease.is_leased(now);
        drop(state);
        if is_leased {
            // The account is unlocked here: elsewhere `holders` is locked first and then the accounts.
            self.holders.lock().insert(account.id, Arc::clone(account));
        }
    }

    /// Accounts whose leases of tokens should end.
    pub(crate) fn idle(&self, now: Mono) -> Vec<Arc<Account>> {
        let mut holders = self.holders.lock();
        // Only here do accounts without a lease leave the list.
        holders.retain(|_, account| account.state().minute_lease().is_leased(now));
        holders
            .values()
            .filter(|account| account.state().minute_lease().is_idle(now))
            .cloned()
            .collect()
    }

    /// The report that ends the account's lease of tokens, if it has one.
    pub(crate) fn release(account: &Account, state: &mut AccountState, now: Now) -> LedgerReport {
        let terms = account.terms();
        let minute = state.release_minute(terms.limits.minute, now.mono);
        let day = state.open_day(now.wall.day(), &terms.limits);
        let totals = NodeReport {
            known: day.totals(),
            ..NodeReport::default()
        };
        LedgerReport {
            minute,
            terms: Some(terms.assumed()),
            ..LedgerReport::of_units(account.id, day.day(), totals)
        }
    }

    /// Ends all leases of tokens, by reports that return them.
    pub(crate) fn drain(&self, now: Now) -> Vec<LedgerReport> {
        let holders = std::mem::take(&mut *self.holders.lock());
        holders
            .values()
            .map(|account| Self::release(account, &mut account.state(), now))
            .filter(|report| report.minute.is_some())
            .collect()
    }
}
