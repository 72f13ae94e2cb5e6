//! Owners of applications and their sessions. The rules are in `store::owners`.
//!
//! Every change of an owner locks the row of `site` first, as changes of applications do.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row, Transaction};

use super::connection::{Parameter, SchemaName};
use super::link::DatabaseLink;
use super::{PostgresStore, audit, closed_applications};
use crate::clock::{Day, Wall};
use crate::keys::{Digest, OwnerId};
use crate::store::{
    NewMail, NewSignInLink, OwnerChange, OwnerChangeKind, OwnerQuery, OwnerRefusal, OwnerSession, OwnerStore,
    Ownership, SignIn, SignInOutcome, StoreError, StoreFuture, StoredOwner, UsableLink,
};

/// A connection of its own for owners and mail.
pub(super) struct AccountsDatabase {
    pub(super) schema: SchemaName,
    pub(super) link: DatabaseLink,
}

pub(super) type OwnerResult<T> = Result<T, tokio_postgres::Error>;

const UNUSED_LINK: &str = "
SELECT l.email, l.mailbox, (SELECT id FROM {schema}.owners o WHERE o.mailbox = l.mailbox) AS owner
FROM {schema}.sign_in_links l WHERE l.digest = $1 AND l.used_at IS NULL AND l.expires_at > $2";

const COLUMNS: &str = "
       o.id, o.email, o.created_at, o.terms_version, o.terms_accepted_at, o.tier, o.suspended_at,
       ARRAY(SELECT application FROM {schema}.owned_applications WHERE owner = o.id ORDER BY application) AS applications";

const OWNERS: &str = "
SELECT {columns}
FROM {schema}.owners o
WHERE ($1::text IS NULL OR position(lower($1) IN lower(o.email)) > 0 OR position(lower($1) IN o.mailbox) > 0)
  AND ($2::text IS NULL OR o.id = (SELECT owner FROM {schema}.owned_applications WHERE application = $2))
  AND ($3::text IS NULL OR o.id > $3)
ORDER BY o.id LIMIT $4";

const OWNER: &str = "
SELECT {columns}
FROM {schema}.owners o WHERE o.id = $1";

const SESSION: &str = "
SELECT {columns},
       s.created_at AS session_created_at, s.expires_at AS session_expires_at
FROM {schema}.owner_sessions s JOIN {schema}.owners o ON o.id = s.owner WHERE s.digest = $1 AND s.expires_at > $2";

const SUSPEND: &str = "UPDATE {schema}.owners SET suspended_at = coalesce(suspended_at, $2) WHERE id = $1";
const RESUME: &str = "UPDATE {schema}.owners SET suspended_at = NULL WHERE id = $1";
const SET_TIER: &str = "UPDATE {schema}.owners SET tier = $2 WHERE id = $1";
const END_SESSION: &str = "DELETE FROM {schema}.owner_sessions WHERE digest = $1";
const END_SESSIONS: &str = "DELETE FROM {schema}.owner_sessions WHERE owner = $1";

const DELETE_MAIL: &str = "
DELETE FROM {schema}.mail_queue WHERE recipient = $2 OR recipient IN (
    SELECT l.email FROM {schema}.sign_in_links l JOIN {schema}.owners o ON o.mailbox = l.mailbox WHERE o.id = $1)";

const DELETE_LINKS: &str = "
DELETE FROM {schema}.sign_in_links WHERE mailbox = (SELECT mailbox FROM {schema}.owners WHERE id = $1)";

const DELETE_OWNER: &str = "DELETE FROM {schema}.owners WHERE id = $1";

const OWN: &str = "INSERT INTO {schema}.owned_applications (application, owner) VALUES ($1, $2)";

/// A transaction that changes owners.
pub(super) struct OwnerTransaction<'t> {
    pub(super) transaction: &'t Transaction<'t>,
    pub(super) schema: &'t SchemaName,
}

impl OwnerTransaction<'_> {
    pub(super) async fn execute(&self, text: &str, row: &[Parameter<'_>]) -> OwnerResult<u64> {
        self.transaction.client().execute_typed(&self.schema.statement(text), row).await
    }

    async fn change(&self, change: &OwnerChange) -> OwnerResult<Result<StoredOwner, StoreError>> {
        self.execute(audit::LOCK, &[]).await?;
        let Some(before) = owner(self.transaction.client(), self.schema, change.owner).await? else {
            return Ok(Err(OwnerRefusal::Unknown(change.owner).into()));
        };
        let (id, at) = (change.owner.to_string(), millis(change.at));
        let owned: Parameter<'_> = (&id, Type::TEXT);
        match &change.what {
            OwnerChangeKind::Suspend => {
                self.execute(SUSPEND, &[owned.clone(), (&at, Type::INT8)]).await?;
                self.execute(END_SESSIONS, &[owned]).await?;
            }
            OwnerChangeKind::Resume => drop(self.execute(RESUME, &[owned]).await?),
            OwnerChangeKind::SetTier(tier) => {
                self.execute(SET_TIER, &[owned, (tier, Type::TEXT)]).await?;
            }
            OwnerChangeKind::Delete { in_own_name } => {
                if let Err(refusal) = before.check_deletion(*in_own_name) {
                    return Ok(Err(refusal));
                }
                self.execute(END_SESSIONS, std::slice::from_ref(&owned)).await?;
                self.execute(DELETE_MAIL, &[owned.clone(), (&before.email, Type::TEXT)]).await?;
                self.execute(DELETE_LINKS, std::slice::from_ref(&owned)).await?;
                self.execute(DELETE_OWNER, &[owned]).await?;
            }
        }
        let detail = change.what.audited(change.owner);
        let words = [change.who.as_str(), change.what.word(), "", &detail];
        audit::add(self.transaction, self.schema, change.at, words).await?;
        Ok(Ok(owner(self.transaction.client(), self.schema, change.owner).await?.unwrap_or(before)))
    }
}

/// Gives a new application to an owner on a day, in the transaction that creates it.
pub(super) async fn own(
    transaction: &Transaction<'_>,
    schema: &SchemaName,
    application: &String,
    Ownership { owner: id, at_most }: Ownership,
    day: Day,
) -> OwnerResult<Result<(), StoreError>> {
    let Some(owner) = owner(transaction.client(), schema, id).await? else {
        return Ok(Err(OwnerRefusal::Unknown(id).into()));
    };
    let id = id.to_string();
    let closed = closed_applications::used_on(transaction, schema, &id, day).await?;
    if let Err(refusal) = owner.check_creation(closed, at_most) {
        return Ok(Err(refusal));
    }
    let row: [Parameter<'_>; 2] = [(application, Type::TEXT), (&id, Type::TEXT)];
    transaction.client().execute_typed(&schema.statement(OWN), &row).await.map(|_| Ok(()))
}

/// An unused link, and its mailbox.
pub(super) async fn unused(
    client: &Client,
    schema: &SchemaName,
    digest: Digest,
    now: Wall,
) -> OwnerResult<Option<(UsableLink, String)>> {
    let (digest, now) = (digest.as_bytes().as_slice(), millis(now));
    let row: [Parameter<'_>; 2] = [(&digest, Type::BYTEA), (&now, Type::INT8)];
    let Some(row) = client.query_typed_opt(&schema.statement(UNUSED_LINK), &row).await? else {
        return Ok(None);
    };
    let owner: Option<&str> = row.try_get("owner")?;
    let link = UsableLink { email: row.try_get("email")?, owner: owner.and_then(|id| id.parse().ok()) };
    Ok(Some((link, row.try_get("mailbox")?)))
}

pub(super) async fn owner(
    client: &Client,
    schema: &SchemaName,
    id: OwnerId,
) -> OwnerResult<Option<StoredOwner>> {
    let id = id.to_string();
    let row: [Parameter<'_>; 1] = [(&id, Type::TEXT)];
    let found = client.query_typed_opt(&schema.statement(&OWNER.replace("{columns}", COLUMNS)), &row).await?;
    Ok(found.as_ref().map(described).transpose()?.flatten())
}

/// The owner of a row. The engine writes valid ids only.
fn described(row: &Row) -> OwnerResult<Option<StoredOwner>> {
    let at = |column| row.try_get::<_, Option<i64>>(column).map(|at| at.map(wall));
    let Ok(id) = row.try_get::<_, &str>("id")?.parse() else { return Ok(None) };
    Ok(Some(StoredOwner {
        id,
        email: row.try_get("email")?,
        created_at: at("created_at")?.unwrap_or_default(),
        terms_version: row.try_get("terms_version")?,
        terms_accepted_at: at("terms_accepted_at")?.unwrap_or_default(),
        tier: row.try_get("tier")?,
        suspended_at: at("suspended_at")?,
        applications: row
            .try_get::<_, Vec<&str>>("applications")?
            .into_iter()
            .filter_map(|id| id.parse().ok())
            .collect(),
    }))
}

fn wall(millis: i64) -> Wall {
    Wall::from_millis(millis.unsigned_abs())
}

pub(super) const fn millis(at: Wall) -> i64 {
    at.millis().cast_signed()
}

impl AccountsDatabase {
    pub(super) fn new(schema: &SchemaName, link: DatabaseLink) -> Self {
        Self { schema: schema.clone(), link }
    }

    async fn session(&self, client: &Client, digest: Digest, now: Wall) -> OwnerResult<Option<OwnerSession>> {
        let (digest, now) = (digest.as_bytes().as_slice(), millis(now));
        let row: [Parameter<'_>; 2] = [(&digest, Type::BYTEA), (&now, Type::INT8)];
        let found = client
            .query_typed_opt(&self.schema.statement(&SESSION.replace("{columns}", COLUMNS)), &row)
            .await?;
        let Some(row) = found else { return Ok(None) };
        let (created_at, expires_at) =
            (row.try_get("session_created_at")?, row.try_get("session_expires_at")?);
        Ok(described(&row)?.map(|owner| OwnerSession {
            owner,
            created_at: wall(created_at),
            expires_at: wall(expires_at),
        }))
    }

    async fn owners(&self, client: &Client, query: &OwnerQuery) -> OwnerResult<Vec<StoredOwner>> {
        let [application, after] =
            [query.application.map(|id| id.to_string()), query.after.map(|id| id.to_string())];
        let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
        let bounds: [Parameter<'_>; 4] = [
            (&query.email, Type::TEXT),
            (&application, Type::TEXT),
            (&after, Type::TEXT),
            (&limit, Type::INT8),
        ];
        let rows = client
            .query_typed(&self.schema.statement(&OWNERS.replace("{columns}", COLUMNS)), &bounds)
            .await?;
        rows.iter().filter_map(|row| described(row).transpose()).collect()
    }

    async fn end(&self, client: &Client, text: &str, row: &[Parameter<'_>]) -> OwnerResult<()> {
        client.execute_typed(&self.schema.statement(text), row).await.map(drop)
    }

    /// Runs a change in one transaction, which is committed unless the change is refused.
    pub(super) async fn change<T>(
        &self,
        doing: &'static str,
        change: impl AsyncFnOnce(OwnerTransaction<'_>) -> OwnerResult<Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let work = async |client: &mut Client| {
            let transaction = client.transaction().await?;
            let made = change(OwnerTransaction { transaction: &transaction, schema: &self.schema }).await?;
            if made.is_ok() {
                transaction.commit().await?;
            } else {
                transaction.rollback().await?;
            }
            Ok(made)
        };
        self.link.run(doing, work).await?
    }
}

impl OwnerStore for PostgresStore {
    fn send_link(&self, link: NewSignInLink, mail: NewMail) -> StoreFuture<'_, bool> {
        Box::pin(self.accounts.change("store a link", async move |transaction| {
            transaction.send_link(&link, &mail).await.map(Ok)
        }))
    }

    fn usable_link(&self, digest: Digest, now: Wall) -> StoreFuture<'_, Option<UsableLink>> {
        Box::pin(async move {
            let schema = &self.accounts.schema;
            let work = async |client: &mut Client| unused(client, schema, digest, now).await;
            let link = self.accounts.link.run("read a link", work).await?;
            Ok(link.map(|(link, _)| link))
        })
    }

    fn sign_in(&self, sign_in: SignIn) -> StoreFuture<'_, SignInOutcome> {
        Box::pin(
            self.accounts.change("sign in an owner", async move |transaction| {
                transaction.sign_in(&sign_in).await.map(Ok)
            }),
        )
    }

    fn session(&self, digest: Digest, now: Wall) -> StoreFuture<'_, Option<OwnerSession>> {
        Box::pin(async move {
            let work = async |client: &mut Client| self.accounts.session(client, digest, now).await;
            Ok(self.accounts.link.run("read a session", work).await?)
        })
    }

    fn end_session(&self, digest: Digest) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let digest = digest.as_bytes().as_slice();
            let row: [Parameter<'_>; 1] = [(&digest, Type::BYTEA)];
            let work = async |client: &mut Client| self.accounts.end(client, END_SESSION, &row).await;
            Ok(self.accounts.link.run("end a session", work).await?)
        })
    }

    fn end_sessions(&self, owner: OwnerId) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let id = owner.to_string();
            let row: [Parameter<'_>; 1] = [(&id, Type::TEXT)];
            let work = async |client: &mut Client| self.accounts.end(client, END_SESSIONS, &row).await;
            Ok(self.accounts.link.run("end the sessions of an owner", work).await?)
        })
    }

    fn owners(&self, query: OwnerQuery) -> StoreFuture<'_, Vec<StoredOwner>> {
        Box::pin(async move {
            let work = async |client: &mut Client| self.accounts.owners(client, &query).await;
            Ok(self.accounts.link.run("read owners", work).await?)
        })
    }

    fn owner(&self, id: OwnerId) -> StoreFuture<'_, Option<StoredOwner>> {
        Box::pin(async move {
            let schema = &self.accounts.schema;
            let work = async |client: &mut Client| owner(client, schema, id).await;
            Ok(self.accounts.link.run("read an owner", work).await?)
        })
    }

    fn change_owner(&self, change: OwnerChange) -> StoreFuture<'_, StoredOwner> {
        Box::pin(
            self.accounts
                .change("change an owner", async move |transaction| transaction.change(&change).await),
        )
    }
}
