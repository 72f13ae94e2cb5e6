//! Reports of this process about itself: its number, units held and units delivered.

use std::num::NonZeroU32;

use scoregate_base::clock::Day;
use scoregate_store::{StoreError, UsageStore};

use super::leases::Leases;

impl Leases {
    /// The number that identifies this process in the ledger.
    pub(in crate::accounts) const fn node(&self) -> u64 {
        self.node
    }

    /// The largest number of gateways on the ledger.
    pub(in crate::accounts) fn max_gateways(&self) -> NonZeroU32 {
        self.gateways().unwrap_or(NonZeroU32::MIN)
    }

    /// Units of `today` that are leased and not delivered.
    pub(in crate::accounts) fn held(&self, today: Day) -> u64 {
        self.delivered.held(today)
    }

    /// Records the units delivered since the last call as usage.
    pub(in crate::accounts) async fn record_delivered(
        &self,
        store: &dyn UsageStore,
        today: Day,
    ) -> Result<(), StoreError> {
        self.delivered.record(store, self.node, today).await
    }
}

#[cfg(test)]
impl Leases {
    /// Number of accounts whose delivered units are recorded.
    pub(in crate::accounts) fn listed(&self) -> usize {
        self.delivered.count()
    }
}
