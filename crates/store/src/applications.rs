//! Applications and keys as stored, and changes to them. Data only.

use std::time::Duration;

use serde::Serialize;

use scoregate_base::{
    clock::Wall,
    keys::{ApplicationId, Digest, OwnerId},
    limits::{LimitChanges, OwnLimits},
};

use super::{Description, NewMail, OwnerNotice, OwnerRefusal};

const DAY: Duration = Duration::from_hours(24);

/// An application as stored, with its keys. `scoregate keys --json` prints it as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredApplication {
    /// Id of the application.
    pub id: ApplicationId,
    /// Display name.
    pub name: String,
    /// Name of the tier. The store does not check whether the tier is configured.
    pub tier: String,
    /// The limits set for the application and for its account. They override the limits of the tier.
    #[serde(rename = "own_limits")]
    pub own: OwnLimits,
    /// When the application's current limits end and its previous limits are restored, if ever.
    pub limits_until: Option<Wall>,
    /// Contact details and remarks.
    #[serde(flatten)]
    pub description: Description,
    /// When the application was created.
    pub created_at: Wall,
    /// The keys, oldest first, including revoked and expired ones.
    pub keys: Vec<StoredKey>,
    /// Units granted to all nodes so far, for the requested day.
    #[serde(rename = "granted_today")]
    pub granted: u64,
}

/// A key as stored: the digest, never the key itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredKey {
    /// SHA-256 of the key.
    #[serde(skip)]
    pub digest: Digest,
    /// The first characters of the key, which identify it in lists.
    #[serde(rename = "prefix")]
    pub shown: String,
    /// The name that the owner gave to the key.
    pub name: Option<String>,
    /// When the key was created.
    pub created_at: Wall,
    /// When the key expires, if ever.
    pub expires_at: Option<Wall>,
    /// When the key was revoked, if it was.
    pub revoked_at: Option<Wall>,
    /// The hour in which the key was last used, if any. Written with a delay: after a crash, uses in the last minutes
    /// may be missing.
    pub last_used_at: Option<Wall>,
}

impl StoredKey {
    /// Whether the key is neither revoked nor expired.
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
    /// The time of the change.
    pub at: Wall,
    /// The actor: `cli:root`, `admin-api`, `demo`, `owner:own_3kTMd9Qw0aB`.
    pub who: String,
    /// The owner on whose behalf an existing application is changed. The change is refused if the account is suspended
    /// or the application belongs to someone else. `None` for changes by operators.
    pub owner: Option<OwnerId>,
    /// The application.
    pub application: ApplicationId,
    /// The change.
    pub what: ChangeKind,
    /// The notice to the owner about the change.
    pub notice: Option<OwnerNotice>,
}

/// An atomic change.
#[derive(Clone, Debug)]
pub enum ChangeKind {
    /// Creates an application.
    Create {
        /// The name.
        name: String,
        /// The tier.
        tier: String,
        /// Own limits of the application.
        own: OwnLimits,
        /// The description.
        description: Description,
        /// The first key.
        key: StoredKey,
        /// The owner, if there is one.
        owner: Option<Ownership>,
    },
    /// Adds a key; existing keys are unaffected.
    AddKey {
        /// The key.
        key: StoredKey,
        /// The conditions for the new key, if an owner adds it.
        allowance: Option<KeyAllowance>,
    },
    /// Adds a key. The previously active keys expire at `retire_others_at`. If that time is not after the change, those keys are
    /// revoked, so that setting the clock back cannot reactivate them.
    Rotate {
        /// The new key.
        key: StoredKey,
        /// The latest time at which the older keys expire.
        retire_others_at: Wall,
        /// The conditions for the new key, if an owner rotates the keys.
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
        /// Name of the tier.
        tier: String,
    },
    /// Changes the application's own limits. Unreadable limits are replaced, which repairs the record.
    SetLimits {
        /// The changes.
        changes: LimitChanges,
        /// When the limits from before the first temporary change are restored; `None` if this change is permanent.
        until: Option<Wall>,
    },
    /// Sets the limits of the application's account.
    SetOwnerLimits(OwnLimits),
    /// Restores the limits from before a temporary change. Refused if no temporary change has ended.
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
    /// Revokes a key that was found in a public place, or lets it expire at a set time. Refused if all places in the
    /// report are already known.
    ReportLeak(LeakReport),
    /// Assigns the application to the owner of a mailbox. Refused if another owner has it, unless the attachment moves
    /// it.
    Attach(Box<Attachment>),
    /// Takes the application from its owner, who gets this mail. An owner who was only invited and has no other
    /// application is deleted.
    Detach(Box<NewMail>),
    /// Closes the application on behalf of its owner: revokes all keys, removes owner and description, and replaces the
    /// name. The digest of the owner's mailbox is stored until the day ends.
    Close,
}

/// A key that was found in a public place.
#[derive(Clone, Debug)]
pub struct LeakReport {
    /// The key.
    pub digest: Digest,
    /// The first characters of the key.
    pub shown: String,
    /// The places where the key was found.
    pub places: Vec<String>,
    /// Places that were recorded after this time count as already known.
    pub since: Wall,
    /// When the key expires, unless it expires sooner; `None` revokes it.
    pub expires_at: Option<Wall>,
    /// The mail to the owner of the application, queued if the key is changed. The store sets the recipient.
    pub mail: NewMail,
}

/// The owner of a new application.
#[derive(Clone, Debug)]
pub enum Ownership {
    /// An owner who signed up.
    SignedUp {
        /// The owner, who must not be suspended.
        owner: OwnerId,
        /// Maximum number of applications that the owner may have, including this one. Applications of the same mailbox
        /// that were used and closed today also count.
        at_most: u32,
    },
    /// The owner of a mailbox.
    Attached(Box<Attachment>),
}

/// A mailbox to which an application is assigned. The store sets the recipients of the emails.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// The id of the new owner, used if no owner has the mailbox.
    pub new_owner: OwnerId,
    /// The address as entered.
    pub email: String,
    /// The mailbox of the address.
    pub mailbox: String,
    /// Digest of the token of an invitation.
    pub link: Digest,
    /// Time for which the link is valid.
    pub valid_for: Duration,
    /// The email with the link, sent if the owner has not accepted an invitation yet.
    pub invitation: NewMail,
    /// The email that is sent instead of an invitation, if the owner needs none.
    pub attached: NewMail,
    /// Whether the application is taken from another owner.
    pub moves: bool,
    /// The email to the previous owner.
    pub detached: NewMail,
}

/// Conditions for a new key of an application, checked with the change that adds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAllowance {
    /// The number of keys that the owner has seen, including revoked and expired ones.
    pub existing: usize,
    /// Maximum number of active keys, including the new one.
    pub active: usize,
    /// Maximum number of new keys in 24 hours, including this one. The number is limited because every gateway holds
    /// all keys in memory.
    pub per_day: usize,
}

impl KeyAllowance {
    /// Checks whether the application may get another key.
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
    /// The key that the change adds, and the conditions for it.
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

    /// Name of the change in the audit trail.
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

/// A use of a key. Ordered like the stored records, so that neighbouring records are written together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyUse {
    /// The application that has the key.
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
    /// Only records of this account, not of its applications.
    pub owner: Option<OwnerId>,
    /// Only records older than the one with this number.
    pub before: Option<u64>,
    /// Maximum number of records.
    pub limit: usize,
}

/// A record of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditRecord {
    /// Number of the record. Numbers increase.
    pub number: u64,
    /// The time of the change.
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
