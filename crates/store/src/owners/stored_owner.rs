//! Application owners who signed up, their email links and their sessions.
//!
//! Links and sessions are stored as digests. An owner has one mailbox: the address without the parts that mail servers
//! ignore. The caller derives the mailbox from the address.

use serde::Serialize;

use crate::{MailKind, NewMail, StoreError, StoreResult, audit_detail, notice_words};
use scoregate_base::{
    clock::Wall,
    keys::{ApplicationId, Digest, OwnerId},
    limits::{LimitChanges, OwnLimits},
};

use super::webhooks::WebhookChange;
use crate::OwnerRefusal;

/// An owner of applications.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredOwner {
    /// The id.
    pub id: OwnerId,
    /// The address as entered.
    pub email: String,
    /// When the account was created.
    pub created_at: Wall,
    /// The accepted version of the terms; `None` while an invitation has not been accepted.
    pub terms_version: Option<String>,
    /// When the terms were accepted.
    pub terms_accepted_at: Option<Wall>,
    /// The tier of new applications, if an operator set one.
    pub tier: Option<String>,
    /// The limits of all applications of the owner together. They override the limits of the tiers.
    #[serde(rename = "own_limits")]
    pub own: OwnLimits,
    /// When an operator suspended the account, if it is suspended.
    pub suspended_at: Option<Wall>,
    /// The kinds of notices that the owner selected; `None` for the defaults of the tiers.
    pub notices: Option<Vec<MailKind>>,
    /// The applications, ordered by id.
    pub applications: Vec<ApplicationId>,
}

impl StoredOwner {
    /// Whether an operator attached applications to the address, but the terms have not been accepted yet.
    pub const fn is_invited(&self) -> bool {
        self.terms_version.is_none()
    }

    /// Whether an invited owner has unsubscribed from mail.
    pub fn refuses_mail(&self) -> bool {
        self.is_invited() && self.notices.as_ref().is_some_and(Vec::is_empty)
    }

    /// The email addressed to this owner, unless the owner refuses mail.
    pub(crate) fn addressed(&self, mail: &NewMail) -> Option<NewMail> {
        (!self.refuses_mail()).then(|| NewMail {
            recipient: self.email.clone(),
            ..mail.clone()
        })
    }

    /// Checks whether the account may be deleted.
    pub(crate) fn check_deletion(&self, in_own_name: bool) -> StoreResult<()> {
        if in_own_name && self.suspended_at.is_some() {
            return Err(OwnerRefusal::Suspended(self.id).into());
        }
        let has_none = self.applications.is_empty();
        if has_none {
            Ok(())
        } else {
            Err(OwnerRefusal::HasApplications(self.id).into())
        }
    }

    /// Checks whether another application may be created. `closed` is the number of the mailbox's applications that used units on
    /// the day of the change and were closed on that day. They count because otherwise closing an application,
    /// or deleting the account and signing up again, would give another daily quota.
    pub(crate) fn check_creation(&self, closed: usize, at_most: u32) -> StoreResult<()> {
        let open = self.applications.len();
        let at_most = usize::try_from(at_most).unwrap_or(usize::MAX);
        if self.suspended_at.is_some() {
            Err(OwnerRefusal::Suspended(self.id).into())
        } else if open >= at_most {
            Err(OwnerRefusal::TooManyApplications(self.id).into())
        } else if open.saturating_add(closed) >= at_most {
            Err(OwnerRefusal::QuotaUsedToday(self.id).into())
        } else {
            Ok(())
        }
    }

    /// Checks whether an application may be changed on behalf of the owner.
    pub(crate) fn check_change_of(&self, application: ApplicationId) -> StoreResult<()> {
        if self.suspended_at.is_some() {
            return Err(OwnerRefusal::Suspended(self.id).into());
        }
        let is_owned = self.applications.contains(&application);
        if is_owned {
            Ok(())
        } else {
            Err(StoreError::UnknownApplication(application))
        }
    }
}

/// A link to send to an address.
#[derive(Clone, Debug)]
pub struct NewSignInLink {
    /// Digest of the link's token.
    pub digest: Digest,
    /// The address as entered.
    pub email: String,
    /// The mailbox of the address.
    pub mailbox: String,
    /// When the link was requested.
    pub created_at: Wall,
    /// When the link expires.
    pub expires_at: Wall,
    /// The number of links allowed for a mailbox in a period.
    pub allowance: LinkAllowance,
}

/// A limit on the number of links sent to one mailbox.
#[derive(Clone, Copy, Debug)]
pub struct LinkAllowance {
    /// The beginning of the period.
    pub since: Wall,
    /// The maximum number of links.
    pub links: u32,
}

/// A link that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsableLink {
    /// The address to which the link was sent.
    pub email: String,
    /// The owner with this mailbox, if there is one.
    pub owner: Option<OwnerId>,
}

/// A use of a link.
#[derive(Clone, Debug)]
pub struct SignIn {
    /// The time of use.
    pub at: Wall,
    /// Digest of the link's token.
    pub link: Digest,
    /// Digest of the token of the new session.
    pub session: Digest,
    /// When the session expires.
    pub expires_at: Wall,
    /// The id for the new owner, if the mailbox is unknown.
    pub new_owner: OwnerId,
    /// The version of the terms accepted with the sign-in, if any.
    pub accepted_terms: Option<String>,
    /// The notice about the sign-in, queued if the owner wants it. The store sets the recipient.
    pub notice: Option<NewMail>,
    /// The message to the operator, queued if an account is created.
    pub sign_up: Option<NewMail>,
}

/// The outcome of using a link.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "one exists for each sign-in, until its answer is written"
)]
pub enum SignInOutcome {
    /// The link is used up, and the session is stored.
    SignedIn {
        /// The owner.
        owner: StoredOwner,
        /// Whether the account was created.
        is_new: bool,
    },
    /// The link does not exist, has expired or was already used.
    InvalidLink,
    /// The mailbox is unknown, and no terms were accepted with the sign-in. The link can still be used.
    TermsRequired,
    /// The account is suspended. The link is used up.
    Suspended,
}

/// A session of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerSession {
    /// The owner.
    pub owner: StoredOwner,
    /// When the owner signed in.
    pub created_at: Wall,
    /// When the session expires.
    pub expires_at: Wall,
}

/// A change to an owner, with actor and time for the audit trail.
#[derive(Clone, Debug)]
pub struct OwnerChange {
    /// The time of the change.
    pub at: Wall,
    /// The actor.
    pub who: String,
    /// The owner.
    pub owner: OwnerId,
    /// The change.
    pub what: OwnerChangeKind,
}

/// An atomic change to an owner.
#[derive(Clone, Debug)]
pub enum OwnerChangeKind {
    /// Suspends the account and ends its sessions.
    Suspend,
    /// Ends the suspension.
    Resume,
    /// Sets the tier of new applications; `None` for the default.
    SetTier(Option<String>),
    /// Changes the limits of the account. The limits of existing applications are set separately.
    SetLimits(LimitChanges),
    /// Selects the kinds of notices.
    SetNotices(Vec<MailKind>),
    /// Changes a webhook.
    Webhook {
        /// Id of the webhook.
        id: String,
        /// The change.
        change: WebhookChange,
    },
    /// Deletes the account and its sessions, webhooks, links and queued mail. Refused while the account has
    /// applications.
    Delete {
        /// Whether the owner requests the deletion. If so, it is refused for a suspended owner, because a new account would end
        /// the suspension.
        in_own_name: bool,
    },
}

impl OwnerChangeKind {
    /// Name of the change in the audit trail.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Suspend => "suspend_account",
            Self::Resume => "resume_account",
            Self::SetTier(_) => "set_account_tier",
            Self::SetLimits(_) => "set_account_limits",
            Self::SetNotices(_) => "set_notices",
            Self::Webhook { change, .. } => change.word(),
            Self::Delete { .. } => "delete_account",
        }
    }

    /// The details of the audit record. They contain no personal data.
    pub(crate) fn audited(&self, owner: OwnerId) -> String {
        match self {
            Self::Suspend | Self::Resume | Self::Delete { .. } => owner.to_string(),
            Self::SetTier(tier) => {
                format!("{owner}, tier {}", tier.as_deref().unwrap_or("by default"))
            }
            Self::SetLimits(changes) => {
                format!("{owner}{}", audit_detail::changed_limits(changes))
            }
            Self::SetNotices(kinds) if kinds.is_empty() => format!("{owner}, notices none"),
            Self::Webhook { id, .. } => format!("{owner}, {id}"),
            Self::SetNotices(kinds) => format!("{owner}, notices {}", notice_words(kinds)),
        }
    }
}

/// A query of owners, ordered by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerQuery {
    /// Only owners whose address or mailbox contains this text, ignoring case.
    pub email: Option<String>,
    /// Only the owner of this application.
    pub application: Option<ApplicationId>,
    /// Only owners after this one.
    pub after: Option<OwnerId>,
    /// Maximum number of owners.
    pub limit: usize,
}
