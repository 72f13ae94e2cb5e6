//! Applications, keys and audit records as rows.
//!
//! An unreadable record is reported and skipped: one mistake of an operator with `psql` costs one application or one key
//! and not the gateway.

use tokio_postgres::{Row, RowStream};

use crate::postgres::connection::schema_client::{SchemaClient, SqlResult};
use crate::postgres::postgres_store::PostgresStore;
use crate::sql::{audit, changes, leaks, limits_until};
use crate::stored::{millis, stored};
use crate::{
    ApplicationPage, ApplicationPages, AuditQuery, AuditRecord, Description, KeyStore, KeyUse,
    StoreChange, StoreError, StoreFuture, StoredApplication, StoredKey,
};
use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::{ApplicationId, Digest};
use scoregate_base::limits::OwnLimits;

/// An operation named in error messages.
pub(crate) const READ: &str = "read applications";
const COLUMNS: &str = "
       a.id, a.name, a.tier, a.own_limits, a.created_at, {description}, l.granted, u.until,
       k.digest, k.shown, k.created_at AS key_created_at, k.expires_at, k.revoked_at, k.last_used_at,
       k.name AS key_name";

/// A row for each key, and one for an application without keys. The page is cut by applications.
/// `OFFSET 0` keeps the planner from joining each page by a scan of all keys, which is quadratic in all pages together.
const PAGE: &str = "
WITH page AS (SELECT * FROM {schema}.applications WHERE id > $1 ORDER BY id LIMIT $3)
SELECT {columns}
FROM page a
LEFT JOIN LATERAL (SELECT * FROM {schema}.keys WHERE application = a.id OFFSET 0) k ON true
LEFT JOIN LATERAL (SELECT granted FROM {schema}.ledger_days WHERE day = $2::text::date AND application = a.id OFFSET 0) l
    ON true
LEFT JOIN {schema}.limits_until u ON u.application = a.id
ORDER BY a.id, k.created_at, k.digest";

/// `OFFSET 0` keeps the planner from reading the tables by their indexes.
const ALL: &str = "
SELECT {columns}
FROM (SELECT * FROM {schema}.applications OFFSET 0) a
LEFT JOIN (SELECT * FROM {schema}.keys OFFSET 0) k ON k.application = a.id
LEFT JOIN (SELECT application, granted FROM {schema}.ledger_days WHERE day = $1::text::date OFFSET 0) l
    ON l.application = a.id
LEFT JOIN {schema}.limits_until u ON u.application = a.id
ORDER BY a.id, k.created_at, k.digest";

const APPLICATION: &str = "
SELECT {columns}
FROM {schema}.applications a
LEFT JOIN {schema}.keys k ON k.application = a.id
LEFT JOIN {schema}.ledger_days l ON l.day = $2::text::date AND l.application = a.id
LEFT JOIN {schema}.limits_until u ON u.application = a.id
WHERE a.id = ANY ($1)
ORDER BY a.id, k.created_at, k.digest";

const USED: &str = "
UPDATE {schema}.keys k SET last_used_at = u.at
FROM (SELECT digest, max(at) AS at FROM unnest($1::bytea[], $2::int8[]) AS u (digest, at) GROUP BY digest) u
WHERE k.digest = u.digest AND (k.last_used_at IS NULL OR k.last_used_at < u.at)";

fn with_columns(statement: &str) -> String {
    let description = Description::sql_list(|_, name| format!("a.{name}"));
    statement
        .replace("{columns}", COLUMNS)
        .replace("{description}", &description)
}

/// The rows of all applications, for [`page_of`].
pub(crate) async fn all(
    client: SchemaClient<'_>,
    day: Day,
) -> Result<RowStream, tokio_postgres::Error> {
    client.stream(&with_columns(ALL), [day.to_string()]).await
}

impl KeyStore for PostgresStore {
    fn page(
        &self,
        after: Option<ApplicationId>,
        limit: usize,
        day: Day,
    ) -> StoreFuture<'_, ApplicationPage> {
        Box::pin(self.connection.run(READ, async move |client| {
            let after = after.map_or_else(String::new, |id| id.to_string());
            let rows = client
                .query(
                    &with_columns(PAGE),
                    &[&after, &day.to_string(), &stored(limit)],
                )
                .await?;
            let mut page = page_of(&rows);
            let count = rows
                .chunk_by(|one, other| application_id(one) == application_id(other))
                .count();
            // Also after an unreadable record.
            let last = rows
                .iter()
                .rev()
                .find_map(|row| application_id(row).parse().ok());
            page.next = last.filter(|_| count >= limit);
            Ok(page)
        }))
    }

    fn all(&self, day: Day) -> ApplicationPages<'_> {
        Box::pin(self.pages(day))
    }

    fn application(
        &self,
        id: ApplicationId,
        day: Day,
    ) -> StoreFuture<'_, Option<StoredApplication>> {
        Box::pin(
            self.connection
                .run(READ, async move |client| application(client, id, day).await),
        )
    }

    fn applications(&self, ids: Vec<ApplicationId>, day: Day) -> StoreFuture<'_, ApplicationPage> {
        let work =
            async move |client: SchemaClient<'_>| Ok(page_of(&rows_of(client, &ids, day).await?));
        Box::pin(self.connection.run(READ, work))
    }

    fn find_keys(&self, digests: Vec<Digest>) -> StoreFuture<'_, Vec<(Digest, ApplicationId)>> {
        Box::pin(self.connection.run("find keys", async move |client| {
            leaks::find_keys(client, &digests).await
        }))
    }

    fn change(&self, change: StoreChange) -> StoreFuture<'_, StoredApplication> {
        let doing = "make a change";
        Box::pin(self.connection.change(doing, async move |client| {
            changes::make(client, &change).await
        }))
    }

    fn due_limits(&self, now: Wall) -> StoreFuture<'_, Vec<ApplicationId>> {
        let doing = "read limits that end";
        Box::pin(self.connection.run(doing, async move |client| {
            limits_until::due(client, now).await
        }))
    }

    fn record_uses(&self, keys: Vec<KeyUse>) -> StoreFuture<'_, ()> {
        Box::pin(
            self.connection
                .run("record uses of keys", async move |client| {
                    let digests: Vec<&[u8]> = keys
                        .iter()
                        .map(|key| key.digest.as_bytes().as_slice())
                        .collect();
                    let times: Vec<i64> = keys.iter().map(|key| millis(key.at)).collect();
                    client.execute(USED, &[&digests, &times]).await.map(drop)
                }),
        )
    }

    fn audit(&self, query: AuditQuery) -> StoreFuture<'_, Vec<AuditRecord>> {
        let doing = "read the audit trail";
        Box::pin(self.connection.run(doing, async move |client| {
            audit::records(client, query).await
        }))
    }
}

/// One application. Unreadable keys are left out.
pub(crate) async fn application(
    client: SchemaClient<'_>,
    id: ApplicationId,
    day: Day,
) -> SqlResult<Option<StoredApplication>> {
    let rows = rows_of(client, &[id], day).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let damaged = |reason| StoreError::Damaged {
        path: "the database".into(),
        reason,
    };
    Ok(Some(
        application_of(&rows, &mut Vec::new()).map_err(damaged)?,
    ))
}

async fn rows_of(client: SchemaClient<'_>, ids: &[ApplicationId], day: Day) -> SqlResult<Vec<Row>> {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    client
        .query(&with_columns(APPLICATION), &[&ids, &day.to_string()])
        .await
}

/// The applications of rows.
pub(crate) fn page_of(rows: &[Row]) -> ApplicationPage {
    let mut page = ApplicationPage::default();
    for rows in rows.chunk_by(|one, other| application_id(one) == application_id(other)) {
        match application_of(rows, &mut page.skipped) {
            Ok(application) => page.applications.push(application),
            Err(reason) => page.skipped.push(reason),
        }
    }
    page
}

/// The application of a row.
pub(crate) fn application_id(row: &Row) -> &str {
    row.try_get("id").unwrap_or_default()
}

/// An application, from a row for each of its keys.
fn application_of(rows: &[Row], skipped: &mut Vec<String>) -> Result<StoredApplication, String> {
    let first = rows.first().ok_or("no row")?;
    let id = application_id(first);
    let named = |reason: String| format!("application {id}: {reason}");
    let mut application = described(first).map_err(named)?;
    for row in rows {
        match key(row) {
            Ok(key) => application.keys.extend(key),
            Err(reason) => skipped.push(format!("a key of {id}: {reason}")),
        }
    }
    Ok(application)
}

fn described(row: &Row) -> Result<StoredApplication, String> {
    let granted: Option<i64> = column(row, "granted")?;
    Ok(StoredApplication {
        id: application_id(row)
            .parse()
            .map_err(|error| format!("{error}"))?,
        name: column(row, "name")?,
        tier: column(row, "tier")?,
        own: own_limits(row)?,
        limits_until: instant(row, "until").unwrap_or(None),
        description: Description::try_from_fn(|name| column(row, name))?,
        created_at: instant(row, "created_at")?.ok_or("created_at is missing")?,
        keys: Vec::with_capacity(1),
        granted: u64::try_from(granted.unwrap_or(0)).map_err(|_| "granted is negative")?,
    })
}

/// The key of a row, if it has one.
fn key(row: &Row) -> Result<Option<StoredKey>, String> {
    let Some(digest) = column::<Option<&[u8]>>(row, "digest")? else {
        return Ok(None);
    };
    let digest = digest
        .try_into()
        .map_err(|_| "digest does not have 32 bytes")?;
    Ok(Some(StoredKey {
        digest: Digest::from_bytes(digest),
        shown: column(row, "shown")?,
        // Optional, like the last use: an unreadable value must not cost the key.
        name: column(row, "key_name").unwrap_or(None),
        created_at: instant(row, "key_created_at")?.ok_or("created_at is missing")?,
        expires_at: instant(row, "expires_at")?,
        revoked_at: instant(row, "revoked_at")?,
        last_used_at: instant(row, "last_used_at").unwrap_or(None),
    }))
}

fn column<'r, T: tokio_postgres::types::FromSql<'r>>(
    row: &'r Row,
    name: &str,
) -> Result<T, String> {
    row.try_get(name)
        .map_err(|error| format!("{name} cannot be read: {error}"))
}

fn own_limits(row: &Row) -> Result<OwnLimits, String> {
    let text: Option<&str> = column(row, "own_limits")?;
    let read = text.map(OwnLimits::from_text).transpose();
    Ok(read?.unwrap_or_default())
}

fn instant(row: &Row, name: &str) -> Result<Option<Wall>, String> {
    let Some(found) = column::<Option<i64>>(row, name)? else {
        return Ok(None);
    };
    let read = u64::try_from(found)
        .ok()
        .filter(|millis| Wall::from_millis(*millis).millis() == *millis);
    read.map(|millis| Some(Wall::from_millis(millis)))
        .ok_or_else(|| format!("{name} is {found}, which is not a timestamp between 1970 and 2554"))
}
