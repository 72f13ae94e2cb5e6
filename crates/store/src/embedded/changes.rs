//! Changes to applications and keys, each with its audit record, inside the writer's transaction.
//!
//! A failed change leaves no trace: the writer rolls it back. Keys are created and tiers checked by the caller.

use rusqlite::{Connection, ToSql, params};

use super::fault::{StoreFault, is_conflict};
use super::statements::{AnyText, Statements as _};
use super::{audit, closed_applications, owner_tables, records};
use crate::stored::millis;
use crate::{
    ChangeKind, Description, KeyUse, StoreChange, StoreError, StoredApplication, StoredKey, audit_detail,
};
use scoregate_base::clock::Wall;
use scoregate_base::keys::{ApplicationId, Digest};

const SET_LIMITS: &str = "UPDATE applications SET own_minute = ?2, own_day = ?3 WHERE id = ?1";

/// Makes the change and returns the changed application.
pub(super) fn make(connection: &Connection, change: &StoreChange) -> Result<StoredApplication, StoreFault> {
    let id = change.application.to_string();
    let unknown = || StoreFault::Refused(StoreError::UnknownApplication(change.application));
    if !matches!(change.what, ChangeKind::Create { .. }) && !records::is_there(connection, &id)? {
        return Err(unknown());
    }
    if let Some(owner) = change.owner {
        owner_tables::read(connection, owner)?.check_change_of(change.application)?;
    }
    if let Some(allowance) = change.what.key_allowance() {
        let read = records::application(connection, change.application, change.at.day())?;
        allowance.check(&read.ok_or_else(unknown)?, change.at).map_err(StoreError::from)?;
    }
    let detail = match &change.what {
        ChangeKind::Create { name, tier, own, description, key, owner } => {
            insert(connection, &[&id, name, tier, &own.minute, &own.day, &millis(change.at)], description)?;
            add_key(connection, &id, key)?;
            owner.map_or(Ok(()), |owner| owner_tables::own(connection, &id, owner, change.at.day()))?;
            audit_detail::created(tier, *own, key, *owner)
        }
        ChangeKind::AddKey { key, .. } => {
            add_key(connection, &id, key)?;
            audit_detail::key_added(key)
        }
        ChangeKind::Rotate { key, retire_others_at, .. } if *retire_others_at <= change.at => {
            let revoked = revoke_all(connection, &id, change.at)?;
            add_key(connection, &id, key)?;
            audit_detail::replaced(key, revoked)
        }
        ChangeKind::Rotate { key, retire_others_at, .. } => {
            let retired = retire(connection, &id, *retire_others_at)?;
            add_key(connection, &id, key)?;
            audit_detail::rotated(key, retired, *retire_others_at)
        }
        ChangeKind::RevokeKey { digest } => {
            let known = revoke_key(connection, &id, *digest, change.at)?;
            audit_detail::key_revoked(&known.ok_or(StoreError::UnknownKey(change.application))?)
        }
        ChangeKind::RevokeAll => audit_detail::all_revoked(revoke_all(connection, &id, change.at)?),
        ChangeKind::SetTier { tier } => {
            let before = set_tier(connection, &id, tier)?;
            audit_detail::tier_set(&before, tier)
        }
        ChangeKind::SetLimits { own } => {
            connection.run(SET_LIMITS, params![id, own.minute, own.day])?;
            audit_detail::limits_set(*own)
        }
        ChangeKind::SetExpiry { digests, at } => {
            let shown = set_expiry(connection, change.application, digests, *at)?;
            audit_detail::expiry_set(&shown, *at)
        }
        ChangeKind::Describe { name, description } => {
            describe(connection, &id, name, description)?;
            audit_detail::described(description)
        }
        ChangeKind::Close => audit_detail::all_revoked(close(connection, &id, change.at)?),
    };
    audit::add(connection, change.at, [&change.who, change.what.word(), &id, &detail])?;
    answer(connection, change)?.ok_or_else(unknown)
}

fn answer(connection: &Connection, change: &StoreChange) -> Result<Option<StoredApplication>, StoreFault> {
    match records::application(connection, change.application, change.at.day()) {
        // Changes that revoke a key or repair a record must not fail because the record is unreadable.
        Err(StoreFault::Record(_)) if !gives_a_key(&change.what) => {
            records::stand_in(connection, change.application).map(Some)
        }
        read => read,
    }
}

/// Whether it adds a key, which would not work while the record is unreadable.
const fn gives_a_key(what: &ChangeKind) -> bool {
    match what {
        ChangeKind::Create { .. } | ChangeKind::AddKey { .. } | ChangeKind::Rotate { .. } => true,
        ChangeKind::RevokeKey { .. }
        | ChangeKind::RevokeAll
        | ChangeKind::SetTier { .. }
        | ChangeKind::SetLimits { .. }
        | ChangeKind::SetExpiry { .. }
        | ChangeKind::Describe { .. }
        | ChangeKind::Close => false,
    }
}

fn insert(connection: &Connection, row: &[&dyn ToSql], description: &Description) -> Result<(), StoreFault> {
    let columns = Description::NAMES.join(", ");
    let statement = format!(
        "INSERT INTO applications (id, name, tier, own_minute, own_day, created_at, {columns})
         VALUES (?, ?, ?, ?, ?, ?{})",
        ", ?".repeat(Description::NAMES.len())
    );
    unless_there(connection.run(&statement, &*with_description(row, description)), "that application")
}

fn with_description<'r>(row: &[&'r dyn ToSql], description: &'r Description) -> Vec<&'r dyn ToSql> {
    row.iter().copied().chain(description.columns().map(|(_, text)| text as &dyn ToSql)).collect()
}

fn add_key(connection: &Connection, id: &str, key: &StoredKey) -> Result<(), StoreFault> {
    let StoredKey { digest, shown, name, created_at, expires_at, revoked_at, last_used_at } = key;
    let [expires_at, revoked_at, last_used_at] =
        [expires_at, revoked_at, last_used_at].map(|at| at.map(millis));
    let (digest, created_at) = (digest.as_bytes(), millis(*created_at));
    let inserted = connection.run(
        "INSERT INTO keys (application, digest, shown, created_at, expires_at, revoked_at, last_used_at, name)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![id, digest, shown, created_at, expires_at, revoked_at, last_used_at, name],
    );
    unless_there(inserted, "that key")
}

fn unless_there(inserted: Result<u64, StoreFault>, what: &'static str) -> Result<(), StoreFault> {
    match inserted {
        Err(StoreFault::Sql(error)) if is_conflict(&error) => Err(StoreError::Exists(what).into()),
        inserted => inserted.map(drop),
    }
}

/// Makes the keys in force at `at` expire then, unless they expire sooner; returns how many changed.
fn retire(connection: &Connection, id: &str, at: Wall) -> Result<u64, StoreFault> {
    let statement = "UPDATE keys SET expires_at = ?2 WHERE application = ?1 AND revoked_at IS NULL
         AND (expires_at IS NULL OR expires_at > ?2)";
    connection.run(statement, params![id, millis(at)])
}

/// Revokes one key and returns its visible characters. A revoked key keeps its time of revocation.
fn revoke_key(
    connection: &Connection,
    id: &str,
    digest: Digest,
    at: Wall,
) -> Result<Option<String>, StoreFault> {
    let revoke =
        "UPDATE keys SET revoked_at = coalesce(revoked_at, ?3) WHERE application = ?1 AND digest = ?2
         RETURNING shown";
    let shown: Option<(AnyText,)> = connection.find(revoke, params![id, digest.as_bytes(), millis(at)])?;
    Ok(shown.map(|(AnyText(shown),)| shown))
}

fn revoke_all(connection: &Connection, id: &str, at: Wall) -> Result<u64, StoreFault> {
    let statement = "UPDATE keys SET revoked_at = ?2 WHERE application = ?1 AND revoked_at IS NULL";
    connection.run(statement, params![id, millis(at)])
}

fn set_tier(connection: &Connection, id: &str, tier: &str) -> Result<String, StoreFault> {
    let (AnyText(before),) = connection.one("SELECT tier FROM applications WHERE id = ?1", [id])?;
    connection.run("UPDATE applications SET tier = ?2 WHERE id = ?1", [id, tier])?;
    Ok(before)
}

/// Sets the expiry of keys and returns their visible characters.
fn set_expiry(
    connection: &Connection,
    application: ApplicationId,
    digests: &[Digest],
    at: Option<Wall>,
) -> Result<Vec<String>, StoreFault> {
    let (id, at) = (application.to_string(), at.map(millis));
    let set = "UPDATE keys SET expires_at = ?3 WHERE application = ?1 AND digest = ?2 AND revoked_at IS NULL
         RETURNING shown";
    let shown = digests.iter().map(|digest| {
        let shown = connection.find(set, params![id, digest.as_bytes(), at])?;
        shown.map(|(shown,)| shown).ok_or_else(|| StoreError::UnknownKey(application).into())
    });
    shown.collect()
}

fn describe(
    connection: &Connection,
    id: &str,
    name: &str,
    description: &Description,
) -> Result<u64, StoreFault> {
    let columns = Description::NAMES.join(" = ?, ");
    let statement = format!("UPDATE applications SET name = ?2, {columns} = ? WHERE id = ?1");
    connection.run(&statement, &*with_description(&[&id, &name], description))
}

/// Closes an application in the name of its owner, and returns the number of revoked keys.
fn close(connection: &Connection, id: &str, at: Wall) -> Result<u64, StoreFault> {
    describe(connection, id, ChangeKind::CLOSED, &Description::default())?;
    closed_applications::add(connection, id, at.day())?;
    owner_tables::disown(connection, id)?;
    connection.run("UPDATE keys SET name = NULL WHERE application = ?1 AND name IS NOT NULL", [id])?;
    revoke_all(connection, id, at)
}

/// Records uses of keys.
pub(super) fn used(connection: &Connection, keys: &[KeyUse]) -> Result<(), StoreFault> {
    let mut update = connection.prepare_cached(
        "UPDATE keys SET last_used_at = ?3
         WHERE application = ?1 AND digest = ?2 AND (last_used_at IS NULL OR last_used_at < ?3)",
    )?;
    for key in keys {
        update.execute(params![key.application.to_string(), key.digest.as_bytes(), millis(key.at)])?;
    }
    Ok(())
}
