//! Why a change in the name of an owner was refused.

use scoregate_base::keys::{ApplicationId, OwnerId};

/// Why a change in the name of an owner was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnerRefusal {
    /// The owner does not exist.
    #[error("there is no account {0}; `scoregate accounts list` lists all")]
    Unknown(OwnerId),
    /// The account is suspended.
    #[error("account {0} is suspended; `scoregate accounts resume {0}` ends that")]
    Suspended(OwnerId),
    /// The owner may have no more applications.
    #[error("account {0} has as many applications as it may have")]
    TooManyApplications(OwnerId),
    /// Applications that were closed today count until the day ends, if they used units of it.
    #[error(
        "an application of the address of account {0} was closed today after it had used requests; \
         a new one can be created tomorrow (UTC)"
    )]
    QuotaUsedToday(OwnerId),
    /// The application has not the keys that the owner has seen.
    #[error("the keys of application {0} have changed; look at them again")]
    KeysChanged(ApplicationId),
    /// The application may have no more active keys.
    #[error("application {0} has as many active keys as it may have")]
    TooManyActiveKeys(ApplicationId),
    /// The application may get no more keys in this period.
    #[error("application {0} got as many keys in the last 24 hours as it may get")]
    TooManyNewKeys(ApplicationId),
    /// An account with applications is not deleted.
    #[error("account {0} has applications; run the command again")]
    HasApplications(OwnerId),
}
