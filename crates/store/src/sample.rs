//! A sample key, a sample application and its creation, for tests and benchmarks. Each test sets the fields that it needs.

use super::{ChangeKind, Description, StoredApplication, StoredKey};
use scoregate_base::{
    clock::Wall,
    keys::Digest,
    limits::{LimitChanges, LimitSetting, OwnLimits},
};

/// A key with this text. It never expires.
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

/// An application in a tier, with these keys. It has no individual limits and no granted units.
pub fn application(tier: &str, keys: &[&str]) -> StoredApplication {
    StoredApplication {
        id: "app_00000000001".parse().expect("an id"),
        name: "one".into(),
        tier: tier.into(),
        own: OwnLimits::NONE,
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
        own: OwnLimits::NONE,
        description: Description::default(),
        key,
        owner: None,
    }
}

/// A change that sets all limits of an application to these.
pub fn limits_set(own: OwnLimits, until: Option<Wall>) -> ChangeKind {
    let settings = LimitSetting::ALL.into_iter();
    let changes = settings.fold(LimitChanges::default(), |changes, setting| {
        changes.with(setting, own.get(setting))
    });
    ChangeKind::SetLimits { changes, until }
}
