//! The reasons why changes fail.

use scoregate_base::{
    keys::{ApplicationId, BadText},
    limits::BadLimit,
};
use scoregate_store::StoreError;

/// The result of a change.
pub type RegistrarResult<T> = Result<T, RegistrarError>;

/// The reason why a change failed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RegistrarError {
    /// The tier is not configured.
    #[error("unknown tier `{tier}`; the tiers are {known}")]
    UnknownTier {
        /// The unknown tier.
        tier: String,
        /// The configured tiers.
        known: String,
    },
    /// A text is empty, too long, or has misleading characters.
    #[error(transparent)]
    BadText(#[from] BadText),
    /// A limit is invalid.
    #[error(transparent)]
    BadLimit(#[from] BadLimit),
    /// The expiry is in the past.
    #[error("the expiry must be in the future; to disable a key now, revoke it")]
    BadExpiry,
    /// The end of temporary limits is in the past or too far in the future.
    #[error("limits must end in the future and within 366 days; without an end they are permanent")]
    BadUntil,
    /// All keys have expired or are revoked.
    #[error(
        "all keys of {0} have expired or are revoked; name the key to extend, or run `scoregate keys rotate {0}`"
    )]
    NoneInForce(ApplicationId),
    /// Several keys are active, and one of them would expire later than before.
    #[error(
        "{1} keys of {0} are active, and one of them would expire later than it does now; name the key to change"
    )]
    SeveralInForce(ApplicationId, usize),
    /// No key of the application has this prefix, or several keys have it.
    #[error(
        "{found} keys of {application} begin with `{prefix}`; `scoregate keys show {application}` shows them"
    )]
    NoSuchKey {
        /// The application.
        application: ApplicationId,
        /// The prefix.
        prefix: String,
        /// Number of keys with this prefix.
        found: usize,
    },
    /// There are no account pages, or mail is not sent.
    #[error("owners cannot be invited: set site.sign_up, service.base_url and mail.server")]
    NoInvitations,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operating system's random generator failed.
    #[error("no key can be created; the operating system returned no random bytes: {0}")]
    NoRandomness(#[from] getrandom::Error),
}
