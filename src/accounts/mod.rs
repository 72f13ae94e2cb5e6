//! Known keys and their applications: directory, terms and balances.
//!
//! `store` makes changes durable. The arithmetic of limits is in `limits`. Units come from `quota`, and changes from
//! `registry`.

mod account;
mod account_state;
mod admission_step;
mod balance_ahead;
mod key_directory;
mod key_freshness;
#[cfg(test)]
mod preemption;
#[cfg(test)]
mod sample;
mod settlement_state;
mod terms;
#[cfg(test)]
mod tests_of_account_state;
#[cfg(test)]
mod tests_of_key_directory;
mod unrecorded_requests;
mod usage_counts;
mod window_state;

pub use account::Account;
pub(crate) use account_state::{AccountState, Charge, LeaseCall, charged_day};
pub(crate) use admission_step::{AdmissionEnd, AdmissionStep, Shortage, UnitSupply};
pub use key_directory::KeyDirectory;
pub use key_directory::KeyFault;
pub(crate) use key_directory::KeyLookup;
pub(crate) use key_freshness::CATCH_UP_TIMEOUT;
pub use key_freshness::{KeyFreshness, KeysOutdated};
#[cfg(test)]
pub(crate) use preemption::{SCHEDULED, switch_here};
#[cfg(test)]
pub(crate) use sample::stored;
pub use terms::{Terms, TermsByTier};
pub(crate) use unrecorded_requests::{CountedRequest, DocumentUse, KindCount, RequestKind};
pub use usage_counts::{CountedRequests, RequestCounts};
pub(crate) use usage_counts::{UsageCounts, minute_of};
