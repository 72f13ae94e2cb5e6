//! Shared documents in the database. Neither keys nor leases wait for them, and claims do not wait for contents. The
//! meaning of the statements is in `store::shared_documents`.
//!
//! A caller may not learn the outcome of a statement, and a statement that was given up may be carried out later. So each
//! is harmless at any later time:
//!
//! - A claim that nobody knows of is held until its deadline.
//! - A publication under the newest claim is true whenever it arrives; under an older claim it changes nothing. One that
//!   arrives after the claim ended raises the number, so that no claim is based on the document before it.
//! - A repeated publication returns `true` again, until another document replaces it.
//! - A release changes a claim that is held, and no later one.
//!
//! Numbers of claims are at least the server's clock. So none is used twice, also after outdated rows were deleted or a
//! failover lost some: a gateway never takes another content for the one that it has.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_postgres::Row;

use crate::postgres::connection::schema_client::{Parameter, SchemaClient, SqlResult};
use crate::postgres::postgres_store::PostgresStore;
use crate::sql::tables::SqlRow as _;
use crate::{
    AgreedRefresh, ClaimState, DocumentSharing, EngineClock, Publication, PublishedDocument,
    SharedDocumentState, SharedDocuments, StoreFuture,
};
use scoregate_base::clock::{Mono, Wall};

/// The server's clock in microseconds. It is read once for each statement, before it waits for a lock.
const CLOCK: &str = "(SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8 AS at) n";

/// A name of a channel has at most 63 characters; LISTEN shortens it, this function refuses it.
const HINT: &str = "pg_notify(left('{schema}_documents', 63), '')::text";

/// One row, also for a document without one.
const STATE: &str = "
SELECT n.at, d.claim, d.owner IS NOT NULL AS has_owner, d.has_failed, d.held_until - n.at AS remaining, d.published,
       d.confirmed, d.due, d.label, r.detected, r.expected
FROM {clock}
LEFT JOIN {schema}.documents d ON d.scope = $1 AND d.name = $2
LEFT JOIN {schema}.backend_refreshes r ON r.scope = $1";

/// `held_until` is the deadline of a claim, or the end of the delay after a failure.
const CLAIM: &str = "
INSERT INTO {schema}.documents AS d (scope, name, claim, owner, held_until)
SELECT $1, $2, greatest($3 + 1, n.at), $4, n.at + $5 FROM {clock}
ON CONFLICT (scope, name) DO UPDATE
    SET claim = excluded.claim, owner = excluded.owner, held_until = excluded.held_until, has_failed = false
    WHERE d.claim <= $3 AND (d.held_until IS NULL OR d.held_until <= excluded.held_until - $5)
RETURNING d.claim, d.held_until - $5 AS at";

/// A content without its document is not valid: the document was withdrawn.
const CONTENT: &str = "
SELECT c.content FROM {schema}.documents d JOIN {schema}.document_contents c USING (scope, name)
WHERE d.scope = $1 AND d.name = $2 AND d.published = $3 AND c.number = $3";

const PUBLISH: &str = "
WITH ended AS (
    UPDATE {schema}.documents d SET owner = NULL, held_until = NULL, has_failed = false,
        claim = CASE WHEN d.published = $3 OR (d.owner IS NOT NULL AND d.held_until > n.at) THEN d.claim
                     ELSE greatest(d.claim + 1, n.at) END,
        confirmed = CASE WHEN d.published = $3 THEN greatest(d.confirmed, $4) ELSE $4 END,
        published = $3, due = $5, label = $6
    FROM {clock}
    WHERE d.scope = $1 AND d.name = $2 AND d.claim = $3
    RETURNING d.scope, d.name
), stored AS (
    INSERT INTO {schema}.document_contents (scope, name, number, content) SELECT scope, name, $3, $7 FROM ended
    ON CONFLICT (scope, name) DO UPDATE SET number = excluded.number, content = excluded.content
)
SELECT {hint} FROM ended
UNION ALL
SELECT NULL FROM {schema}.documents WHERE scope = $1 AND name = $2 AND published = $3 AND claim <> $3";

const CONFIRM: &str = "
WITH ended AS (
    UPDATE {schema}.documents d SET owner = NULL, held_until = NULL, has_failed = false,
        confirmed = greatest(d.confirmed, $4), due = $5, label = $6
    WHERE d.scope = $1 AND d.name = $2 AND d.claim = $3 AND d.published > 0 AND EXISTS (
        SELECT FROM {schema}.document_contents c
        WHERE c.scope = d.scope AND c.name = d.name AND c.number = d.published)
    RETURNING d.name
)
SELECT {hint} FROM ended";

const RELEASE: &str = "
WITH ended AS (
    UPDATE {schema}.documents d SET owner = NULL, held_until = n.at + $4, has_failed = $4 IS NOT NULL
    FROM {clock}
    WHERE d.scope = $1 AND d.name = $2 AND d.claim = $3 AND d.owner IS NOT NULL
    RETURNING d.name
)
SELECT {hint} FROM ended";

/// Locks in the order of the names: two of these never wait for each other.
const WITHDRAW: &str = "
WITH locked AS (
    SELECT scope, name FROM {schema}.documents WHERE scope = $1 AND name = ANY ($2) ORDER BY name FOR UPDATE
)
UPDATE {schema}.documents d SET claim = greatest(d.claim + 1, n.at), owner = NULL, held_until = NULL, has_failed = false,
    published = 0, confirmed = NULL, due = NULL, label = NULL
FROM locked l, {clock}
WHERE d.scope = l.scope AND d.name = l.name";

/// A statement of its own: it also finds contents that were stored while the other one waited for a lock.
const DELETE_CONTENTS: &str =
    "DELETE FROM {schema}.document_contents WHERE scope = $1 AND name = ANY ($2)";

const NOTIFY: &str = "SELECT {hint}";

const AGREE: &str = "
WITH agreed AS (
    INSERT INTO {schema}.backend_refreshes AS r (scope, detected, expected) VALUES ($1, $2, $3)
    ON CONFLICT (scope) DO UPDATE
        SET detected = CASE WHEN r.detected >= $4 THEN r.detected ELSE excluded.detected END,
            expected = CASE WHEN r.detected >= $4 THEN r.expected ELSE excluded.expected END
    RETURNING detected, expected
), redated AS (
    UPDATE {schema}.documents d SET confirmed = greatest(d.confirmed, a.detected), due = a.expected FROM agreed a
    WHERE d.scope = $1 AND d.name = $5 AND d.published = $6 AND d.published > 0
)
SELECT detected, expected, CASE WHEN (detected, expected) = ($2, $3) THEN {hint} END FROM agreed";

const REFRESH: &str = "
SELECT n.at, r.detected, r.expected FROM {clock} LEFT JOIN {schema}.backend_refreshes r ON r.scope = $1";

fn statement(text: &str) -> String {
    text.replace("{clock}", CLOCK).replace("{hint}", HINT)
}

/// The documents of one backend, for one gateway.
struct PostgresDocuments {
    store: Arc<PostgresStore>,
    scope: String,
    node: u64,
}

impl DocumentSharing for PostgresStore {
    fn shared_documents(
        self: Arc<Self>,
        scope: String,
        node: u64,
    ) -> Option<Arc<dyn SharedDocuments>> {
        Some(Arc::new(PostgresDocuments {
            store: self,
            scope,
            node,
        }))
    }
}

impl SharedDocuments for PostgresDocuments {
    fn state(&self, name: &str) -> StoreFuture<'_, SharedDocumentState> {
        let name = name.to_owned();
        Box::pin(self.store.documents.run(
            "read the state of a shared document",
            async move |client| {
                let sent = self.store.clock.mono();
                let row = client
                    .query_one(&statement(STATE), &[&self.scope, &name])
                    .await?;
                document(&row, self.engine_clock(&row, sent)?)
            },
        ))
    }

    fn claim(
        &self,
        name: &str,
        after: u64,
        duration: Duration,
    ) -> StoreFuture<'_, Option<(u64, EngineClock)>> {
        let name = name.to_owned();
        Box::pin(
            self.store
                .documents
                .run("claim a shared document", async move |client| {
                    let sent = self.store.clock.mono();
                    let [after, node] = [after, self.node].map(u64::cast_signed);
                    let duration = length(duration);
                    let values: [&dyn Parameter; 5] =
                        [&self.scope, &name, &after, &node, &duration];
                    let Some(row) = client.query_opt(&statement(CLAIM), &values).await? else {
                        return Ok(None);
                    };
                    Ok(Some((row.number("claim")?, self.engine_clock(&row, sent)?)))
                }),
        )
    }

    fn content(&self, name: &str, number: u64) -> StoreFuture<'_, Option<Bytes>> {
        let name = name.to_owned();
        Box::pin(
            self.store
                .contents
                .run("read a shared document", async move |client| {
                    let row = client
                        .query_opt(CONTENT, &[&self.scope, &name, &number.cast_signed()])
                        .await?;
                    Ok(row
                        .map(|row| row.try_get::<_, Vec<u8>>("content").map(Bytes::from))
                        .transpose()?)
                }),
        )
    }

    fn publish(&self, name: &str, publication: Publication) -> StoreFuture<'_, bool> {
        let name = name.to_owned();
        let link = if publication.content.is_some() {
            &self.store.contents
        } else {
            &self.store.documents
        };
        Box::pin(link.run("publish a shared document", async move |client| {
            let Publication {
                number,
                content,
                confirmed,
                due,
                label,
            } = &publication;
            let number = number.cast_signed();
            let confirmed = micros(*confirmed);
            let due = micros(*due);
            let content = content.as_deref();
            let mut values: Vec<&dyn Parameter> =
                vec![&self.scope, &name, &number, &confirmed, &due, label];
            let text = if content.is_some() { PUBLISH } else { CONFIRM };
            values.extend(content.as_ref().map(|content| content as &dyn Parameter));
            Ok(!client.query(&statement(text), &values).await?.is_empty())
        }))
    }

    fn release(&self, name: &str, number: u64, hold_off: Option<Duration>) -> StoreFuture<'_, ()> {
        let name = name.to_owned();
        Box::pin(
            self.store
                .documents
                .run("release a shared document", async move |client| {
                    let number = number.cast_signed();
                    let hold_off = hold_off.map(length);
                    let values: [&dyn Parameter; 4] = [&self.scope, &name, &number, &hold_off];
                    client.query(&statement(RELEASE), &values).await.map(drop)
                }),
        )
    }

    fn withdraw(&self, names: Vec<String>) -> StoreFuture<'_, ()> {
        let work = async move |client: SchemaClient<'_>| {
            client
                .execute(&statement(WITHDRAW), &[&self.scope, &names])
                .await?;
            client
                .execute(DELETE_CONTENTS, &[&self.scope, &names])
                .await?;
            client.query(&statement(NOTIFY), &[]).await.map(drop)
        };
        Box::pin(
            self.store
                .documents
                .change("withdraw shared documents", work),
        )
    }

    fn agree(
        &self,
        refresh: AgreedRefresh,
        same_since: Wall,
        revealed_by: Option<(String, u64)>,
    ) -> StoreFuture<'_, AgreedRefresh> {
        Box::pin(
            self.store
                .documents
                .run("agree on a refresh", async move |client| {
                    let name = revealed_by.as_ref().map(|(name, _)| name.as_str());
                    let number = revealed_by.as_ref().map(|(_, number)| number.cast_signed());
                    let [detected, expected, same_since] =
                        [refresh.detected, refresh.expected, same_since].map(micros);
                    let values: [&dyn Parameter; 6] = [
                        &self.scope,
                        &detected,
                        &expected,
                        &same_since,
                        &name,
                        &number,
                    ];
                    agreed(&client.query_one(&statement(AGREE), &values).await?)
                }),
        )
    }

    fn refresh(&self) -> StoreFuture<'_, (Option<AgreedRefresh>, EngineClock)> {
        Box::pin(
            self.store
                .documents
                .run("read the newest refresh", async move |client| {
                    let sent = self.store.clock.mono();
                    let row = client
                        .query_one(&statement(REFRESH), &[&self.scope])
                        .await?;
                    Ok((refresh_of(&row)?, self.engine_clock(&row, sent)?))
                }),
        )
    }

    fn published(&self) -> StoreFuture<'_, ()> {
        // Before the first poll, so that a hint between this call and the wait counts.
        let hint = self.store.listener().documents_changed();
        Box::pin(async move {
            hint.await;
            Ok(())
        })
    }
}

impl PostgresDocuments {
    /// The server's clock in the row of a call that was sent at this time.
    fn engine_clock(&self, row: &Row, sent: Mono) -> SqlResult<EngineClock> {
        Ok(EngineClock {
            at: instant(row, "at")?,
            sent,
            received: self.store.clock.mono(),
        })
    }
}

fn document(row: &Row, clock: EngineClock) -> SqlResult<SharedDocumentState> {
    let has_owner: bool = row.try_get("has_owner")?;
    let has_failed: Option<bool> = row.try_get("has_failed")?;
    let remaining = row.optional_number("remaining")?;
    let claim = match remaining
        .filter(|left| *left > 0)
        .map(Duration::from_micros)
    {
        Some(left) if has_owner => ClaimState::Held(left),
        Some(left) if has_failed == Some(true) => ClaimState::Failed(left),
        Some(_) | None => ClaimState::Free,
    };
    let published = match row.optional_number("published")?.unwrap_or(0) {
        0 => None,
        number => Some(PublishedDocument {
            number,
            confirmed: instant(row, "confirmed")?,
            due: instant(row, "due")?,
            label: row.try_get("label")?,
        }),
    };
    let number = row.optional_number("claim")?.unwrap_or(0);
    Ok(SharedDocumentState {
        number,
        claim,
        published,
        refresh: refresh_of(row)?,
        clock,
    })
}

fn refresh_of(row: &Row) -> SqlResult<Option<AgreedRefresh>> {
    row.optional_number("detected")?
        .map(|_| agreed(row))
        .transpose()
}

fn agreed(row: &Row) -> SqlResult<AgreedRefresh> {
    Ok(AgreedRefresh {
        detected: instant(row, "detected")?,
        expected: instant(row, "expected")?,
    })
}

/// Rounded down: a confirmation is never later than it was.
fn micros(at: Wall) -> i64 {
    length(at.since(Wall::default()))
}

/// At most the range of the clock, so that sums do not overflow.
fn length(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros())
        .unwrap_or(i64::MAX)
        .min(i64::MAX / 4)
}

fn instant(row: &Row, column: &str) -> SqlResult<Wall> {
    Ok(Wall::default().plus(Duration::from_micros(row.number(column)?)))
}
