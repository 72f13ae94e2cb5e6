//! Owners of applications, their links by e-mail and their sessions. The rules are in `store::owners`.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::fault::StoreFault;
use super::{audit, closed_applications, ledger, mail_queue, records};
use crate::{
    NewMail, NewSignInLink, OwnerChange, OwnerChangeKind, OwnerQuery, OwnerRefusal, OwnerSession, Ownership,
    SignIn, SignInOutcome, StoreError, StoredOwner, UsableLink,
};
use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::{ApplicationId, Digest, OwnerId};

const OWNERS: &str =
    "SELECT id, email, created_at, terms_version, terms_accepted_at, tier, suspended_at FROM owners";

/// Stores a link with its mail, unless the mailbox has had its allowance. The link to an account goes to its address.
///
/// A link that is not allowed is stored and deleted again: the duration must not depend on the mailbox.
pub(super) fn send_link(
    connection: &Connection,
    link: &NewSignInLink,
    mail: &NewMail,
) -> Result<bool, StoreFault> {
    let sent: i64 = connection
        .prepare_cached("SELECT count(*) FROM sign_in_links WHERE mailbox = ?1 AND created_at >= ?2")?
        .query_row(params![link.mailbox, millis(link.allowance.since)], |row| row.get(0))?;
    let is_allowed = sent < i64::from(link.allowance.links);
    // Only the address is read: the time must not depend on the applications of an owner.
    let known: Option<String> = connection
        .prepare_cached("SELECT email FROM owners WHERE mailbox = ?1")?
        .query_row([&link.mailbox], |row| row.get(0))
        .optional()?;
    let email = known.unwrap_or_else(|| link.email.clone());
    connection
        .prepare_cached(
            "INSERT INTO sign_in_links (digest, mailbox, email, created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![
            link.digest.as_bytes(),
            link.mailbox,
            email,
            millis(link.created_at),
            millis(link.expires_at)
        ])?;
    mail_queue::add(connection, &[NewMail { recipient: email, ..mail.clone() }])?;
    connection
        .prepare_cached("DELETE FROM sign_in_links WHERE digest = ?1 AND NOT ?2")?
        .execute(params![link.digest.as_bytes(), is_allowed])?;
    connection
        .prepare_cached("DELETE FROM mail_queue WHERE message_id = ?1 AND NOT ?2")?
        .execute(params![mail.message_id, is_allowed])?;
    Ok(is_allowed)
}

/// A link that was not used and has not expired.
pub(super) fn usable_link(
    connection: &Connection,
    digest: Digest,
    now: Wall,
) -> Result<Option<UsableLink>, StoreFault> {
    let Some((email, mailbox)) = unused(connection, digest, now)? else { return Ok(None) };
    let owner = of_mailbox(connection, &mailbox)?;
    Ok(Some(UsableLink { email, owner: owner.map(|owner| owner.id) }))
}

/// Address and mailbox of an unused link.
fn unused(connection: &Connection, digest: Digest, now: Wall) -> rusqlite::Result<Option<(String, String)>> {
    connection
        .prepare_cached(
            "SELECT email, mailbox FROM sign_in_links WHERE digest = ?1 AND used_at IS NULL AND expires_at > ?2",
        )?
        .query_row(params![digest.as_bytes(), millis(now)], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// Uses a link.
pub(super) fn sign_in(connection: &Connection, sign_in: &SignIn) -> Result<SignInOutcome, StoreFault> {
    let Some((email, mailbox)) = unused(connection, sign_in.link, sign_in.at)? else {
        return Ok(SignInOutcome::InvalidLink);
    };
    let known = of_mailbox(connection, &mailbox)?;
    let is_new = known.is_none();
    let owner = match (known, &sign_in.accepted_terms) {
        (None, None) => return Ok(SignInOutcome::TermsRequired),
        (None, Some(terms)) => create(connection, sign_in, [&mailbox, &email, terms])?,
        (Some(owner), accepted) => {
            if let Some(terms) = accepted {
                accept_terms(connection, &owner, terms, sign_in.at)?;
            }
            owner
        }
    };
    connection
        .prepare_cached("UPDATE sign_in_links SET used_at = ?2 WHERE digest = ?1")?
        .execute(params![sign_in.link.as_bytes(), millis(sign_in.at)])?;
    if owner.suspended_at.is_some() {
        return Ok(SignInOutcome::Suspended);
    }
    connection
        .prepare_cached(
            "INSERT INTO owner_sessions (digest, owner, created_at, expires_at) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![
            sign_in.session.as_bytes(),
            owner.id.to_string(),
            millis(sign_in.at),
            millis(sign_in.expires_at)
        ])?;
    Ok(SignInOutcome::SignedIn { owner: read(connection, owner.id)?, is_new })
}

/// Creates the owner of a mailbox.
fn create(
    connection: &Connection,
    sign_in: &SignIn,
    [mailbox, email, terms]: [&str; 3],
) -> Result<StoredOwner, StoreFault> {
    let (id, at) = (sign_in.new_owner.to_string(), millis(sign_in.at));
    connection
        .prepare_cached(
            "INSERT INTO owners (id, mailbox, email, created_at, terms_version, terms_accepted_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?4)",
        )?
        .execute(params![id, mailbox, email, at, terms])?;
    let who = format!("owner:{id}");
    audit::add(connection, sign_in.at, [&who, "create_account", "", &format!("{id}, terms {terms}")])?;
    read(connection, sign_in.new_owner)
}

/// Records that an owner accepted another version of the terms.
fn accept_terms(
    connection: &Connection,
    owner: &StoredOwner,
    terms: &str,
    at: Wall,
) -> Result<(), StoreFault> {
    if owner.terms_version == terms {
        return Ok(());
    }
    let id = owner.id.to_string();
    connection
        .prepare_cached("UPDATE owners SET terms_version = ?2, terms_accepted_at = ?3 WHERE id = ?1")?
        .execute(params![id, terms, millis(at)])?;
    let who = format!("owner:{id}");
    audit::add(connection, at, [&who, "accept_terms", "", &format!("{id}, terms {terms}")])
}

/// A session that has not expired.
pub(super) fn session(
    connection: &Connection,
    digest: Digest,
    now: Wall,
) -> Result<Option<OwnerSession>, StoreFault> {
    let found: Option<(String, i64, i64)> = connection
        .prepare_cached(
            "SELECT owner, created_at, expires_at FROM owner_sessions WHERE digest = ?1 AND expires_at > ?2",
        )?
        .query_row(params![digest.as_bytes(), millis(now)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((id, created_at, expires_at)) = found else { return Ok(None) };
    let Some(owner) = id.parse().ok().map(|id| owner(connection, id)).transpose()?.flatten() else {
        return Ok(None);
    };
    let [created_at, expires_at] = [created_at, expires_at].map(|at| Wall::from_millis(at.unsigned_abs()));
    Ok(Some(OwnerSession { owner, created_at, expires_at }))
}

pub(super) fn end_session(connection: &Connection, digest: Digest) -> Result<(), StoreFault> {
    connection
        .prepare_cached("DELETE FROM owner_sessions WHERE digest = ?1")?
        .execute([digest.as_bytes()])?;
    Ok(())
}

/// Ends all sessions of an owner.
pub(super) fn end_sessions(connection: &Connection, owner: OwnerId) -> Result<(), StoreFault> {
    connection.prepare_cached("DELETE FROM owner_sessions WHERE owner = ?1")?.execute([owner.to_string()])?;
    Ok(())
}

/// Owners, ordered by id. Unreadable ones are skipped.
pub(super) fn owners(connection: &Connection, query: &OwnerQuery) -> Result<Vec<StoredOwner>, StoreFault> {
    let mut read = connection.prepare_cached(&format!(
        "{OWNERS} WHERE (?1 IS NULL OR instr(lower(email), lower(?1)) > 0 OR instr(mailbox, lower(?1)) > 0)
           AND (?2 IS NULL OR id = (SELECT owner FROM owned_applications WHERE application = ?2))
           AND (?3 IS NULL OR id > ?3)
         ORDER BY id LIMIT ?4"
    ))?;
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let bounds = params![
        query.email,
        query.application.map(|id| id.to_string()),
        query.after.map(|id| id.to_string()),
        limit
    ];
    let mut rows = read.query(bounds)?;
    let mut owners = Vec::new();
    while let Some(row) = rows.next()? {
        match described(connection, row) {
            Ok(owner) => owners.push(owner),
            Err(StoreFault::Record(_)) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(owners)
}

pub(super) fn owner(connection: &Connection, id: OwnerId) -> Result<Option<StoredOwner>, StoreFault> {
    let mut read = connection.prepare_cached(&format!("{OWNERS} WHERE id = ?1"))?;
    let mut rows = read.query([id.to_string()])?;
    rows.next()?.map(|row| described(connection, row)).transpose()
}

/// An owner who must exist.
pub(super) fn read(connection: &Connection, id: OwnerId) -> Result<StoredOwner, StoreFault> {
    owner(connection, id)?.ok_or_else(|| StoreError::from(OwnerRefusal::Unknown(id)).into())
}

fn of_mailbox(connection: &Connection, mailbox: &str) -> Result<Option<StoredOwner>, StoreFault> {
    let mut read = connection.prepare_cached(&format!("{OWNERS} WHERE mailbox = ?1"))?;
    let mut rows = read.query([mailbox])?;
    rows.next()?.map(|row| described(connection, row)).transpose()
}

/// The owner of a row, with the applications.
fn described(connection: &Connection, row: &Row<'_>) -> Result<StoredOwner, StoreFault> {
    let id = records::text(row, 0, "id")?;
    let at = |column, name| {
        let at = records::instant(row, column, name)?;
        at.ok_or_else(|| StoreFault::Record(format!("{name} is missing")))
    };
    Ok(StoredOwner {
        id: id.parse().map_err(|error| StoreFault::Record(format!("{error}")))?,
        email: records::text(row, 1, "email")?,
        created_at: at(2, "created_at")?,
        terms_version: records::text(row, 3, "terms_version")?,
        terms_accepted_at: at(4, "terms_accepted_at")?,
        tier: row.get(5)?,
        suspended_at: records::instant(row, 6, "suspended_at")?,
        applications: applications(connection, &id)?,
    })
}

/// The applications of an owner, ordered by id.
fn applications(connection: &Connection, owner: &str) -> Result<Vec<ApplicationId>, StoreFault> {
    let mut read = connection
        .prepare_cached("SELECT application FROM owned_applications WHERE owner = ?1 ORDER BY application")?;
    let ids: Vec<String> = read.query_map([owner], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
}

/// Makes a change with its audit record.
pub(super) fn change(connection: &Connection, change: &OwnerChange) -> Result<StoredOwner, StoreFault> {
    let (before, id) = (read(connection, change.owner)?, change.owner.to_string());
    let changed = match &change.what {
        OwnerChangeKind::Suspend => {
            connection
                .prepare_cached("UPDATE owners SET suspended_at = coalesce(suspended_at, ?2) WHERE id = ?1")?
                .execute(params![id, millis(change.at)])?;
            end_sessions(connection, change.owner)?;
            read(connection, change.owner)?
        }
        OwnerChangeKind::Resume => {
            connection
                .prepare_cached("UPDATE owners SET suspended_at = NULL WHERE id = ?1")?
                .execute([&id])?;
            read(connection, change.owner)?
        }
        OwnerChangeKind::SetTier(tier) => {
            connection
                .prepare_cached("UPDATE owners SET tier = ?2 WHERE id = ?1")?
                .execute(params![id, tier])?;
            read(connection, change.owner)?
        }
        OwnerChangeKind::Delete { in_own_name } => {
            before.check_deletion(*in_own_name)?;
            delete(connection, &before)?;
            before
        }
    };
    let detail = change.what.audited(change.owner);
    audit::add(connection, change.at, [&change.who, change.what.word(), "", &detail])?;
    Ok(changed)
}

/// Deletes an owner without applications, and everything that contains the address.
fn delete(connection: &Connection, owner: &StoredOwner) -> Result<(), StoreFault> {
    let id = owner.id.to_string();
    end_sessions(connection, owner.id)?;
    let mailbox = "SELECT mailbox FROM owners WHERE id = ?1";
    connection
        .prepare_cached(&format!(
            "DELETE FROM mail_queue WHERE recipient = ?2
             OR recipient IN (SELECT email FROM sign_in_links WHERE mailbox = ({mailbox}))"
        ))?
        .execute([&id, &owner.email])?;
    connection
        .prepare_cached(&format!("DELETE FROM sign_in_links WHERE mailbox = ({mailbox})"))?
        .execute([&id])?;
    connection.prepare_cached("DELETE FROM owners WHERE id = ?1")?.execute([&id])?;
    Ok(())
}

/// Gives a new application to an owner on a day.
pub(super) fn own(
    connection: &Connection,
    application: &str,
    Ownership { owner, at_most }: Ownership,
    day: Day,
) -> Result<(), StoreFault> {
    let closed = closed_applications::used_on(connection, owner, day)?;
    read(connection, owner)?.check_creation(closed, at_most)?;
    connection
        .prepare_cached("INSERT INTO owned_applications (application, owner) VALUES (?1, ?2)")?
        .execute([application, &owner.to_string()])?;
    Ok(())
}

/// Removes the owner of an application.
pub(super) fn disown(connection: &Connection, application: &str) -> Result<(), StoreFault> {
    connection
        .prepare_cached("DELETE FROM owned_applications WHERE application = ?1")?
        .execute([application])?;
    Ok(())
}

/// Deletes links and sessions that expired before the current day of the ledger. Returns their number.
pub(super) fn delete_expired(connection: &Connection) -> Result<u64, StoreFault> {
    let Some(today) = ledger::day(connection)? else { return Ok(0) };
    let today = millis(today.start());
    let mut deleted = 0;
    for table in ["sign_in_links", "owner_sessions"] {
        deleted += connection
            .prepare_cached(&format!(
                "DELETE FROM {table} WHERE digest IN (SELECT digest FROM {table} WHERE expires_at < ?1 LIMIT 500)"
            ))?
            .execute([today])?;
    }
    Ok(u64::try_from(deleted).unwrap_or(u64::MAX))
}

const fn millis(at: Wall) -> i64 {
    at.millis().cast_signed()
}
