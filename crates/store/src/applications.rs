//! Applications and keys as stored, and changes to them. Data only.

use std::time::Duration;

use serde::Serialize;

use scoregate_base::clock::Wall;
use scoregate_base::keys::{ApplicationId, Digest, OwnerId};
use scoregate_base::limits::{LimitChanges, OwnLimits};

use super::{Description, NewMail, OwnerNotice, OwnerRefusal};

const DAY: Duration = Duration::from_hours(24);

/// An application as stored, with its keys. In JSON it is what `scoregate keys --json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredApplication {
    /// Its id.
    pub id: ApplicationId,
    /// Its display name.
    pub name: String,
    /// The name of its tier. The store does not check whether the tier is configured.
    pub tier: String,
    /// Limits of this application and of its account, which override the tier's.
    #[serde(rename = "own_limits")]
    pub own: OwnLimits,
    /// When these end and the previous ones return, if ever.
    pub limits_until: Option<Wall>,
    /// Its description.
    #[serde(flatten)]
    pub description: Description,
    /// When it was created.
    pub created_at: Wall,
    /// Its keys, oldest first, revoked and expired ones included.
    pub keys: Vec<StoredKey>,
    /// Units of the requested day granted so far, to any node.
    #[serde(rename = "granted_today")]
    pub granted: u64,
}

/// A key as stored: its digest, never the key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredKey {
    /// Its SHA-256.
    #[serde(skip)]
    pub digest: Digest,
    /// Its first characters, to tell keys apart.
    #[serde(rename = "prefix")]
    pub shown: String,
    /// The name that its owner gave it.
    pub name: Option<String>,
    /// When it was created.
    pub created_at: Wall,
    /// When it expires, if ever.
    pub expires_at: Option<Wall>,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Wall>,
    /// The hour of its last use, if any. Written with a delay: the last minutes before a crash may be missing.
    pub last_used_at: Option<Wall>,
}

impl StoredKey {
    /// Whether it is neither revoked nor expired.
    pub fn is_active(&self, now: Wall) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|ends| ends > now)
    }
}

/// A page of applications, ordered by id.
#[derive(Clone, Debug, Default)]
pub struct ApplicationPage {
    /// The applications.
    pub applications: Vec<StoredApplication>,
    /// Unreadable records that were skipped, each with a reason; to be counted and reported.
    pub skipped: Vec<String>,
    /// Where the next page starts; `None` after the last page.
    pub next: Option<ApplicationId>,
}

/// A change to applications or keys, with actor and time for the audit trail.
#[derive(Clone, Debug)]
pub struct StoreChange {
    /// When.
    pub at: Wall,
    /// The actor: `cli:root`, `admin-api`, `demo`, `owner:own_3kTMd9Qw0aB`.
    pub who: String,
    /// The owner in whose name an existing application is changed. The change is refused if the account is suspended, and the
    /// application is unknown if it belongs to someone else. `None` for changes by operators.
    pub owner: Option<OwnerId>,
    /// The application.
    pub application: ApplicationId,
    /// The change.
    pub what: ChangeKind,
    /// The notice about it.
    pub notice: Option<OwnerNotice>,
}

/// An atomic change.
#[derive(Clone, Debug)]
pub enum ChangeKind {
    /// Creates an application.
    Create {
        /// Its name.
        name: String,
        /// Its tier.
        tier: String,
        /// Its own limits.
        own: OwnLimits,
        /// Its description.
        description: Description,
        /// Its first key.
        key: StoredKey,
        /// Its owner, if it has one.
        owner: Option<Ownership>,
    },
    /// Adds a key; existing keys are unaffected.
    AddKey {
        /// The key.
        key: StoredKey,
        /// The conditions for it, if an owner adds it.
        allowance: Option<KeyAllowance>,
    },
    /// Adds a key; keys in force until now expire at `retire_others_at`. If that is not after the change, they are
    /// revoked: a clock that is set back must not bring them back.
    Rotate {
        /// The new key.
        key: StoredKey,
        /// When the older ones expire, unless they expire sooner.
        retire_others_at: Wall,
        /// The conditions for the new key, if an owner rotates.
        allowance: Option<KeyAllowance>,
    },
    /// Revokes one key.
    RevokeKey {
        /// The key.
        digest: Digest,
    },
    /// Revokes all keys.
    RevokeAll,
    /// Sets the tier.
    SetTier {
        /// Its name.
        tier: String,
    },
    /// Changes the application's own limits. Limits that cannot be read are replaced: that repairs the record.
    SetLimits {
        /// The changes.
        changes: LimitChanges,
        /// When the limits of before the first such change return, if ever.
        until: Option<Wall>,
    },
    /// Sets the limits of its account.
    SetOwnerLimits(OwnLimits),
    /// Restores the limits of before a change that has ended. Refused if no end is due.
    RestoreLimits,
    /// Sets the expiry of some keys; `None` for never. Revoked keys stay revoked.
    SetExpiry {
        /// The keys.
        digests: Vec<Digest>,
        /// The expiry.
        at: Option<Wall>,
    },
    /// Replaces name and description.
    Describe {
        /// The name.
        name: String,
        /// The description.
        description: Description,
    },
    /// Revokes a key that was found in public, or lets it expire. Refused if all its places were reported before.
    ReportLeak(LeakReport),
    /// Gives it to the owner of a mailbox. Refused if another owner has it, unless it is moved.
    Attach(Box<Attachment>),
    /// Takes it from its owner, who gets this mail. An owner who was only invited, and has no other one, is deleted.
    Detach(Box<NewMail>),
    /// Closes it in the name of its owner: revokes all keys, removes owner and description, and replaces
    /// the name. The digest of the owner's mailbox is stored until the day ends.
    Close,
}

/// A key that was found in public.
#[derive(Clone, Debug)]
pub struct LeakReport {
    /// The key.
    pub digest: Digest,
    /// Its first characters.
    pub shown: String,
    /// Where it was found.
    pub places: Vec<String>,
    /// Places that were recorded after this time are known.
    pub since: Wall,
    /// When it expires, unless it expires sooner; `None` revokes it.
    pub expires_at: Option<Wall>,
    /// The mail to the owner of the application, queued if the key is changed. Its recipient is set by the store.
    pub mail: NewMail,
}

/// The owner of a new application.
#[derive(Clone, Debug)]
pub enum Ownership {
    /// One who signed up.
    SignedUp {
        /// The owner, who must not be suspended.
        owner: OwnerId,
        /// Maximum number of the owner's applications, this one included. Applications of the same mailbox that were closed
        /// today after they used units count too.
        at_most: u32,
    },
    /// The owner of a mailbox.
    Attached(Box<Attachment>),
}

/// A mailbox that gets an application. Recipients of the emails are set by the store.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// The id of the owner if the mailbox is unknown.
    pub new_owner: OwnerId,
    /// The address as it was entered.
    pub email: String,
    /// The mailbox.
    pub mailbox: String,
    /// Digest of the token of an invitation.
    pub link: Digest,
    /// Time for which it is valid.
    pub valid_for: Duration,
    /// The mail with the link, for an owner who has not accepted an invitation.
    pub invitation: NewMail,
    /// The mail to other owners.
    pub attached: NewMail,
    /// Whether the application is taken from another owner.
    pub moves: bool,
    /// The mail to that owner.
    pub detached: NewMail,
}

/// Conditions for a new key of an application, checked with the change that adds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAllowance {
    /// The number of keys that the owner has seen, revoked and expired ones included.
    pub existing: usize,
    /// Maximum number of active keys, the new one included.
    pub active: usize,
    /// Maximum number of new keys in 24 hours, this one included. All keys are in the memory of every gateway.
    pub per_day: usize,
}

impl KeyAllowance {
    /// Whether a key may be added to these.
    pub(crate) fn check(
        &self,
        application: &StoredApplication,
        now: Wall,
    ) -> Result<(), OwnerRefusal> {
        let id = application.id;
        let keys = &application.keys;
        let count =
            |counts: &dyn Fn(&StoredKey) -> bool| keys.iter().filter(|key| counts(key)).count();
        if keys.len() != self.existing {
            Err(OwnerRefusal::KeysChanged(id))
        } else if count(&|key| key.is_active(now)) >= self.active {
            Err(OwnerRefusal::TooManyActiveKeys(id))
        } else if count(&|key| now < key.created_at.plus(DAY)) >= self.per_day {
            Err(OwnerRefusal::TooManyNewKeys(id))
        } else {
            Ok(())
        }
    }
}

impl ChangeKind {
    /// The key that it adds, and the conditions for that.
    pub(crate) const fn added_key(&self) -> Option<(&StoredKey, Option<KeyAllowance>)> {
        match self {
            Self::Create { key, .. } => Some((key, None)),
            Self::AddKey { key, allowance } | Self::Rotate { key, allowance, .. } => {
                Some((key, *allowance))
            }
            Self::RevokeKey { .. }
            | Self::RevokeAll
            | Self::SetTier { .. }
            | Self::SetLimits { .. }
            | Self::SetOwnerLimits(_)
            | Self::RestoreLimits
            | Self::SetExpiry { .. }
            | Self::Describe { .. }
            | Self::ReportLeak(_)
            | Self::Attach(_)
            | Self::Detach(_)
            | Self::Close => None,
        }
    }

    /// The name of a closed application.
    pub(crate) const CLOSED: &str = "closed";

    /// Its name in the audit trail.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::AddKey { .. } => "add_key",
            Self::Rotate { .. } => "rotate",
            Self::RevokeKey { .. } => "revoke_key",
            Self::RevokeAll => "revoke_all",
            Self::SetTier { .. } => "set_tier",
            Self::SetLimits { .. } => "set_limits",
            Self::SetOwnerLimits(_) => "set_owner_limits",
            Self::RestoreLimits => "restore_limits",
            Self::SetExpiry { .. } => "set_expiry",
            Self::Describe { .. } => "describe",
            Self::ReportLeak(LeakReport {
                expires_at: None, ..
            }) => "revoke_leaked_key",
            Self::ReportLeak(LeakReport {
                expires_at: Some(_),
                ..
            }) => "expire_leaked_key",
            Self::Attach(_) => "attach",
            Self::Detach(_) => "detach",
            Self::Close => "close",
        }
    }
}

/// A use of a key. In the order of the stored records, so that neighbours are written together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyUse {
    /// Its application.
    pub application: ApplicationId,
    /// The key.
    pub digest: Digest,
    /// The beginning of the hour.
    pub at: Wall,
}

/// A query of the audit trail, newest record first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// The application; `None` for all.
    pub application: Option<ApplicationId>,
    /// Only records of this account itself, not of its applications.
    pub owner: Option<OwnerId>,
    /// Only records older than this one.
    pub before: Option<u64>,
    /// Maximum number of records.
    pub limit: usize,
}

/// A record of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditRecord {
    /// Its number; numbers increase.
    pub number: u64,
    /// When.
    pub at: Wall,
    /// The actor.
    #[serde(rename = "actor")]
    pub who: String,
    /// The kind of change, as in [`ChangeKind::word`].
    #[serde(rename = "action")]
    pub what: String,
    /// The application.
    pub application: String,
    /// The change in words. Never contains a secret.
    pub detail: String,
}
