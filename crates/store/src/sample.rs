//! A key, an application and its creation, for tests and benches. They set the fields that they are about.

use super::{ChangeKind, Description, OwnLimits, StoredApplication, StoredKey};
use scoregate_base::clock::Wall;
use scoregate_base::keys::Digest;

/// The key with this text. It never expires.
pub fn key(text: &str) -> StoredKey {
    StoredKey {
        digest: Digest::of(text),
        shown: text.chars().take(12).collect(),
        created_at: Wall::default(),
        expires_at: None,
        revoked_at: None,
        name: None,
        last_used_at: None,
    }
}

/// An application in a tier, with these keys. It has no limits of its own and no granted units.
pub fn application(tier: &str, keys: &[&str]) -> StoredApplication {
    StoredApplication {
        id: "app_00000000001".parse().expect("an id"),
        name: "one".into(),
        tier: tier.into(),
        own: OwnLimits::default(),
        limits_until: None,
        description: Description::default(),
        created_at: Wall::default(),
        keys: keys.iter().map(|text| key(text)).collect(),
        granted: 0,
    }
}

/// Creates an application in a tier, without an owner.
pub fn creation(tier: &str, key: StoredKey) -> ChangeKind {
    ChangeKind::Create {
        name: "Weather station".into(),
        tier: tier.into(),
        own: OwnLimits::default(),
        description: Description::default(),
        key,
        owner: None,
    }
}
