//! Leases units from the ledger, keeps grace for the time without it, and returns what is not used.

mod grace;
mod leases;
mod ledger_access;
mod reported;
mod returns;

pub use leases::{Leases, LedgerWork, SpawnLedgerWork};
pub use ledger_access::ServingFacts;
