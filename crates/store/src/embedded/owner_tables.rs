//! Owners of applications, their links by e-mail and their sessions. The rules are in `store::owners`.

use rusqlite::{Connection, Row, params};

use super::fault::StoreFault;
use super::statements::Statements as _;
use super::{audit, closed_applications, ledger, mail_queue, records};
use crate::stored::{millis, stored};
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
    let count = "SELECT count(*) FROM sign_in_links WHERE mailbox = ?1 AND created_at >= ?2";
    let (sent,): (i64,) = connection.one(count, params![link.mailbox, millis(link.allowance.since)])?;
    let is_allowed = sent < i64::from(link.allowance.links);
    // Only the address is read: the time must not depend on the applications of an owner.
    let known = connection.find("SELECT email FROM owners WHERE mailbox = ?1", [&link.mailbox])?;
    let email = known.map_or_else(|| link.email.clone(), |(email,)| email);
    let (digest, created_at, expires_at) =
        (link.digest.as_bytes(), millis(link.created_at), millis(link.expires_at));
    connection.run(
        "INSERT INTO sign_in_links (digest, mailbox, email, created_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![digest, link.mailbox, email, created_at, expires_at],
    )?;
    mail_queue::add(connection, &[NewMail { recipient: email, ..mail.clone() }])?;
    connection.run("DELETE FROM sign_in_links WHERE digest = ?1 AND NOT ?2", params![digest, is_allowed])?;
    let unsent = params![mail.message_id, is_allowed];
    connection.run("DELETE FROM mail_queue WHERE message_id = ?1 AND NOT ?2", unsent)?;
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
fn unused(
    connection: &Connection,
    digest: Digest,
    now: Wall,
) -> Result<Option<(String, String)>, StoreFault> {
    connection.find(
        "SELECT email, mailbox FROM sign_in_links WHERE digest = ?1 AND used_at IS NULL AND expires_at > ?2",
        params![digest.as_bytes(), millis(now)],
    )
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
    let used = params![sign_in.link.as_bytes(), millis(sign_in.at)];
    connection.run("UPDATE sign_in_links SET used_at = ?2 WHERE digest = ?1", used)?;
    if owner.suspended_at.is_some() {
        return Ok(SignInOutcome::Suspended);
    }
    let (session, at, expires_at) =
        (sign_in.session.as_bytes(), millis(sign_in.at), millis(sign_in.expires_at));
    connection.run(
        "INSERT INTO owner_sessions (digest, owner, created_at, expires_at) VALUES (?1, ?2, ?3, ?4)",
        params![session, owner.id.to_string(), at, expires_at],
    )?;
    Ok(SignInOutcome::SignedIn { owner: read(connection, owner.id)?, is_new })
}

/// Creates the owner of a mailbox.
fn create(
    connection: &Connection,
    sign_in: &SignIn,
    [mailbox, email, terms]: [&str; 3],
) -> Result<StoredOwner, StoreFault> {
    let (id, at) = (sign_in.new_owner.to_string(), millis(sign_in.at));
    connection.run(
        "INSERT INTO owners (id, mailbox, email, created_at, terms_version, terms_accepted_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?4)",
        params![id, mailbox, email, at, terms],
    )?;
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
    let accept = "UPDATE owners SET terms_version = ?2, terms_accepted_at = ?3 WHERE id = ?1";
    connection.run(accept, params![id, terms, millis(at)])?;
    let who = format!("owner:{id}");
    audit::add(connection, at, [&who, "accept_terms", "", &format!("{id}, terms {terms}")])
}

/// A session that has not expired.
pub(super) fn session(
    connection: &Connection,
    digest: Digest,
    now: Wall,
) -> Result<Option<OwnerSession>, StoreFault> {
    let found: Option<(String, i64, i64)> = connection.find(
        "SELECT owner, created_at, expires_at FROM owner_sessions WHERE digest = ?1 AND expires_at > ?2",
        params![digest.as_bytes(), millis(now)],
    )?;
    let Some((id, created_at, expires_at)) = found else { return Ok(None) };
    let Some(owner) = id.parse().ok().map(|id| owner(connection, id)).transpose()?.flatten() else {
        return Ok(None);
    };
    let [created_at, expires_at] = [created_at, expires_at].map(|at| Wall::from_millis(at.unsigned_abs()));
    Ok(Some(OwnerSession { owner, created_at, expires_at }))
}

pub(super) fn end_session(connection: &Connection, digest: Digest) -> Result<(), StoreFault> {
    connection.run("DELETE FROM owner_sessions WHERE digest = ?1", [digest.as_bytes()]).map(drop)
}

/// Ends all sessions of an owner.
pub(super) fn end_sessions(connection: &Connection, owner: OwnerId) -> Result<(), StoreFault> {
    connection.run("DELETE FROM owner_sessions WHERE owner = ?1", [owner.to_string()]).map(drop)
}

/// Owners, ordered by id. Unreadable ones are skipped.
pub(super) fn owners(connection: &Connection, query: &OwnerQuery) -> Result<Vec<StoredOwner>, StoreFault> {
    let select = format!(
        "{OWNERS} WHERE (?1 IS NULL OR instr(lower(email), lower(?1)) > 0 OR instr(mailbox, lower(?1)) > 0)
           AND (?2 IS NULL OR id = (SELECT owner FROM owned_applications WHERE application = ?2))
           AND (?3 IS NULL OR id > ?3)
         ORDER BY id LIMIT ?4"
    );
    let OwnerQuery { email, application, after, limit } = query;
    let (application, after) = (application.map(|id| id.to_string()), after.map(|id| id.to_string()));
    let bounds = params![email, application, after, stored(*limit)];
    connection.readable(&select, bounds, |row| described(connection, row))
}

pub(super) fn owner(connection: &Connection, id: OwnerId) -> Result<Option<StoredOwner>, StoreFault> {
    by(connection, "id", &id.to_string())
}

/// An owner who must exist.
pub(super) fn read(connection: &Connection, id: OwnerId) -> Result<StoredOwner, StoreFault> {
    owner(connection, id)?.ok_or_else(|| StoreError::from(OwnerRefusal::Unknown(id)).into())
}

fn of_mailbox(connection: &Connection, mailbox: &str) -> Result<Option<StoredOwner>, StoreFault> {
    by(connection, "mailbox", mailbox)
}

fn by(connection: &Connection, column: &str, value: &str) -> Result<Option<StoredOwner>, StoreFault> {
    let mut read = connection.prepare_cached(&format!("{OWNERS} WHERE {column} = ?1"))?;
    let mut rows = read.query([value])?;
    rows.next()?.map(|row| described(connection, row)).transpose()
}

/// The owner of a row, with the applications.
fn described(connection: &Connection, row: &Row<'_>) -> Result<StoredOwner, StoreFault> {
    let id = records::text(row, 0, "id")?;
    Ok(StoredOwner {
        id: id.parse().map_err(|error| StoreFault::Record(format!("{error}")))?,
        email: records::text(row, 1, "email")?,
        created_at: records::time(row, 2, "created_at")?,
        terms_version: records::text(row, 3, "terms_version")?,
        terms_accepted_at: records::time(row, 4, "terms_accepted_at")?,
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
            let suspend = "UPDATE owners SET suspended_at = coalesce(suspended_at, ?2) WHERE id = ?1";
            connection.run(suspend, params![id, millis(change.at)])?;
            end_sessions(connection, change.owner)?;
            read(connection, change.owner)?
        }
        OwnerChangeKind::Resume => {
            connection.run("UPDATE owners SET suspended_at = NULL WHERE id = ?1", [&id])?;
            read(connection, change.owner)?
        }
        OwnerChangeKind::SetTier(tier) => {
            connection.run("UPDATE owners SET tier = ?2 WHERE id = ?1", params![id, tier])?;
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
    let mail = format!(
        "DELETE FROM mail_queue WHERE recipient = ?2
         OR recipient IN (SELECT email FROM sign_in_links WHERE mailbox = ({mailbox}))"
    );
    connection.run(&mail, [&id, &owner.email])?;
    connection.run(&format!("DELETE FROM sign_in_links WHERE mailbox = ({mailbox})"), [&id])?;
    connection.run("DELETE FROM owners WHERE id = ?1", [&id]).map(drop)
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
    let insert = "INSERT INTO owned_applications (application, owner) VALUES (?1, ?2)";
    connection.run(insert, [application, &owner.to_string()]).map(drop)
}

/// Removes the owner of an application.
pub(super) fn disown(connection: &Connection, application: &str) -> Result<(), StoreFault> {
    connection.run("DELETE FROM owned_applications WHERE application = ?1", [application]).map(drop)
}

/// Deletes links and sessions that expired before the current day of the ledger. Returns their number.
pub(super) fn delete_expired(connection: &Connection) -> Result<u64, StoreFault> {
    let Some(today) = ledger::day(connection)? else { return Ok(0) };
    let today = millis(today.start());
    let mut deleted = 0;
    for table in ["sign_in_links", "owner_sessions"] {
        let delete = format!(
            "DELETE FROM {table} WHERE digest IN (SELECT digest FROM {table} WHERE expires_at < ?1 LIMIT 500)"
        );
        deleted += connection.run(&delete, [today])?;
    }
    Ok(deleted)
}
