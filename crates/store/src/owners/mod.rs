//! Owners of applications: their accounts, sessions and webhooks.

mod owner_store;
mod webhooks;

pub use owner_store::{
    LinkAllowance, NewSignInLink, OwnerChange, OwnerChangeKind, OwnerQuery, OwnerSession,
    OwnerStore, SignIn, SignInOutcome, StoredOwner, UsableLink,
};
pub use webhooks::{MAX_WEBHOOKS, StoredWebhook, WebhookChange};
