//! New applications and keys.

use scoregate_base::{clock::Wall, limits::OwnLimits, secret::Secret};
use scoregate_store::{Description, KeyAllowance, StoredApplication};

/// A new application.
#[derive(Clone, Debug, Default)]
pub struct NewApplication {
    /// The name of the application.
    pub name: String,
    /// The tier.
    pub tier: String,
    /// Limits of this application only.
    pub own: OwnLimits,
    /// The description.
    pub description: Description,
    /// The expiry of the first key.
    pub expires_at: Option<Wall>,
    /// The address of the owner.
    pub owner: Option<OwnerAddress>,
    /// The first key; `None` to generate one.
    pub key: Option<Secret>,
}

/// The address of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerAddress {
    /// The address as it was entered.
    pub email: String,
    /// The mailbox of the address. Each mailbox has at most one account.
    pub mailbox: String,
    /// Whether the application may be moved from another owner.
    pub moves: bool,
}

/// The properties of a new key.
#[derive(Clone, Debug, Default)]
pub struct KeyDetails {
    /// The name of the key, chosen by the owner.
    pub name: Option<String>,
    /// The expiry.
    pub expires_at: Option<Wall>,
    /// The conditions, if an owner creates the key.
    pub allowance: Option<KeyAllowance>,
    /// The key; `None` to generate one.
    pub key: Option<Secret>,
}

/// An application with a new key. The key is not shown again.
#[derive(Clone, Debug)]
pub struct IssuedKey {
    /// The application.
    pub application: StoredApplication,
    /// The key.
    pub key: Secret,
}
