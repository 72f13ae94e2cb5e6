//! Units for requests: leases from the ledger, tokens of minute limits, grace while the ledger is unreachable, and the
//! return of units and tokens.

mod grace_book;
mod grace_charges;
mod grace_writer;
mod leases;
mod leases_ahead;
mod leasing_accounts;
mod ledger_access;
mod ledger_calls;
mod ledger_health;
mod ledger_upkeep;
mod shared_minutes;
#[cfg(test)]
mod tests_of_grace;
#[cfg(test)]
mod tests_of_settlement;

pub use leases::Leases;
pub use ledger_access::ServingFacts;
pub use ledger_calls::{LedgerCalls, LedgerWork, SpawnLedgerWork};
