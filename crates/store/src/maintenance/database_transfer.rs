//! `scoregate store export` and `store import` on a database, each in one transaction.

use std::io::{self, Write};

use crate::{
    TransferError,
    dump::{self, DumpReader, RowCounts},
    postgres::newer,
    statements::{Done, SchemaClient, Tables},
};
use scoregate_base::clock::Wall;

/// A finished export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseExport {
    /// Number of rows.
    pub counts: RowCounts,
    /// The schema to which the tables were moved, if the export closed the store.
    pub closed: Option<String>,
}

/// Waits for transactions in progress. Later transactions find no tables after the schema is renamed.
const LOCK_ALL: &str = "
LOCK TABLE {schema}.site, {schema}.applications, {schema}.keys, {schema}.audit, {schema}.calendar, {schema}.ledger_days,
    {schema}.ledger_nodes, {schema}.ledger_windows, {schema}.minute_pools, {schema}.nodes,
    {schema}.documents, {schema}.document_contents, {schema}.backend_refreshes,
    {schema}.request_nodes, {schema}.request_days, {schema}.usage_terms, {schema}.status_minutes, {schema}.status_messages, {schema}.owners, {schema}.owned_applications, {schema}.sign_in_links,
    {schema}.owner_sessions, {schema}.mail_queue, {schema}.closed_applications, {schema}.grace_shares, {schema}.notices,
    {schema}.evidence_hours, {schema}.evidence_days, {schema}.evidence_keys, {schema}.limits_until,
    {schema}.idempotency_keys, {schema}.owner_webhooks IN ACCESS EXCLUSIVE MODE";

/// Exports all tables from one snapshot. `keep` makes the output durable. With `closes`, the schema is renamed before
/// the commit, so that gateways can no longer use the tables.
pub async fn export(
    client: SchemaClient<'_>,
    out: &mut dyn Write,
    keep: &mut dyn FnMut() -> io::Result<()>,
    closes: bool,
    now: Wall,
) -> Done<DatabaseExport> {
    client
        .batch_execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        .await?;
    if closes {
        // Before the first read, which takes the snapshot.
        client.batch_execute(LOCK_ALL).await?;
    }
    if let Some(format) = newer(client).await? {
        return Err(TransferError::Newer(format).into());
    }
    let counts = dump::export(Tables::Database(client), out, now).await?;
    let new_name = closes.then(|| {
        let time = now
            .rfc3339()
            .replace(['-', ':', '.'], "")
            .to_ascii_lowercase();
        // A name has at most 63 characters.
        format!("{:.40}_closed_{time}", client.schema.statement("{schema}"))
    });
    if let Some(name) = &new_name {
        client
            .batch_execute(&format!("ALTER SCHEMA {{schema}} RENAME TO {name}"))
            .await?;
    }
    keep()?;
    Ok(DatabaseExport {
        counts,
        closed: new_name,
    })
}

const COUNT: &str = "SELECT count(*) AS applications FROM {schema}.applications";

/// Later audit records continue the numbering. The current day becomes at least the newest day in the ledger. Gateways that last
/// read a data set with another identity reload all keys. Gateways of the exported store may still hold shares for today and
/// tomorrow.
const FINISH: &str = "
SELECT setval(pg_get_serial_sequence('{schema}.audit', 'id'), max(id)) FROM {schema}.audit HAVING max(id) IS NOT NULL;
UPDATE {schema}.calendar SET day = greatest(day, (SELECT max(day) FROM {schema}.ledger_days));
DELETE FROM {schema}.grace_shares;
INSERT INTO {schema}.grace_shares
SELECT greatest(day, (clock_timestamp() AT TIME ZONE 'UTC')::date) + later, 0, 1, 0, 0, 0
FROM {schema}.calendar, unnest(ARRAY[0, 1]) AS later;
UPDATE {schema}.site SET id = gen_random_uuid()";

/// Imports an export into empty tables. The audit trail records `who` and `file`.
pub async fn import(
    client: SchemaClient<'_>,
    reader: DumpReader,
    who: &str,
    file: &str,
    now: Wall,
) -> Done<RowCounts> {
    let counts = fill(client, reader).await?;
    let detail = format!("the whole store, from {file:?}");
    Tables::Database(client)
        .audit(now, [who, "import_store", "", &detail])
        .await?;
    Ok(counts)
}

/// Fills empty tables from an export.
pub async fn fill(client: SchemaClient<'_>, reader: DumpReader) -> Done<RowCounts> {
    client.batch_execute(LOCK_ALL).await?;
    let tables = Tables::Database(client);
    let applications = tables
        .find(COUNT, &[], |row| row.number("applications"))
        .await?;
    if let Some(found) = applications.filter(|found| *found > 0) {
        return Err(TransferError::InUse(found).into());
    }
    let counts = dump::fill(tables, reader).await?;
    client.batch_execute(FINISH).await?;
    Ok(counts)
}
