//! `scoregate store export` and `store import` on a database, each in one transaction. The server writes the rows of an
//! export as JSON, and reads those of an import from JSON.

use std::io::{self, Write};

use serde_json::Value;

use crate::dump::{DumpLine, DumpReader, DumpWriter, TABLES};
use crate::postgres::connection::schema_client::{SchemaClient, SqlResult};
use crate::postgres::tables::newer;
use crate::sql::tables::SqlTables as _;
use crate::{RecordCounts, TransferError};
use scoregate_base::clock::Wall;

/// Number of rows that are read or written with one statement.
const AT_ONCE: usize = 2_000;

/// Terms of the columns of an export.
const TERMS: [&str; 3] = [
    "encode(digest, 'hex') AS digest",
    "least(granted, 4294967295) AS granted",
    "json_agg",
];

/// A finished export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseExport {
    /// Number of records.
    pub counts: RecordCounts,
    /// The schema to which the tables were moved, if the export closed the store.
    pub closed: Option<String>,
}

/// Waits for transactions in progress; later ones find no tables once the schema has another name.
const LOCK_ALL: &str = "
LOCK TABLE {schema}.site, {schema}.applications, {schema}.keys, {schema}.audit, {schema}.calendar, {schema}.ledger_days,
    {schema}.ledger_nodes, {schema}.ledger_windows, {schema}.minute_pools, {schema}.minute_shares, {schema}.nodes,
    {schema}.documents, {schema}.document_contents, {schema}.backend_refreshes,
    {schema}.request_nodes, {schema}.request_days, {schema}.status_minutes, {schema}.status_messages, {schema}.owners, {schema}.owned_applications, {schema}.sign_in_links,
    {schema}.owner_sessions, {schema}.mail_queue, {schema}.closed_applications, {schema}.grace_shares, {schema}.notices,
    {schema}.evidence_hours, {schema}.evidence_days, {schema}.evidence_keys, {schema}.limits_until,
    {schema}.owner_webhooks IN ACCESS EXCLUSIVE MODE";

/// Exports everything in one snapshot. `keep` makes the output durable. With `closes` the tables get another schema before
/// the commit, so that no gateway uses them any more.
pub(crate) async fn export(
    client: SchemaClient<'_>,
    (out, keep): (&mut dyn Write, &mut dyn FnMut() -> io::Result<()>),
    closes: bool,
    now: Wall,
) -> SqlResult<DatabaseExport, TransferError> {
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
    let counts = write_all(client, out, now).await?;
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
    keep().map_err(TransferError::File)?;
    Ok(DatabaseExport {
        counts,
        closed: new_name,
    })
}

/// Writes all lines.
async fn write_all(
    client: SchemaClient<'_>,
    out: &mut dyn Write,
    now: Wall,
) -> SqlResult<RecordCounts, TransferError> {
    let mut writer = DumpWriter::begin(out, now).map_err(TransferError::File)?;
    let fetch = format!("FETCH {AT_ONCE} FROM exported");
    for table in &TABLES {
        let columns = table.columns(TERMS);
        let rows = format!("SELECT {columns} ORDER BY {}", table.order);
        let json = format!("SELECT row_to_json(r)::text FROM ({rows}) r");
        client
            .batch_execute(&format!("DECLARE exported NO SCROLL CURSOR FOR {json}"))
            .await?;
        loop {
            let rows = client.query(&fetch, &[]).await?;
            for row in &rows {
                let fields =
                    serde_json::from_str(row.try_get(0)?).map_err(|error| error.to_string());
                let line = fields.and_then(|fields| DumpLine::of_row(table.kind, fields));
                let line = line.map_err(TransferError::Unfit)?;
                writer.push(&line)?;
            }
            if rows.is_empty() {
                break;
            }
        }
        client.batch_execute("CLOSE exported").await?;
    }
    Ok(writer.finish().map_err(TransferError::File)?)
}

/// Inserts rows whose columns are those of a table.
const POPULATE: &str = "
INSERT INTO {schema}.{table} SELECT * FROM json_populate_recordset(NULL::{schema}.{table}, $1::text::json)";

/// A kind of line, its table, and the statement that inserts rows of it from JSON.
const INSERTS: [(&str, &str, &str); 8] = [
    ("application", "applications", POPULATE),
    (
        "key",
        "keys",
        "INSERT INTO {schema}.{table} (application, digest, shown, name, created_at, expires_at, revoked_at, last_used_at)
         SELECT application, decode(digest, 'hex'), shown, name, created_at, expires_at, revoked_at, last_used_at
         FROM json_to_recordset($1::text::json)
             AS r (application text, digest text, shown text, name text, created_at int8, expires_at int8, revoked_at int8,
                   last_used_at int8)",
    ),
    (
        "ledger",
        "ledger_days",
        "INSERT INTO {schema}.{table} (day, application, granted)
         SELECT day, application, granted FROM json_populate_recordset(NULL::{schema}.{table}, $1::text::json)",
    ),
    // Gateways report more of the days that are open.
    ("requests", "request_days", POPULATE),
    (
        "audit",
        "audit",
        "INSERT INTO {schema}.{table} (id, at, who, what, application, detail) OVERRIDING SYSTEM VALUE
         SELECT number, at, who, what, application, detail
         FROM json_to_recordset($1::text::json)
             AS r (number int8, at int8, who text, what text, application text, detail text)",
    ),
    (
        "availability",
        "status_minutes",
        "INSERT INTO {schema}.{table} (minute, is_ready, is_fresh)
         SELECT m.minute, r.ready, r.fresh
         FROM json_to_recordset($1::text::json) AS r (first int8, minutes int8, ready bool, fresh bool),
             generate_series(r.first / 60000, r.first / 60000 + r.minutes - 1) AS m (minute)",
    ),
    ("status_message", "status_messages", POPULATE),
    (
        "owner",
        "owners",
        "WITH owned AS (
             INSERT INTO {schema}.owned_applications (application, owner)
             SELECT a.application, r.id FROM json_to_recordset($1::text::json) AS r (id text, applications json),
                 json_array_elements_text(r.applications) AS a (application)
         )
         INSERT INTO {schema}.{table}
         SELECT * FROM json_populate_recordset(NULL::{schema}.{table}, $1::text::json)",
    ),
];

/// Later audit records continue the numbers. The newest day in the ledger is open or closed already. Gateways that know
/// another identity read all keys again.
/// Gateways of the exported store may still hold shares of today and tomorrow.
const FINISH: &str = "
SELECT setval(pg_get_serial_sequence('{schema}.audit', 'id'), max(id)) FROM {schema}.audit HAVING max(id) IS NOT NULL;
UPDATE {schema}.calendar SET day = greatest(day, (SELECT max(day) FROM {schema}.ledger_days));
DELETE FROM {schema}.grace_shares;
INSERT INTO {schema}.grace_shares
SELECT greatest(day, (clock_timestamp() AT TIME ZONE 'UTC')::date) + later, 0, 1, 0, 0, 0
FROM {schema}.calendar, unnest(ARRAY[0, 1]) AS later;
UPDATE {schema}.site SET id = gen_random_uuid()";

/// Imports an export into empty tables. `who` and `file` are for the audit trail.
pub(crate) async fn import(
    client: SchemaClient<'_>,
    reader: DumpReader,
    (who, file): (&str, &str),
    now: Wall,
) -> SqlResult<RecordCounts, TransferError> {
    let counts = fill(client, reader).await?;
    let detail = format!("the whole store, from {file:?}");
    client
        .audit(now, [who, "import_store", "", &detail])
        .await?;
    Ok(counts)
}

/// Fills empty tables from an export.
pub(crate) async fn fill(
    client: SchemaClient<'_>,
    mut reader: DumpReader,
) -> SqlResult<RecordCounts, TransferError> {
    client.batch_execute(LOCK_ALL).await?;
    let found: i64 = client
        .query_one("SELECT count(*) FROM {schema}.applications", &[])
        .await?
        .try_get(0)?;
    if found > 0 {
        return Err(TransferError::InUse(found.unsigned_abs()).into());
    }
    loop {
        let mut rows = reader.rows(AT_ONCE)?;
        if rows.is_empty() {
            break;
        }
        for (kind, table, statement) in INSERTS {
            if let Some(rows) = rows.remove(kind) {
                let statement = statement.replace("{table}", table);
                client
                    .execute(&statement, &[&Value::Array(rows).to_string()])
                    .await?;
            }
        }
    }
    client.batch_execute(FINISH).await?;
    Ok(reader.counts())
}
