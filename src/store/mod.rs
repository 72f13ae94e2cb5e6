//! The door to what must outlive the process: applications, their keys, and the ledger of what was granted.
//!
//! The door carries data at the grain of one decision, asynchronously, with the units and the node named, so that one
//! file on this machine and one server for many machines can both stand behind it. Whatever answers `Ok` is durable.
//! Not for: deciding anything (`limits` does), nor for the hot path: a lookup never comes here.

mod applications;
#[cfg(test)]
mod conformance;
mod disk_mirror;
mod embedded;
mod ledger;
mod owed;

use std::future::Future;
use std::pin::Pin;

use crate::clock::{Day, Wall};
use crate::keys::ApplicationId;

pub use applications::{
    ApplicationPage, AuditQuery, AuditRecord, ChangeKind, KeyUse, OwnLimits, StoreChange, StoredApplication,
    StoredKey,
};
pub use disk_mirror::{Mirror, MirrorContents, MirrorError, MirrorRecord, RecordFlaw, RejectedRecord};
pub use embedded::{Embedded, maintenance};
pub use ledger::{LeaseReply, LeaseRequest, LeaseReturn, OwedUnits};
pub use owed::OwedFile;

/// What a call of the door gives: an answer that may take a while.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such application.
    #[error("there is no application {0}; `scoregate keys list` lists all")]
    UnknownApplication(ApplicationId),
    /// The application has no such key.
    #[error("application {0} has no such key; `scoregate keys show {0}` lists its keys")]
    UnknownKey(ApplicationId),
    /// An application or a key with this identity is already there.
    #[error("{0} already exists")]
    Exists(&'static str),
    /// The store cannot be reached or written. Nothing counts as done; a disk that failed in the last moment may
    /// still bring it back after a crash.
    #[error("the store cannot {doing}: {reason}")]
    Unavailable {
        /// What it was doing.
        doing: &'static str,
        /// What went wrong.
        reason: String,
    },
    /// The store's content is not what it should be.
    #[error("the store at {path} is damaged: {reason}. Run `scoregate store check` to see what is readable")]
    Damaged {
        /// Where it lies.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The store was written by a newer version of the program.
    #[error(
        "the store at {path} has format {found}; this program knows formats up to {known}. \
         Start the newer program again, or import the backup it made beside the file before it upgraded"
    )]
    Newer {
        /// Where it lies.
        path: String,
        /// Its format.
        found: u32,
        /// The newest format known.
        known: u32,
    },
}

impl StoreError {
    /// Whether the store failed, in contrast to an asker who asked for what cannot be.
    pub const fn is_failure(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Damaged { .. } | Self::Newer { .. } => true,
            Self::UnknownApplication(_) | Self::UnknownKey(_) | Self::Exists(_) => false,
        }
    }
}

/// The door. Instants are kept to the millisecond.
pub trait Store: Send + Sync + 'static {
    /// Up to `most` applications after `after`, with what is granted of `day`.
    fn page(&self, after: Option<ApplicationId>, most: usize, day: Day) -> StoreFuture<'_, ApplicationPage>;

    /// One application, with what is granted of `day`. Fails if its record cannot be read; a key that cannot be read
    /// is left out.
    fn application(&self, id: ApplicationId, day: Day) -> StoreFuture<'_, Option<StoredApplication>>;

    /// The newest day of which units were ever leased. Earlier days are closed.
    fn newest_day(&self) -> StoreFuture<'_, Option<Day>>;

    /// Makes a change and its audit record durable, both or neither, and answers with the application as it now is
    /// (`granted` of the day in which the change lies). Where its record cannot be read, a change that gives no key is
    /// made all the same, and answered without the keys that are not revoked: none of them is in force.
    fn change(&self, change: StoreChange) -> StoreFuture<'_, StoredApplication>;

    /// Remembers when keys were last used. Those that are not there, or were used later already, are passed over.
    fn used(&self, keys: Vec<KeyUse>) -> StoreFuture<'_, ()>;

    /// Changes that were made, newest first.
    fn audit(&self, ask: AuditQuery) -> StoreFuture<'_, Vec<AuditRecord>>;

    /// What is wrong with the store itself, if anything was found at work. Somebody has to mend it.
    fn damage(&self) -> Option<String>;

    /// Why nothing can be written durably for now, where that is known without an attempt: the store's file was moved,
    /// deleted or replaced. May ask the file system.
    fn misplaced(&self) -> Option<String>;

    /// Grants as much of a wish as the quota leaves, durably, before it answers. A wish for nothing opens the day and
    /// asks for the total. An asker that leaves before the answer forfeits what it was granted.
    fn lease(&self, ask: LeaseRequest) -> StoreFuture<'_, LeaseReply>;

    /// Adds units to what is granted of their day, each entry once, however often it is sent. Units of a closed day, or of
    /// an application that does not exist, are dropped.
    fn charge(&self, owed: Vec<OwedUnits>, at: Wall) -> StoreFuture<'_, ()>;

    /// Takes units back. Units of a closed day are worth nothing and are dropped, and so are those of an application
    /// that is not there. Never repeat it after an error: it may have been done, and units given back twice could be
    /// granted twice; units that are lost only cost their caller a little.
    fn give_back(&self, units: Vec<LeaseReturn>) -> StoreFuture<'_, ()>;
}
