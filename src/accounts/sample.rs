//! A stored application for tests.

use scoregate_base::clock::Wall;
use scoregate_base::keys::Digest;
use scoregate_store::{OwnLimits, StoredApplication, StoredKey};

/// An application in a tier, with these keys. It has no limits of its own and no granted units.
pub(crate) fn stored(tier: &str, keys: &[&str]) -> StoredApplication {
    let key = |text: &&str| StoredKey {
        digest: Digest::of(text),
        shown: String::new(),
        created_at: Wall::default(),
        expires_at: None,
        revoked_at: None,
        name: None,
        last_used_at: None,
    };
    StoredApplication {
        id: "app_00000000001".parse().unwrap(),
        name: "one".into(),
        tier: tier.into(),
        own: OwnLimits::default(),
        url: None,
        contact: None,
        note: None,
        created_at: Wall::default(),
        keys: keys.iter().map(key).collect(),
        granted: 0,
    }
}
