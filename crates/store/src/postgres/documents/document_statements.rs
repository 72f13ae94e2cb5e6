//! The statements about shared documents. Their meaning is in `store::shared_documents`.
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

use std::time::Duration;

use bytes::Bytes;
use tokio_postgres::Row;

use crate::postgres::connection::schema_client::{Parameter, SchemaClient, SqlResult};
use crate::{AgreedRefresh, ClaimState, EngineClock, Publication, PublishedDocument, SharedDocumentState};
use scoregate_base::clock::Wall;

/// The server's clock in microseconds. It is read once for each statement, before it waits for a lock.
const CLOCK: &str = "(SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8 AS at) n";

/// A name of a channel has at most 63 characters; LISTEN shortens it, this function refuses it.
const HINT: &str = "{notify}(left('{schema}_documents', 63), '')::text";

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
const DELETE_CONTENTS: &str = "DELETE FROM {schema}.document_contents WHERE scope = $1 AND name = ANY ($2)";

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

/// The state of a document. `read_at` adds the caller's times to the server's clock.
pub(crate) async fn state(
    client: SchemaClient<'_>,
    scope: &str,
    name: &str,
    read_at: impl FnOnce(Wall) -> EngineClock,
) -> SqlResult<SharedDocumentState> {
    document(&client.query_one(&statement(STATE), &[&scope, &name]).await?, read_at)
}

/// Claims a document for a node. Returns the number, and the server's clock.
pub(crate) async fn claim(
    client: SchemaClient<'_>,
    (scope, name): (&str, &str),
    after: u64,
    node: u64,
    duration: Duration,
) -> SqlResult<Option<(u64, Wall)>> {
    let [after, node] = [after, node].map(u64::cast_signed);
    let row = client.query_opt(&statement(CLAIM), &[&scope, &name, &after, &node, &length(duration)]).await?;
    row.map(|row| Ok((row.try_get::<_, i64>("claim")?.cast_unsigned(), instant(row.try_get("at")?))))
        .transpose()
}

/// The content with this number.
pub(crate) async fn content(
    client: SchemaClient<'_>,
    scope: &str,
    name: &str,
    number: u64,
) -> SqlResult<Option<Bytes>> {
    let row = client.query_opt(CONTENT, &[&scope, &name, &number.cast_signed()]).await?;
    row.map(|row| row.try_get::<_, Vec<u8>>("content").map(Bytes::from)).transpose()
}

/// Publishes a content, or confirms the published one.
pub(crate) async fn publish(
    client: SchemaClient<'_>,
    scope: &str,
    name: &str,
    publication: &Publication,
) -> SqlResult<bool> {
    let Publication { number, content, confirmed, due, label } = publication;
    let (number, confirmed, due) = (number.cast_signed(), micros(*confirmed), micros(*due));
    let content = content.as_deref();
    let mut values: Vec<&dyn Parameter> = vec![&scope, &name, &number, &confirmed, &due, label];
    let text = if content.is_some() { PUBLISH } else { CONFIRM };
    values.extend(content.as_ref().map(|content| content as &dyn Parameter));
    Ok(!client.query(&statement(text), &values).await?.is_empty())
}

/// Ends a claim.
pub(crate) async fn release(
    client: SchemaClient<'_>,
    (scope, name): (&str, &str),
    number: u64,
    hold_off: Option<Duration>,
) -> SqlResult<()> {
    let (number, hold_off) = (number.cast_signed(), hold_off.map(length));
    client.query(&statement(RELEASE), &[&scope, &name, &number, &hold_off]).await.map(drop)
}

/// Removes published documents, in a transaction.
pub(crate) async fn withdraw(client: SchemaClient<'_>, scope: &str, names: &Vec<String>) -> SqlResult<()> {
    client.execute(&statement(WITHDRAW), &[&scope, names]).await?;
    client.execute(DELETE_CONTENTS, &[&scope, names]).await?;
    client.query(&statement(NOTIFY), &[]).await.map(drop)
}

/// Stores a refresh, unless the stored one was detected at `same_since` or later, and dates the document that revealed it.
/// Returns the stored one.
pub(crate) async fn agree(
    client: SchemaClient<'_>,
    scope: &str,
    refresh: AgreedRefresh,
    same_since: Wall,
    revealed_by: Option<&(String, u64)>,
) -> SqlResult<AgreedRefresh> {
    let name = revealed_by.map(|(name, _)| name.as_str());
    let number = revealed_by.map(|(_, number)| number.cast_signed());
    let [detected, expected, same_since] = [refresh.detected, refresh.expected, same_since].map(micros);
    let values: [&dyn Parameter; 6] = [&scope, &detected, &expected, &same_since, &name, &number];
    let row = client.query_one(&statement(AGREE), &values).await?;
    let (detected, expected) = (row.try_get("detected")?, row.try_get("expected")?);
    Ok(AgreedRefresh { detected: instant(detected), expected: instant(expected) })
}

/// The newest refresh, and the server's clock.
pub(crate) async fn refresh(
    client: SchemaClient<'_>,
    scope: &str,
) -> SqlResult<(Option<AgreedRefresh>, Wall)> {
    let row = client.query_one(&statement(REFRESH), &[&scope]).await?;
    Ok((refresh_of(&row)?, instant(row.try_get("at")?)))
}

fn document(row: &Row, read_at: impl FnOnce(Wall) -> EngineClock) -> SqlResult<SharedDocumentState> {
    let number = |column| Ok(row.try_get::<_, Option<i64>>(column)?.unwrap_or(0).cast_unsigned());
    let (has_owner, has_failed): (bool, Option<bool>) =
        (row.try_get("has_owner")?, row.try_get("has_failed")?);
    let remaining = row.try_get::<_, Option<i64>>("remaining")?.and_then(|left| u64::try_from(left).ok());
    let claim = match remaining.filter(|left| *left > 0).map(Duration::from_micros) {
        Some(left) if has_owner => ClaimState::Held(left),
        Some(left) if has_failed == Some(true) => ClaimState::Failed(left),
        Some(_) | None => ClaimState::Free,
    };
    let published = match number("published")? {
        0 => None,
        number => Some(PublishedDocument {
            number,
            confirmed: instant(row.try_get("confirmed")?),
            due: instant(row.try_get("due")?),
            label: row.try_get("label")?,
        }),
    };
    let (number, clock) = (number("claim")?, read_at(instant(row.try_get("at")?)));
    Ok(SharedDocumentState { number, claim, published, refresh: refresh_of(row)?, clock })
}

fn refresh_of(row: &Row) -> SqlResult<Option<AgreedRefresh>> {
    let Some(detected) = row.try_get::<_, Option<i64>>("detected")? else { return Ok(None) };
    Ok(Some(AgreedRefresh { detected: instant(detected), expected: instant(row.try_get("expected")?) }))
}

/// Rounded down: a confirmation is never later than it was.
fn micros(at: Wall) -> i64 {
    length(at.since(Wall::default()))
}

/// At most the range of the clock, so that sums do not overflow.
fn length(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX).min(i64::MAX / 4)
}

fn instant(micros: i64) -> Wall {
    Wall::default().plus(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
}
