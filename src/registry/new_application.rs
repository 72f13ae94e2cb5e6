//! New applications and keys.

use scoregate_base::clock::Wall;
use scoregate_base::limits::OwnLimits;
use scoregate_base::secret::Secret;
use scoregate_store::{Description, KeyAllowance, StoredApplication};

/// A new application.
#[derive(Clone, Debug, Default)]
pub struct NewApplication {
    /// Its name.
    pub name: String,
    /// Its tier.
    pub tier: String,
    /// Limits of this application only.
    pub own: OwnLimits,
    /// Its description.
    pub description: Description,
    /// When its key expires.
    pub expires_at: Option<Wall>,
    /// The address of its owner.
    pub owner: Option<OwnerAddress>,
    /// Its key, unless a new one is minted.
    pub key: Option<Secret>,
}

/// The address of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerAddress {
    /// The address as it was entered.
    pub email: String,
    /// Its mailbox. Each has one account.
    pub mailbox: String,
    /// Whether an application of another owner is moved.
    pub moves: bool,
}

/// The properties of a new key.
#[derive(Clone, Debug, Default)]
pub struct KeyDetails {
    /// Its name, chosen by its owner.
    pub name: Option<String>,
    /// When it expires.
    pub expires_at: Option<Wall>,
    /// The conditions for it, if an owner creates it.
    pub allowance: Option<KeyAllowance>,
    /// The key, unless a new one is minted.
    pub key: Option<Secret>,
}

/// An application with a new key: the only time the key is visible.
#[derive(Clone, Debug)]
pub struct IssuedKey {
    /// The application.
    pub application: StoredApplication,
    /// The key.
    pub key: Secret,
}
