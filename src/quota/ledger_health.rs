//! Whether the ledger is reachable, according to the result of the last call. While it is unreachable, no request waits for it,
//! and background leases probe it.
//!
//! `limits` has the decisions that apply while it is unreachable.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use scoregate_base::clock::Mono;

use crate::accounts::Account;

/// Reachability of the ledger. While the ledger is unreachable, this contains the failure that started the outage.
#[derive(Debug, Default)]
pub struct LedgerHealth(ArcSwapOption<LedgerFailure>);

/// A failed or late call.
#[derive(Debug)]
pub struct LedgerFailure {
    pub at: Mono,
    /// The account that needed units last. The next attempt leases for it.
    pub account: Arc<Account>,
}

impl LedgerHealth {
    /// Whether the last call failed.
    pub fn is_unreachable(&self) -> bool {
        self.0.load().is_some()
    }

    /// The failure that began the current outage.
    pub fn failure(&self) -> Option<Arc<LedgerFailure>> {
        self.0.load_full()
    }

    /// Records a failed or late call. Returns `true` if the ledger was reachable before.
    pub fn failed(&self, account: &Arc<Account>, at: Mono) -> bool {
        let account = Arc::clone(account);
        let failure = Some(Arc::new(LedgerFailure { at, account }));
        let none = None::<Arc<LedgerFailure>>;
        // The first failure is kept: it has the time at which the outage began. Only the caller that recorded it logs the outage.
        self.0.compare_and_swap(&none, failure).is_none()
    }

    /// Makes the next attempt lease units for this account, because attempts for another account may fail for a reason that
    /// affects only that other account.
    pub fn is_needed_by(&self, account: &Arc<Account>) {
        self.0.rcu(|failure| {
            let at = failure.as_ref()?.at;
            let account = Arc::clone(account);
            Some(Arc::new(LedgerFailure { at, account }))
        });
    }

    /// Clears the failure. Returns `true` if the ledger was unreachable before.
    pub fn clear(&self) -> bool {
        // There is rarely anything to clear, so the shared value is read before it is written.
        self.is_unreachable() && self.0.swap(None).is_some()
    }
}

#[cfg(test)]
mod tests {
    use crate::accounts::{TermsByTier, stored};
    use crate::quota::ledger_health::*;
    use scoregate_base::clock::Day;
    use scoregate_base::plans::standard_tiers;

    fn account() -> Arc<Account> {
        let stored = stored("pro", &["key"]);
        let terms = TermsByTier::new(&standard_tiers(), 60);
        let of_tier = terms.of("pro", stored.own).unwrap();
        Arc::new(Account::new(&stored, of_tier, Day::default()))
    }

    #[test]
    fn a_failure_lasts_until_a_call_succeeds_and_the_last_account_in_need_is_next() {
        let health = LedgerHealth::default();
        let first = account();
        let next = account();
        let start = Mono::from_nanos(5);
        health.is_needed_by(&first);
        assert!(!health.is_unreachable() && !health.clear());
        assert!(health.failed(&first, start));
        assert!(!health.failed(&next, Mono::from_nanos(6)));
        assert!(Arc::ptr_eq(&health.failure().unwrap().account, &first));
        health.is_needed_by(&next);
        let failure = health.failure().unwrap();
        assert!(Arc::ptr_eq(&failure.account, &next) && failure.at == start);
        assert!(health.clear() && !health.clear() && !health.is_unreachable());
    }
}
