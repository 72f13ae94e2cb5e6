//! Which keys exist, and what their applications may do: directory, terms, balances, leases, and changes to them.
//!
//! Not for: what is durable (`store`), nor for the arithmetic of limits (`limits`).

mod account;
mod key_directory;
mod leases;
mod ledger_health;
#[cfg(test)]
pub(crate) mod preemption;
mod registrar;
mod terms;

pub use account::Account;
pub use key_directory::KeyDirectory;
pub use leases::{Leases, LedgerWork, SpawnLedgerWork};
pub use registrar::{
    AdoptError, BadField, FieldChange, ImportedKey, IssuedKey, KeyRecord, NewApplication, Registrar,
    RegistrarError,
};
pub use terms::{Terms, TermsByTier};
