//! Grace: the shares that this gateway registers for, and decisions while the ledger is unreachable.

use std::sync::Arc;

use crate::accounts::account::Account;
use crate::accounts::grace_charges::GraceCharges;
use crate::instruments::UnreachableDecision;
use scoregate_base::limits::LeaseAvailability;
use scoregate_store::{OwedFile, StoreError};

use super::leases::Leases;

impl Leases {
    /// Reads what an earlier process saved in `file`, and saves uncharged units there. With a shared ledger this process
    /// continues the shares of grace of the one before it.
    pub async fn carrying(mut self, file: OwedFile) -> Self {
        self.grace = GraceCharges::opened(file, self.node, self.gateways().is_some()).await;
        self.instruments.holds_grace_share(self.holds_grace_share());
        self
    }

    /// Registers for a share of today's grace, and of tomorrow's shortly before midnight. Called every second.
    pub async fn keep_grace_share(&self) {
        if !self.is_unreachable() {
            self.grace.claim(&*self.ledger, self.max_gateways().get(), self.clock.now()).await;
        }
        self.instruments.holds_grace_share(self.holds_grace_share());
    }

    /// Repeats the lease that failed if no request has tried for a while. Called every second.
    pub fn retry_lease(self: &Arc<Self>) {
        if self.health.is_idle(self.clock.now().mono)
            && let Some(account) = self.failed_lease.load_full()
        {
            self.lease_ahead(&account);
        }
    }

    /// Whether this gateway can deliver to paid applications without the ledger: it holds a share of today's grace.
    pub fn holds_grace_share(&self) -> bool {
        self.grace.holds_share(self.clock.now().wall.day())
    }

    /// Whether the ledger cannot be used now, as far as known.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.health.is_unreachable() || self.key_freshness.is_copied()
    }

    /// Units that the account may use without the ledger.
    pub(crate) fn without_ledger(&self, account: &Account) -> LeaseAvailability {
        self.unreachable_with(self.grace.part(account, self.clock.now().wall.day()))
    }

    fn unreachable_with(&self, grace: u32) -> LeaseAvailability {
        let since = self.health.unreachable_since().max(self.started);
        LeaseAvailability::Unreachable { grace, since }
    }

    /// Reserves units that the account may owe, and returns what it may use then: no grace if they cannot be reserved.
    pub(crate) async fn reserve_grace(&self, account: &Arc<Account>) -> LeaseAvailability {
        let reserving = self.clock.within(self.timeout, self.grace.reserve(account));
        let is_reserved = reserving.await.unwrap_or(false);
        if is_reserved { self.without_ledger(account) } else { self.unreachable_with(0) }
    }

    /// Counts a unit that is delivered on grace.
    pub(crate) fn delivers_on_grace(&self) {
        self.instruments.decided_while_unreachable(UnreachableDecision::Grace);
    }

    /// Counts a request that found no unit or no token, and no ledger.
    pub(crate) fn refused(&self) {
        self.instruments.decided_while_unreachable(UnreachableDecision::Refused);
    }

    /// Charges units that earlier processes delivered on grace. A failed charge is repeated before the next lease.
    pub async fn charge_carried(&self) -> Result<(), StoreError> {
        self.grace.charge_carried(&*self.ledger, self.clock.now().wall.day()).await
    }

    /// Charges units delivered on grace once the ledger is reachable. Called every few seconds.
    pub async fn charge_owed(self: &Arc<Self>) {
        for account in self.grace.uncharged_on(self.clock.now().wall.day()).await {
            self.lease_ahead(&account);
        }
    }
}
