//! Leases units from the ledger, keeps grace for the time without it, and returns what is not used.

mod leases;
mod leases_ahead;
mod ledger_access;
mod ledger_calls;
mod ledger_upkeep;

pub use leases::Leases;
pub use ledger_access::ServingFacts;
pub use ledger_calls::{LedgerCalls, LedgerWork, SpawnLedgerWork};
