//! The health of an engine. The values are in `database_status`.

use super::{DatabaseStatus, ExchangeCounts, StoreFuture};

/// The health of an engine.
pub trait StoreHealth: Send + Sync + 'static {
    /// Damage of the store found while running. An operator has to repair it.
    fn damage(&self) -> Option<String> {
        None
    }

    /// Why nothing can be written durably, if that is known without an attempt: the store file was moved, deleted or
    /// replaced. May access the file system.
    fn missing_or_replaced(&self) -> Option<String> {
        None
    }

    /// The state of a shared database; `None` for an engine without one.
    fn database_status(&self) -> StoreFuture<'_, Option<DatabaseStatus>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Exchanges of the ledger with a shared database; none without one.
    fn exchange_counts(&self) -> ExchangeCounts {
        ExchangeCounts::default()
    }
}
