//! Known keys and their applications: directory, terms, balances, leases, and changes to them.
//!
//! Durability is the job of `store`; the arithmetic of limits is in `limits`.

mod account;
mod account_state;
mod admission_step;
mod application_usage;
mod changes;
mod delivered_units;
mod evidence_book;
mod grace_book;
mod grace_charges;
mod grace_writer;
mod key_directory;
mod key_freshness;
mod leasing;
mod ledger_health;
mod node_reporter;
#[cfg(test)]
pub(crate) mod preemption;
mod request_counter;
#[cfg(test)]
pub(crate) mod sample;
mod shared_minutes;
mod terms;
#[cfg(test)]
mod tests_of_account_state;
#[cfg(test)]
mod tests_of_grace;
#[cfg(test)]
mod tests_of_key_directory;
mod unrecorded_requests;
mod usage_counts;

pub use account::Account;
pub(crate) use account_state::{Charge, charged_day};
pub(crate) use admission_step::{AdmissionEnd, AdmissionStep, Shortage, UnitSupply};
pub use application_usage::{ApplicationUse, RemainingAllowance};
pub use changes::{
    Actor, AdoptError, BadField, ContactOutcome, ContactRequest, ContactSelection,
    DescriptionChange, DirectoryKeeper, FieldChange, ImportedKey, IssuedKey, KeyChanges,
    KeyDetails, KeyRecord, LeakAction, LeakSettings, LeakedKey, LeakedKeys, LocalCopyWriter,
    NewApplication, NoticeSettings, NoticeSweep, NoticeTexts, OwnerAdministration, OwnerMail,
    Registrar, RegistrarError, StoreMonitor,
};
pub use key_directory::KeyDirectory;
pub use key_directory::KeyFault;
pub(crate) use key_directory::KeyLookup;
pub use key_freshness::{KeyFreshness, KeysOutdated};
pub use leasing::{Leases, LedgerCalls, LedgerWork, ServingFacts, SpawnLedgerWork};
pub use node_reporter::{CatalogueSize, NodeReporter};
pub use request_counter::RequestCounter;
pub use terms::{Terms, TermsByTier};
pub(crate) use unrecorded_requests::{CountedRequest, DocumentUse, RequestKind};
pub use usage_counts::{CountedRequests, RequestCounts};
pub(crate) use usage_counts::{UsageCounts, minute_of};
