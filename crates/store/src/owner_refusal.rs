//! The reasons for refusing a change on behalf of an owner.

use scoregate_base::keys::{ApplicationId, OwnerId};

/// Why a change on behalf of an owner was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnerRefusal {
    /// The owner does not exist.
    #[error("there is no account {0}; `scoregate accounts list` lists all")]
    Unknown(OwnerId),
    /// The account is suspended.
    #[error("account {0} is suspended; `scoregate accounts resume {0}` lifts the suspension")]
    Suspended(OwnerId),
    /// The owner may not create any more applications.
    #[error("account {0} has reached its limit of applications")]
    TooManyApplications(OwnerId),
    /// The owner closed applications today that had used units of the day. They count until the day ends.
    #[error(
        "an application of account {0} or its mailbox was closed today after use; a new one can be created tomorrow (UTC)"
    )]
    QuotaUsedToday(OwnerId),
    /// The application has another owner.
    #[error("application {0} belongs to account {1}; `--move` moves it")]
    Owned(ApplicationId, OwnerId),
    /// The application has no owner.
    #[error("application {0} has no owner")]
    NotOwned(ApplicationId),
    /// The keys of the application are not the ones that the owner has seen.
    #[error("the keys of application {0} have changed; check them and try again")]
    KeysChanged(ApplicationId),
    /// The application cannot have any more active keys.
    #[error("application {0} has reached its limit of active keys")]
    TooManyActiveKeys(ApplicationId),
    /// The application cannot get any more keys in this period.
    #[error("application {0} has reached its limit on new keys per 24 hours")]
    TooManyNewKeys(ApplicationId),
    /// The account has applications and cannot be deleted.
    #[error("account {0} has applications; run the command again")]
    HasApplications(OwnerId),
}
