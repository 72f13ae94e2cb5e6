//! Applications and keys as they are stored, and what can be changed about them.
//!
//! Inert data. Not for: what a tier allows, nor for how a change is carried out.

use crate::clock::Wall;
use crate::keys::{ApplicationId, Digest};

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
    /// The beginning of the hour in which it was last used, if it was. Told late, and the last minutes before a crash
    /// may be missing.
    pub last_used_at: Option<Wall>,
}

/// A page of applications, in the order of their identifiers.
#[derive(Clone, Debug, Default)]
pub struct ApplicationPage {
    /// The applications.
    pub applications: Vec<StoredApplication>,
    /// Records that could not be read and were passed over, each with the reason; to be counted and alarmed.
    pub skipped: Vec<String>,
    /// The identifier to go on after; `None` when this was the last page.
    pub next: Option<ApplicationId>,
}

/// A change to applications or keys, with who made it and when, for the audit trail.
#[derive(Clone, Debug)]
pub struct StoreChange {
    /// When.
    pub at: Wall,
    /// Who, in words: `cli:root`, `admin-api`, `demo`.
    pub who: String,
    /// Which application it is about.
    pub application: ApplicationId,
    /// What changes.
    pub what: ChangeKind,
}

/// What a change does. Each is atomic.
#[derive(Clone, Debug)]
pub enum ChangeKind {
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
    /// A further key; the others go on.
    AddKey {
        /// The key.
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
    /// Other limits of its own, in place of those it had.
    SetLimits {
        /// The limits.
        own: OwnLimits,
    },
    /// Another end for some keys; `None` for no end. Those that are revoked stay as they are.
    SetExpiry {
        /// Which keys.
        digests: Vec<Digest>,
        /// From when on they are refused.
        at: Option<Wall>,
    },
    /// Other words for people, in place of those it had.
    Describe {
        /// Its name.
        name: String,
        /// Its owner's address.
        contact: Option<String>,
        /// A remark.
        note: Option<String>,
    },
}

impl ChangeKind {
    /// The word for it in the audit trail.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::AddKey { .. } => "add_key",
            Self::Rotate { .. } => "rotate",
            Self::RevokeKey { .. } => "revoke_key",
            Self::RevokeAll => "revoke_all",
            Self::SetTier { .. } => "set_tier",
            Self::SetLimits { .. } => "set_limits",
            Self::SetExpiry { .. } => "set_expiry",
            Self::Describe { .. } => "describe",
        }
    }
}

/// That a key was used, in the hour that begins then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUse {
    /// Which key.
    pub digest: Digest,
    /// The beginning of the hour.
    pub at: Wall,
}

/// A question about the audit trail, which is read from its newest record back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Of which application, if not of all.
    pub application: Option<ApplicationId>,
    /// Only records older than this one.
    pub before: Option<u64>,
    /// How many at the most.
    pub most: usize,
}

/// One change, as the audit trail tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// Its number; they rise.
    pub number: u64,
    /// When.
    pub at: Wall,
    /// Who.
    pub who: String,
    /// The kind of change, in the words of [`ChangeKind::word`].
    pub what: String,
    /// The identifier of the application.
    pub application: String,
    /// The change in words. Never a secret.
    pub detail: String,
}
