//! Owners of applications: their accounts, sessions and webhooks.

mod stored_owner;
mod webhooks;

pub use stored_owner::{
    LinkAllowance, NewSignInLink, OwnerChange, OwnerChangeKind, OwnerQuery, OwnerSession, SignIn,
    SignInOutcome, StoredOwner, UsableLink,
};
pub use webhooks::{MAX_WEBHOOKS, StoredWebhook, WebhookChange};
