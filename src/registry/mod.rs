//! Changes to applications, keys and owners. A change is first made durable, then takes effect in this process
//! immediately.
//!
//! The command line, the side port, the account pages and `demo` make changes only through this module. On a running
//! server, the key directory is also changed. On a stopped server, only the store is changed. `KeyChanges` makes one
//! change at a time. `DirectoryKeeper` applies changes made elsewhere.

mod actor;
mod attachments;
mod directory_keeper;
mod field_change;
mod key_changes;
mod key_import;
mod leaked_keys;
mod letter;
mod local_copy_writer;
mod new_application;
mod notice_sweep;
mod notice_texts;
mod owner_administration;
mod owner_mail;
mod registrar;
mod registrar_error;
mod store_monitor;
#[cfg(test)]
mod test_gateway;
#[cfg(test)]
mod tests_of_owners;
#[cfg(test)]
mod tests_of_uses;

pub use actor::Actor;
pub use directory_keeper::{AdoptError, DirectoryKeeper};
pub use field_change::{DescriptionChange, FieldChange, given};
pub use key_changes::KeyChanges;
pub use key_import::{BadField, ImportedKey, KeyRecord};
pub use leaked_keys::{LeakAction, LeakSettings, LeakedKey, LeakedKeys};
pub use local_copy_writer::LocalCopyWriter;
pub use new_application::{IssuedKey, KeyDetails, NewApplication, OwnerAddress};
pub use notice_sweep::NoticeSweep;
pub use notice_texts::NoticeTexts;
pub use owner_administration::OwnerAdministration;
pub use owner_mail::{
    ContactOutcome, ContactRequest, ContactSelection, NoticeSettings, OwnerMail, UnreachedOwner,
};
pub use registrar::Registrar;
pub use registrar_error::RegistrarError;
pub use store_monitor::StoreMonitor;
