//! Details of a change for the audit trail, the same for every engine. They never contain a secret.

use super::{Description, LeakReport, StoredKey};
use scoregate_base::{
    clock::Wall,
    limits::{LimitChanges, OwnLimits},
};

pub fn created(tier: &str, own: OwnLimits, key: &StoredKey, owner: &str) -> String {
    let own = own_limits(own);
    format!("tier {tier}{own}, key {}{owner}", shown(key))
}

pub fn rotated(key: &StoredKey, retired: u64, at: Wall) -> String {
    let expire = if retired == 1 {
        "key expires"
    } else {
        "keys expire"
    };
    format!(
        "new key {}; {retired} older {expire} at {}",
        shown(key),
        at.rfc3339()
    )
}

pub fn all_revoked(count: u64) -> String {
    format!("{count} {}", if count == 1 { "key" } else { "keys" })
}

pub fn limits_set(own: OwnLimits, until: Option<Wall>) -> String {
    let own = if own.is_empty() {
        ": none".into()
    } else {
        own_limits(own)
    };
    let until = until.map(|at| format!(", until {}", at.rfc3339()));
    format!("own limits{own}{}", until.unwrap_or_default())
}

pub fn expiry_set(shown: &[String], at: Option<Wall>) -> String {
    let expiry = at.map_or_else(
        || "never expire".into(),
        |at| format!("expire at {}", at.rfc3339()),
    );
    format!("keys {} {expiry}", shown.join(", "))
}

/// The details are equal only for reports of the same key at the same place.
pub fn leaked(leak: &LeakReport, place: &str) -> String {
    format!(
        "key {}, SHA-256 {}, found at {place}",
        leak.shown, leak.digest
    )
}

/// Records only whether each text is given: names and descriptions can be personal data, which must not remain after an
/// account is deleted.
pub fn described(description: &Description) -> String {
    let columns = description.columns().map(|(name, text)| {
        let given = if text.is_some() { "given" } else { "none" };
        format!("{name} {given}")
    });
    columns.collect::<Vec<_>>().join(", ")
}

/// The visible characters and the expiry of a key.
pub fn shown(key: &StoredKey) -> String {
    let expiry = key.expires_at.map(|at| format!(" until {}", at.rfc3339()));
    format!("{}{}", key.shown, expiry.unwrap_or_default())
}

pub fn changed_limits(changes: &LimitChanges) -> String {
    changes
        .each()
        .map(|(setting, value)| {
            let value = value.map_or("none".into(), |value| value.to_string());
            format!(", {} {value}", setting.name())
        })
        .collect::<Vec<_>>()
        .concat()
}

fn own_limits(own: OwnLimits) -> String {
    own.each()
        .map(|(setting, value)| format!(", {} {value}", setting.name()))
        .collect::<Vec<_>>()
        .concat()
}
