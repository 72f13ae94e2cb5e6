//! Shared documents in the database. Neither keys nor leases wait for them, and claims do not wait for document contents. `store::shared_documents` explains the statements.
//!
//! The reply to a statement can be lost, and an abandoned statement may still be executed later. So each
//! statement is harmless at any later time:
//!
//! - A claim whose caller got no reply is held until its deadline.
//! - A publication under the newest claim is correct whenever it arrives. Under an older claim it changes nothing. A publication
//!   that arrives after the claim ended raises the claim number, so that no claim is based on the previous
//!   document.
//! - A repeated publication returns `true` again, until another document replaces it.
//! - A release affects only the claim that it names, and no later one.
//!
//! Claim numbers are at least the server's clock. So no number is used twice, even after outdated rows were deleted or
//! a failover lost some. A gateway never mistakes other content for its own copy.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use crate::{
    AgreedRefresh, ClaimState, EngineClock, Publication, PublishedDocument, SharedDocumentState,
    SharedDocuments, StoreError, StoreFuture, StoreResult,
    postgres::{connection::link::DatabaseLink, database_engine::DatabaseEngine},
    statements::{
        RowResult, SchemaClient,
        SqlField::{self, Bytes as Content, Number, OptionalNumber, OptionalText, Text, Texts},
        SqlRow, Tables,
    },
};
use scoregate_base::clock::{Mono, Wall};

/// The server's clock in microseconds. Each statement reads it once, before it waits for a lock.
const CLOCK: &str = "(SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8 AS at) n";

/// A channel name has at most 63 characters. LISTEN truncates a longer one, but this function rejects it.
const HINT: &str = "pg_notify(left('{schema}_documents', 63), '')::text";

/// Returns one row even if the document has none.
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

/// Content without its document is not valid: the document was withdrawn.
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

/// Locks rows in the order of their names, so that two such statements never deadlock.
const WITHDRAW: &str = "
WITH locked AS (
    SELECT scope, name FROM {schema}.documents WHERE scope = $1 AND name = ANY ($2) ORDER BY name FOR UPDATE
)
UPDATE {schema}.documents d SET claim = greatest(d.claim + 1, n.at), owner = NULL, held_until = NULL, has_failed = false,
    published = 0, confirmed = NULL, due = NULL, label = NULL
FROM locked l, {clock}
WHERE d.scope = l.scope AND d.name = l.name";

/// A separate statement, so that it also finds contents that were stored while the first statement waited for a lock.
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

/// One gateway's access to the documents of one backend.
pub struct PostgresDocuments {
    pub(crate) store: Arc<DatabaseEngine>,
    pub(crate) scope: String,
    pub(crate) node: u64,
}

impl SharedDocuments for PostgresDocuments {
    fn state(&self, name: &str) -> StoreFuture<'_, SharedDocumentState> {
        let name = name.to_owned();
        Box::pin(async move {
            let doing = "read the state of a shared document";
            let values = [Text(&self.scope), Text(&name)];
            let sent = self.store.clock.mono();
            let state = self.find(
                &self.store.documents,
                doing,
                STATE,
                &values,
                |row: &SqlRow<'_>| document(row, self.engine_clock(row, sent)?),
            );
            state.await?.ok_or_else(|| no_row(doing))
        })
    }

    fn claim(
        &self,
        name: &str,
        after: u64,
        duration: Duration,
    ) -> StoreFuture<'_, Option<(u64, EngineClock)>> {
        let name = name.to_owned();
        Box::pin(async move {
            let doing = "claim a shared document";
            let values = [
                Text(&self.scope),
                Text(&name),
                Number(after.cast_signed()),
                Number(self.node.cast_signed()),
                Number(length(duration)),
            ];
            let sent = self.store.clock.mono();
            self.find(
                &self.store.documents,
                doing,
                CLAIM,
                &values,
                |row: &SqlRow<'_>| Ok((row.number("claim")?, self.engine_clock(row, sent)?)),
            )
            .await
        })
    }

    fn content(&self, name: &str, number: u64) -> StoreFuture<'_, Option<Bytes>> {
        let name = name.to_owned();
        Box::pin(async move {
            let doing = "read a shared document";
            let number = Number(number.cast_signed());
            let values = [Text(&self.scope), Text(&name), number];
            self.find(
                &self.store.contents,
                doing,
                CONTENT,
                &values,
                |row: &SqlRow<'_>| row.bytes("content").map(Bytes::from),
            )
            .await
        })
    }

    fn publish(&self, name: &str, publication: Publication) -> StoreFuture<'_, bool> {
        let name = name.to_owned();
        Box::pin(async move {
            let doing = "publish a shared document";
            let mut values = vec![
                Text(&self.scope),
                Text(&name),
                Number(publication.number.cast_signed()),
                Number(micros(publication.confirmed)),
                Number(micros(publication.due)),
                Text(&publication.label),
            ];
            let published = match &publication.content {
                Some(content) => {
                    values.push(Content(content));
                    self.find(&self.store.contents, doing, PUBLISH, &values, |_| Ok(()))
                        .await
                }
                None => {
                    self.find(&self.store.documents, doing, CONFIRM, &values, |_| Ok(()))
                        .await
                }
            };
            Ok(published?.is_some())
        })
    }

    fn release(&self, name: &str, number: u64, hold_off: Option<Duration>) -> StoreFuture<'_, ()> {
        let name = name.to_owned();
        Box::pin(async move {
            let doing = "release a shared document";
            let values = [
                Text(&self.scope),
                Text(&name),
                Number(number.cast_signed()),
                OptionalNumber(hold_off.map(length)),
            ];
            let released = self.find(&self.store.documents, doing, RELEASE, &values, |_| Ok(()));
            released.await.map(drop)
        })
    }

    fn withdraw(&self, names: Vec<String>) -> StoreFuture<'_, ()> {
        let doing = "withdraw shared documents";
        Box::pin(
            self.store
                .documents
                .change(doing, async move |client: SchemaClient<'_>| {
                    let values = [Text(&self.scope), Texts(&names)];
                    client.execute(&statement(WITHDRAW), &values).await?;
                    client.execute(DELETE_CONTENTS, &values).await?;
                    client.execute(&statement(NOTIFY), &[]).await.map(drop)
                }),
        )
    }

    fn agree(
        &self,
        refresh: AgreedRefresh,
        same_since: Wall,
        revealed_by: Option<(String, u64)>,
    ) -> StoreFuture<'_, AgreedRefresh> {
        Box::pin(async move {
            let doing = "agree on a refresh";
            let name = revealed_by.as_ref().map(|(name, _)| name.as_str());
            let number = revealed_by.as_ref().map(|(_, number)| number.cast_signed());
            let values = [
                Text(&self.scope),
                Number(micros(refresh.detected)),
                Number(micros(refresh.expected)),
                Number(micros(same_since)),
                OptionalText(name),
                OptionalNumber(number),
            ];
            let agreed = self.find(&self.store.documents, doing, AGREE, &values, agreed);
            agreed.await?.ok_or_else(|| no_row(doing))
        })
    }

    fn refresh(&self) -> StoreFuture<'_, (Option<AgreedRefresh>, EngineClock)> {
        Box::pin(async move {
            let doing = "read the newest refresh";
            let sent = self.store.clock.mono();
            let values = [Text(&self.scope)];
            let newest = self.find(
                &self.store.documents,
                doing,
                REFRESH,
                &values,
                |row: &SqlRow<'_>| Ok((refresh_of(row)?, self.engine_clock(row, sent)?)),
            );
            newest.await?.ok_or_else(|| no_row(doing))
        })
    }

    fn published(&self) -> StoreFuture<'_, ()> {
        // Subscribes before the first poll, so that a hint between this call and the wait is not lost.
        let hint = self.store.listener().documents_changed();
        Box::pin(async move {
            hint.await;
            Ok(())
        })
    }
}

impl PostgresDocuments {
    /// The row that a statement returns, if any.
    async fn find<T>(
        &self,
        link: &DatabaseLink,
        doing: &'static str,
        text: &str,
        values: &[SqlField<'_>],
        read: impl Fn(&SqlRow<'_>) -> RowResult<T>,
    ) -> StoreResult<Option<T>> {
        link.run(doing, async |client: SchemaClient<'_>| {
            Tables::Database(client)
                .find(&statement(text), values, read)
                .await
        })
        .await
    }

    /// The server's clock in a reply to a request that was sent at `sent`.
    fn engine_clock(&self, row: &SqlRow<'_>, sent: Mono) -> RowResult<EngineClock> {
        Ok(EngineClock {
            at: instant(row, "at")?,
            sent,
            received: self.store.clock.mono(),
        })
    }
}

fn document(row: &SqlRow<'_>, clock: EngineClock) -> RowResult<SharedDocumentState> {
    let left = row.optional_signed("remaining")?.unwrap_or(0);
    let left = u64::try_from(left).unwrap_or(0);
    let claim = if left == 0 {
        ClaimState::Free
    } else if row.flag("has_owner")? {
        ClaimState::Held(Duration::from_micros(left))
    } else if row.flag("has_failed")? {
        ClaimState::Failed(Duration::from_micros(left))
    } else {
        ClaimState::Free
    };
    let published = match row.optional_number("published")?.unwrap_or(0) {
        0 => None,
        number => Some(PublishedDocument {
            number,
            confirmed: instant(row, "confirmed")?,
            due: instant(row, "due")?,
            label: row.text("label")?,
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

fn refresh_of(row: &SqlRow<'_>) -> RowResult<Option<AgreedRefresh>> {
    match row.optional_number("detected")? {
        Some(_) => agreed(row).map(Some),
        None => Ok(None),
    }
}

fn agreed(row: &SqlRow<'_>) -> RowResult<AgreedRefresh> {
    Ok(AgreedRefresh {
        detected: instant(row, "detected")?,
        expected: instant(row, "expected")?,
    })
}

/// The error for a statement that should always return a row.
fn no_row(doing: &'static str) -> StoreError {
    let reason = "the database returned no row".into();
    StoreError::Unavailable { doing, reason }
}

/// Rounded down, so that a confirmation never appears to be later than it was.
fn micros(at: Wall) -> i64 {
    length(at.since(Wall::default()))
}

/// Limited to a quarter of the range, so that sums do not overflow.
fn length(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros())
        .unwrap_or(i64::MAX)
        .min(i64::MAX / 4)
}

fn instant(row: &SqlRow<'_>, column: &str) -> RowResult<Wall> {
    Ok(Wall::default().plus(Duration::from_micros(row.number(column)?)))
}
