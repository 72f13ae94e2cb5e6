//! The door to what must outlive the process: applications, their keys, and the ledger of what was granted.
//!
//! The door carries data at the grain of one decision, asynchronously, with the units and the node named, so that one
//! file on this machine and one server for many machines can both stand behind it. Whatever answers `Ok` is durable.
//! Not for: deciding anything (`limits` does), nor for the hot path: a lookup never comes here.

#[cfg(test)]
mod conformance;
mod embedded;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use crate::clock::{Day, Wall};
use crate::keys::{ApplicationId, Digest};

pub use embedded::Embedded;

/// What a call of the door gives: an answer that may take a while.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// An application as stored, with its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredApplication {
    /// Its identifier.
    pub id: ApplicationId,
    /// Its name, for people.
    pub name: String,
    /// The name of its tier. Whether such a tier is configured is not the store's business.
    pub tier: String,
    /// Limits of its own, which win over the tier's.
    pub own: OwnLimits,
    /// How to reach its owner.
    pub contact: Option<String>,
    /// A remark for people.
    pub note: Option<String>,
    /// When it was created.
    pub created_at: Wall,
    /// Its keys, oldest first; revoked and expired ones too.
    pub keys: Vec<StoredKey>,
    /// Units of the day asked about that the ledger has granted so far, to any node.
    pub granted: u64,
}

/// Limits that an application has of its own; what is absent follows the tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnLimits {
    /// Requests a minute.
    pub minute: Option<u32>,
    /// Requests a day.
    pub day: Option<u32>,
}

/// A key as stored: never the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKey {
    /// Its SHA-256.
    pub digest: Digest,
    /// Its first characters, to tell keys apart.
    pub shown: String,
    /// When it was created.
    pub created_at: Wall,
    /// From when on it is refused, if ever.
    pub expires_at: Option<Wall>,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Wall>,
}

/// A page of applications, in the order of their identifiers.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The applications.
    pub applications: Vec<StoredApplication>,
    /// Records that could not be read and were passed over, each with the reason; to be counted and alarmed.
    pub skipped: Vec<String>,
    /// The identifier to go on after; `None` when this was the last page.
    pub next: Option<ApplicationId>,
}

/// A change to applications or keys, with who made it and when, for the audit trail.
#[derive(Clone, Debug)]
pub struct Change {
    /// When.
    pub at: Wall,
    /// Who, in words: `cli:root`, `admin-api`, `demo`.
    pub who: String,
    /// Which application it is about.
    pub application: ApplicationId,
    /// What changes.
    pub what: What,
}

/// What a change does. Each is atomic.
#[derive(Clone, Debug)]
pub enum What {
    /// A new application.
    Create {
        /// Its name.
        name: String,
        /// Its tier's name.
        tier: String,
        /// Its own limits.
        own: OwnLimits,
        /// Its owner's address.
        contact: Option<String>,
        /// A remark.
        note: Option<String>,
        /// Its first key.
        key: StoredKey,
    },
    /// A further key; the keys in force until now are refused from `retire_others_at` on.
    Rotate {
        /// The new key.
        key: StoredKey,
        /// When the older ones end, unless they end sooner.
        retire_others_at: Wall,
    },
    /// One key is refused from now on.
    RevokeKey {
        /// Which.
        digest: Digest,
    },
    /// All keys are refused from now on.
    RevokeAll,
    /// Another tier.
    SetTier {
        /// Its name.
        tier: String,
    },
}

impl What {
    /// The word for it in the audit trail.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Rotate { .. } => "rotate",
            Self::RevokeKey { .. } => "revoke_key",
            Self::RevokeAll => "revoke_all",
            Self::SetTier { .. } => "set_tier",
        }
    }
}

/// A wish to lease units of a day's quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseAsk {
    /// For which application.
    pub application: ApplicationId,
    /// Which gateway asks: a number of its own for each life of each gateway.
    pub node: u64,
    /// Units of which day.
    pub day: Day,
    /// How many it would like.
    pub want: u32,
    /// The quota in force. What is granted in all never exceeds it.
    pub quota: u32,
}

/// What the ledger says to a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// So many units are the node's to spend, perhaps none; and so many are granted in all, to any node, with these.
    Granted {
        /// Units for the node.
        units: u32,
        /// Units granted of that day in all.
        total: u64,
    },
    /// That day is closed: a later one, this, was already opened. Nothing was granted.
    Closed {
        /// The newest day that was opened.
        newest: Day,
    },
}

/// Units that a node leased, did not spend and returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GiveBack {
    /// Whose.
    pub application: ApplicationId,
    /// Which gateway returns them.
    pub node: u64,
    /// Of which day.
    pub day: Day,
    /// How many.
    pub units: u32,
}

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such application.
    #[error("there is no application {0}; `scoregate keys list` shows those there are")]
    UnknownApplication(ApplicationId),
    /// The application has no such key.
    #[error("application {0} has no such key; `scoregate keys show {0}` shows those it has")]
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
    #[error("the store at {path} is damaged: {reason}")]
    Damaged {
        /// Where it lies.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The store was written by a newer version of the program.
    #[error(
        "the store at {path} has format {found}; this program knows formats up to {known}. \
         Start the newer program again, or restore the backup it made beside the file before it upgraded"
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

/// The door. Instants are kept to the millisecond.
pub trait Store: Send + Sync + 'static {
    /// Up to `most` applications after `after`, with what is granted of `day`.
    fn page(&self, after: Option<ApplicationId>, most: usize, day: Day) -> Answer<'_, Page>;

    /// One application, with what is granted of `day`. Fails if its record cannot be read; a key that cannot be read
    /// is left out.
    fn application(&self, id: ApplicationId, day: Day) -> Answer<'_, Option<StoredApplication>>;

    /// The newest day of which units were ever leased. Earlier days are closed.
    fn newest_day(&self) -> Answer<'_, Option<Day>>;

    /// Makes a change and its audit record durable, both or neither, and answers with the application as it now is
    /// (`granted` of the day in which the change lies).
    fn change(&self, change: Change) -> Answer<'_, StoredApplication>;

    /// Grants as much of a wish as the quota leaves, durably, before it answers. A wish for nothing opens the day and
    /// asks for the total. An asker that leaves before the answer forfeits what it was granted.
    fn lease(&self, ask: LeaseAsk) -> Answer<'_, Lease>;

    /// Takes units back. Units of a closed day are worth nothing and are dropped, and so are those of an application
    /// that is not there. Never repeat it after an error: it may have been done, and units given back twice could be
    /// granted twice; units that are lost only cost their caller a little.
    fn give_back(&self, units: Vec<GiveBack>) -> Answer<'_, ()>;
}

/// Waits for an answer, or for several, where there is no runtime: in the command line and in tests. Blocks this
/// thread, so never call it from a task.
pub fn wait<F: Future>(answer: F) -> F::Output {
    struct Waiting(Thread);
    impl Wake for Waiting {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Waiting(std::thread::current())));
    let mut answer = pin!(answer);
    loop {
        match answer.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(told) => return told,
            Poll::Pending => std::thread::park(),
        }
    }
}
