//! Accounts that leased units recently, for counting the units that this process holds. Counting does not slow down
//! requests.

use std::sync::Arc;

use parking_lot::Mutex;

use scoregate_base::clock::Day;

use crate::accounts::Account;

/// Accounts that leased units recently.
#[derive(Default)]
pub struct LeasingAccounts {
    /// Each account once.
    accounts: Mutex<Vec<Arc<Account>>>,
    /// The day on which outdated entries were last removed.
    cleaned_on: Mutex<Day>,
}

impl LeasingAccounts {
    /// Lists an account. The caller has marked it as listed.
    pub fn list(&self, account: &Arc<Account>) {
        self.accounts.lock().push(Arc::clone(account));
    }

    /// Units of `today` leased and not delivered.
    pub fn held(&self, today: Day) -> u64 {
        self.clean(today);
        // The list is copied, so that a request that adds its account to the list does not wait for this loop over all accounts.
        let accounts = self.accounts.lock().clone();
        accounts
            .iter()
            .map(|account| account.state().day().on(today).unspent())
            .map(u64::from)
            .sum()
    }

    /// The accounts.
    pub fn all(&self) -> Vec<Arc<Account>> {
        self.accounts.lock().clone()
    }

    /// Removes accounts that were used neither today nor yesterday. An account used yesterday may have units that were
    /// leased before midnight.
    fn clean(&self, today: Day) {
        // The lock is held until the list is clean, so that a concurrent reader counts no outdated entries.
        let mut cleaned_on = self.cleaned_on.lock();
        if *cleaned_on < today {
            *cleaned_on = today;
            self.accounts
                .lock()
                .retain(|account| account.state().remains_listed(today));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::accounts::{TermsByTier, stored};
    use crate::quota::leasing_accounts::*;
    use scoregate_base::plans::standard_tiers;

    #[test]
    fn an_account_is_listed_until_the_day_after_its_last_use_and_again_with_the_next_one() {
        let leasing = LeasingAccounts::default();
        let day = |after: u32| Day::from_number(20_413 + after);
        let stored = stored("pro", &[]);
        let terms = TermsByTier::new(&standard_tiers(), 60)
            .of("pro", stored.own)
            .unwrap();
        let limits = terms.limits;
        let account = Arc::new(Account::new(&stored, terms, day(0)));
        let lease = |today| {
            account.state().open_day(today, &limits);
            if account.state().mark_listed() {
                leasing.list(&account);
            }
        };
        lease(day(0));
        lease(day(0));
        for (after, expected) in [(0, 1), (1, 1), (2, 0), (3, 0)] {
            assert_eq!(leasing.held(day(after)), 0);
            assert_eq!(leasing.accounts.lock().len(), expected, "{after}");
        }
        lease(day(4));
        leasing.held(day(4));
        assert_eq!(leasing.accounts.lock().len(), 1);
    }
}
