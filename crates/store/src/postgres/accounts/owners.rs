//! Owners of applications and their sessions. The rules are in `store::owners`.
//!
//! Every change of an owner locks the row of `site` first, as changes of applications do.

use tokio_postgres::Row;

use crate::postgres::accounts::closed_applications;
use crate::postgres::connection::schema_client::{ChangeResult, RowColumns as _, SchemaClient, SqlResult};
use crate::postgres::keys::audit;
use crate::stored::millis;
use crate::{OwnerChange, OwnerChangeKind, OwnerRefusal, Ownership, StoreError, StoredOwner};
use scoregate_base::clock::Day;
use scoregate_base::keys::OwnerId;

pub(crate) const COLUMNS: &str = "
       o.id, o.email, o.created_at, o.terms_version, o.terms_accepted_at, o.tier, o.suspended_at,
       ARRAY(SELECT application FROM {schema}.owned_applications WHERE owner = o.id ORDER BY application) AS applications";

const OWNER: &str = "
SELECT {columns}
FROM {schema}.owners o WHERE o.id = $1";

const SUSPEND: &str = "UPDATE {schema}.owners SET suspended_at = coalesce(suspended_at, $2) WHERE id = $1";
const RESUME: &str = "UPDATE {schema}.owners SET suspended_at = NULL WHERE id = $1";
const SET_TIER: &str = "UPDATE {schema}.owners SET tier = $2 WHERE id = $1";
pub(crate) const END_SESSIONS: &str = "DELETE FROM {schema}.owner_sessions WHERE owner = $1";

const DELETE_MAIL: &str = "
DELETE FROM {schema}.mail_queue WHERE recipient = $2 OR recipient IN (
    SELECT l.email FROM {schema}.sign_in_links l JOIN {schema}.owners o ON o.mailbox = l.mailbox WHERE o.id = $1)";

const DELETE_LINKS: &str = "
DELETE FROM {schema}.sign_in_links WHERE mailbox = (SELECT mailbox FROM {schema}.owners WHERE id = $1)";

const DELETE_OWNER: &str = "DELETE FROM {schema}.owners WHERE id = $1";

const OWN: &str = "INSERT INTO {schema}.owned_applications (application, owner) VALUES ($1, $2)";

/// Makes a change in a transaction, which must be rolled back if it is refused.
pub(crate) async fn change(client: SchemaClient<'_>, change: &OwnerChange) -> ChangeResult<StoredOwner> {
    audit::lock(client).await?;
    let (before, id) = (existing(client, change.owner).await?, change.owner.to_string());
    match &change.what {
        OwnerChangeKind::Suspend => {
            client.execute(SUSPEND, &[&id, &millis(change.at)]).await?;
            client.execute(END_SESSIONS, &[&id]).await?;
        }
        OwnerChangeKind::Resume => drop(client.execute(RESUME, &[&id]).await?),
        OwnerChangeKind::SetTier(tier) => drop(client.execute(SET_TIER, &[&id, tier]).await?),
        OwnerChangeKind::Delete { in_own_name } => {
            before.check_deletion(*in_own_name)?;
            client.execute(END_SESSIONS, &[&id]).await?;
            client.execute(DELETE_MAIL, &[&id, &before.email]).await?;
            client.execute(DELETE_LINKS, &[&id]).await?;
            client.execute(DELETE_OWNER, &[&id]).await?;
        }
    }
    let detail = change.what.audited(change.owner);
    audit::add(client, change.at, [change.who.as_str(), change.what.word(), "", &detail]).await?;
    Ok(owner(client, change.owner).await?.unwrap_or(before))
}

/// Gives a new application to an owner on a day, in the transaction that creates it.
pub(crate) async fn own(
    client: SchemaClient<'_>,
    application: &String,
    Ownership { owner: id, at_most }: Ownership,
    day: Day,
) -> ChangeResult<()> {
    let (owner, id) = (existing(client, id).await?, id.to_string());
    let closed = closed_applications::used_on(client, &id, day).await?;
    owner.check_creation(closed, at_most)?;
    client.execute(OWN, &[application, &id]).await?;
    Ok(())
}

/// An owner who must exist.
pub(crate) async fn existing(client: SchemaClient<'_>, id: OwnerId) -> ChangeResult<StoredOwner> {
    Ok(owner(client, id).await?.ok_or(StoreError::Owner(OwnerRefusal::Unknown(id)))?)
}

pub(crate) async fn owner(client: SchemaClient<'_>, id: OwnerId) -> SqlResult<Option<StoredOwner>> {
    let found = client.query_opt(&OWNER.replace("{columns}", COLUMNS), &[&id.to_string()]).await?;
    Ok(found.as_ref().map(described).transpose()?.flatten())
}

/// The owner of a row. The engine writes valid ids only.
pub(crate) fn described(row: &Row) -> SqlResult<Option<StoredOwner>> {
    let Ok(id) = row.try_get::<_, &str>("id")?.parse() else { return Ok(None) };
    let applications: Vec<&str> = row.try_get("applications")?;
    Ok(Some(StoredOwner {
        id,
        email: row.try_get("email")?,
        created_at: row.at("created_at")?,
        terms_version: row.try_get("terms_version")?,
        terms_accepted_at: row.at("terms_accepted_at")?,
        tier: row.try_get("tier")?,
        suspended_at: row.optional_at("suspended_at")?,
        applications: applications.into_iter().filter_map(|id| id.parse().ok()).collect(),
    }))
}
