//! Application owners and their sessions. The rules are in `store::owners`.

use super::{
    closed_applications, limits_until,
    store::{
        Access::{self, Read, Write},
        Store,
    },
    webhooks,
};
use crate::{
    OwnerChange, OwnerChangeKind, OwnerQuery, OwnerRefusal, OwnerSession, StoreError, StoreResult,
    StoredOwner, notice_words,
    notices::parse_notices,
    statements::{
        Done, RowResult,
        SqlField::{Digest as DigestOf, Number, OptionalText, Text, Time},
        SqlRow, Tables,
    },
    stored::stored,
};
use scoregate_base::{
    clock::{Day, Wall},
    keys::{ApplicationId, Digest, OwnerId},
    limits::OwnLimits,
};

const COLUMNS: &str = "
       o.id, o.email, o.created_at, o.terms_version, o.terms_accepted_at, o.tier, o.own_limits, o.suspended_at,
       o.notices,
       (SELECT string_agg(application, ',' ORDER BY application) FROM {schema}.owned_applications WHERE owner = o.id)
           AS applications";
const OWNER: &str = "
SELECT {columns}
FROM {schema}.owners o WHERE o.id = $1";
const OWNERS: &str = "
SELECT {columns}
FROM {schema}.owners o
WHERE ($1 IS NULL OR {position}(lower(o.email), lower($1)) > 0 OR {position}(o.mailbox, lower($1)) > 0)
  AND ($2 IS NULL OR o.id = (SELECT owner FROM {schema}.owned_applications WHERE application = $2))
  AND ($3 IS NULL OR o.id > $3)
ORDER BY o.id LIMIT $4";
const SESSION: &str = "
SELECT {columns},
       s.created_at AS session_created_at, s.expires_at AS session_expires_at
FROM {schema}.owner_sessions s JOIN {schema}.owners o ON o.id = s.owner WHERE s.digest = $1 AND s.expires_at > $2";
const END_SESSION: &str = "DELETE FROM {schema}.owner_sessions WHERE digest = $1";
const END_SESSIONS: &str = "DELETE FROM {schema}.owner_sessions WHERE owner = $1";
const SUSPEND: &str =
    "UPDATE {schema}.owners SET suspended_at = coalesce(suspended_at, $2) WHERE id = $1";
const RESUME: &str = "UPDATE {schema}.owners SET suspended_at = NULL WHERE id = $1";
const SET_TIER: &str = "UPDATE {schema}.owners SET tier = $2 WHERE id = $1";
const SET_LIMITS: &str = "UPDATE {schema}.owners SET own_limits = $2 WHERE id = $1";
const SET_NOTICES: &str = "UPDATE {schema}.owners SET notices = $2 WHERE id = $1";
const DELETE_MAIL: &str = "
DELETE FROM {schema}.mail_queue WHERE recipient = $2 OR recipient IN (
    SELECT l.email FROM {schema}.sign_in_links l JOIN {schema}.owners o ON o.mailbox = l.mailbox WHERE o.id = $1)";
const DELETE_LINKS: &str = "
DELETE FROM {schema}.sign_in_links WHERE mailbox = (SELECT mailbox FROM {schema}.owners WHERE id = $1)";
const DELETE_OWNER: &str = "DELETE FROM {schema}.owners WHERE id = $1";
const OWN: &str = "INSERT INTO {schema}.owned_applications (application, owner) VALUES ($1, $2)";
pub const DISOWN: &str = "DELETE FROM {schema}.owned_applications WHERE application = $1";

impl Store {
    /// Owners, ordered by id.
    pub async fn owners(&self, query: OwnerQuery) -> StoreResult<Vec<StoredOwner>> {
        self.run_for_accounts(Read, "read owners", async move |tables| {
            owners(tables, &query).await
        })
        .await
    }

    /// The owner with this id.
    pub async fn owner(&self, id: OwnerId) -> StoreResult<Option<StoredOwner>> {
        self.run_for_accounts(Read, "read an owner", async move |tables| {
            owner(tables, id).await
        })
        .await
    }

    /// The session with this digest; `None` if there is none or if it has expired.
    pub async fn session(&self, digest: Digest, now: Wall) -> StoreResult<Option<OwnerSession>> {
        let statement = SESSION.replace("{columns}", COLUMNS);
        self.run_for_accounts(Read, "read a session", async move |tables| {
            let values = [DigestOf(&digest), Time(now)];
            let found = tables.find(&statement, &values, owner_session);
            Ok(found.await?.flatten())
        })
        .await
    }

    /// Ends a session, if it exists.
    pub async fn end_session(&self, digest: Digest) -> StoreResult<()> {
        self.run_for_accounts(Write, "end a session", async move |tables| {
            tables
                .run(END_SESSION, &[DigestOf(&digest)])
                .await
                .map(drop)
        })
        .await
    }

    /// Ends all sessions of an owner.
    pub async fn end_sessions(&self, owner: OwnerId) -> StoreResult<()> {
        let doing = "end the sessions of an owner";
        self.run_for_accounts(Write, doing, async move |tables| {
            end_sessions(tables, owner).await
        })
        .await
    }

    /// Makes a change and its audit record durable in one transaction. Returns the changed or deleted owner.
    pub async fn change_owner(&self, change: OwnerChange) -> StoreResult<StoredOwner> {
        let access = if matches!(change.what, OwnerChangeKind::Delete { .. }) {
            Access::Erase
        } else {
            Access::Change
        };
        self.run_for_accounts(access, "change an owner", async move |tables| {
            self::change(tables, &change).await
        })
        .await
    }
}

/// Owners, ordered by id.
pub async fn owners(tables: Tables<'_>, query: &OwnerQuery) -> Done<Vec<StoredOwner>> {
    let OwnerQuery {
        email,
        application,
        after,
        limit,
    } = query;
    let application = application.map(|id| id.to_string());
    let after = after.map(|id| id.to_string());
    let statement = OWNERS.replace("{columns}", COLUMNS);
    let [email, application, after] =
        [email, &application, &after].map(|text| OptionalText(text.as_deref()));
    tables
        .list(
            &statement,
            &[email, application, after, Number(stored(*limit))],
            described,
        )
        .await
}

pub async fn owner(tables: Tables<'_>, id: OwnerId) -> Done<Option<StoredOwner>> {
    let statement = OWNER.replace("{columns}", COLUMNS);
    Ok(tables
        .find(&statement, &[Text(&id.to_string())], described)
        .await?
        .flatten())
}

/// The owner of an application.
pub async fn of_application(
    tables: Tables<'_>,
    application: ApplicationId,
) -> Done<Option<StoredOwner>> {
    let query = OwnerQuery {
        application: Some(application),
        limit: 1,
        ..OwnerQuery::default()
    };
    Ok(owners(tables, &query).await?.pop())
}

/// An owner; an error if the owner does not exist.
pub async fn existing(tables: Tables<'_>, id: OwnerId) -> Done<StoredOwner> {
    owner(tables, id)
        .await?
        .ok_or_else(|| StoreError::Owner(OwnerRefusal::Unknown(id)).into())
}

/// The owner of a row. Invalid ids come from manual edits.
fn described(row: &SqlRow<'_>) -> RowResult<Option<StoredOwner>> {
    let Ok(id) = row.text("id")?.parse() else {
        return Ok(None);
    };
    let applications = row.optional_text("applications")?.unwrap_or_default();
    Ok(Some(StoredOwner {
        id,
        email: row.text("email")?,
        created_at: row.time("created_at")?,
        terms_version: row.optional_text("terms_version")?,
        terms_accepted_at: row.optional_time("terms_accepted_at")?,
        tier: row.optional_text("tier")?,
        own: own_limits(row)?,
        suspended_at: row.optional_time("suspended_at")?,
        notices: row.optional_text("notices")?.as_deref().map(parse_notices),
        applications: applications
            .split(',')
            .filter_map(|id| id.parse().ok())
            .collect(),
    }))
}

/// The limits of an account. Unreadable limits count as no limits. The next change replaces them.
fn own_limits(row: &SqlRow<'_>) -> RowResult<OwnLimits> {
    let text = row.optional_text("own_limits")?.unwrap_or_default();
    Ok(OwnLimits::from_text(&text).unwrap_or_default())
}

fn owner_session(row: &SqlRow<'_>) -> RowResult<Option<OwnerSession>> {
    let created_at = row.time("session_created_at")?;
    let expires_at = row.time("session_expires_at")?;
    Ok(described(row)?.map(|owner| OwnerSession {
        owner,
        created_at,
        expires_at,
    }))
}

async fn end_sessions(tables: Tables<'_>, owner: OwnerId) -> Done<()> {
    tables
        .run(END_SESSIONS, &[Text(&owner.to_string())])
        .await
        .map(drop)
}

/// Makes a change with its audit record, in a transaction that must be rolled back if the change is refused.
async fn change(tables: Tables<'_>, change: &OwnerChange) -> Done<StoredOwner> {
    tables.lock().await?;
    let before = existing(tables, change.owner).await?;
    let owner_id = change.owner.to_string();
    let id = Text(&owner_id);
    match &change.what {
        OwnerChangeKind::Suspend => {
            tables.run(SUSPEND, &[id, Time(change.at)]).await?;
            end_sessions(tables, change.owner).await?;
        }
        OwnerChangeKind::Resume => drop(tables.run(RESUME, &[id]).await?),
        OwnerChangeKind::SetTier(tier) => {
            set(tables, SET_TIER, &owner_id, tier.as_deref()).await?;
        }
        OwnerChangeKind::SetLimits(changes) => {
            let own = changes.over(before.own).to_text();
            set(tables, SET_LIMITS, &owner_id, own.as_deref()).await?;
        }
        OwnerChangeKind::SetNotices(kinds) => {
            let words = notice_words(kinds);
            set(tables, SET_NOTICES, &owner_id, Some(&words)).await?;
        }
        OwnerChangeKind::Webhook {
            id: webhook,
            change: what,
        } => webhooks::change(tables, &owner_id, webhook, what, change.at).await?,
        OwnerChangeKind::Delete { in_own_name } => {
            before.check_deletion(*in_own_name)?;
            delete(tables, &before).await?;
        }
    }
    audit(tables, change).await?;
    Ok(owner(tables, change.owner).await?.unwrap_or(before))
}

async fn audit(tables: Tables<'_>, change: &OwnerChange) -> Done<()> {
    let detail = change.what.audited(change.owner);
    let words = [&change.who, change.what.word(), "", &detail];
    tables.audit(change.at, words).await
}

/// Sets a text column of an owner.
async fn set(tables: Tables<'_>, statement: &str, id: &str, text: Option<&str>) -> Done<()> {
    let values = [Text(id), OptionalText(text)];
    tables.run(statement, &values).await.map(drop)
}

/// Deletes an owner, including sessions, mail, webhooks and links.
pub async fn delete(tables: Tables<'_>, owner: &StoredOwner) -> Done<()> {
    let owner_id = owner.id.to_string();
    let id = Text(&owner_id);
    end_sessions(tables, owner.id).await?;
    tables.run(DELETE_MAIL, &[id, Text(&owner.email)]).await?;
    webhooks::remove(tables, &owner_id, None).await?;
    tables.run(DELETE_LINKS, &[id]).await?;
    tables.run(DELETE_OWNER, &[id]).await.map(drop)
}

/// Assigns a new application to an owner who signed up, in the transaction that creates it.
pub async fn own(
    tables: Tables<'_>,
    application: &str,
    id: OwnerId,
    at_most: u32,
    day: Day,
) -> Done<()> {
    let owner = existing(tables, id).await?;
    let closed = closed_applications::used_on(tables, &id.to_string(), day).await?;
    owner.check_creation(closed, at_most)?;
    give(tables, application, &owner).await
}

/// Assigns an application without an owner to this owner, with the limits of the account.
pub async fn give(tables: Tables<'_>, application: &str, owner: &StoredOwner) -> Done<()> {
    let id = owner.id.to_string();
    tables.run(OWN, &[Text(application), Text(&id)]).await?;
    if !owner.own.is_empty() {
        limits_until::set_owner(tables, application, owner.own).await?;
    }
    Ok(())
}
