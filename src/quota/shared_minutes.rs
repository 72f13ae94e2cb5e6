//! Minute limits that gateways share: the applications that hold tokens in this process, and the tokens to return.
//! `limits::MinuteLease` decides how many tokens to request and when to report.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use parking_lot::Mutex;

use scoregate_base::{
    clock::{Mono, Now},
    keys::ApplicationId,
    limits::{Limits, MinuteGrant, MinuteReport, NodeReport},
};
use scoregate_store::LedgerReport;

use crate::accounts::{Account, AccountState};

/// Tokens of minute limits on this gateway.
#[derive(Default)]
pub struct SharedMinutes {
    /// The configured number of gateways. `None` if this is the only gateway, which does not lease tokens.
    setting: Option<NonZeroU32>,
    /// The number by which the limit is divided: the setting, or the number of live gateways if that is larger. 0 if
    /// there is no setting.
    gateways: AtomicU32,
    holders: Mutex<HashMap<ApplicationId, Arc<Account>>>,
}

impl SharedMinutes {
    pub fn among(setting: NonZeroU32) -> Self {
        Self {
            setting: Some(setting),
            gateways: setting.get().into(),
            holders: Mutex::default(),
        }
    }

    pub fn gateways(&self) -> Option<NonZeroU32> {
        // The number is read independently of other values, so no ordering is needed.
        NonZeroU32::new(self.gateways.load(Ordering::Relaxed))
    }

    /// Records the number of live gateways. Returns the setting, and whether the number has just exceeded it.
    pub fn found_live(&self, live: u32) -> (NonZeroU32, bool) {
        let Some(setting) = self.setting else {
            return (NonZeroU32::MIN, false);
        };
        let before = self
            .gateways
            // The number is never below the setting, which includes gateways that are not running at the moment.
            .swap(setting.get().max(live), Ordering::Relaxed);
        (setting, before == setting.get() && live > before)
    }

    /// The report about the account's tokens, if one is due. It is sent with the report about the day.
    pub fn report_if_due(
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

    /// Applies the reply to a report that was created at `asked`.
    pub fn apply(
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
            // The account must not be locked here, because elsewhere `holders` is locked before the accounts.
            self.holders.lock().insert(account.id, Arc::clone(account));
        }
    }

    /// Accounts whose token leases should end.
    pub fn idle(&self, now: Mono) -> Vec<Arc<Account>> {
        let mut holders = self.holders.lock();
        // Accounts without a lease are removed from the list only here.
        holders.retain(|_, account| account.state().minute_lease().is_leased(now));
        holders
            .values()
            .filter(|account| account.state().minute_lease().is_idle(now))
            .cloned()
            .collect()
    }

    /// The report that ends the account's token lease, if it has one.
    pub fn release(account: &Account, state: &mut AccountState, now: Now) -> LedgerReport {
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

    /// Ends all token leases. Returns the reports that return the tokens.
    pub fn drain(&self, now: Now) -> Vec<LedgerReport> {
        let holders = std::mem::take(&mut *self.holders.lock());
        holders
            .values()
            .map(|account| Self::release(account, &mut account.state(), now))
            .filter(|report| report.minute.is_some())
            .collect()
    }
}
