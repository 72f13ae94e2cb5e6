//! `scoregate store export` and `store import` on a database, each in one transaction.

use std::io::{self, Write};

use tokio_postgres::types::Type;
use tokio_postgres::{Client, IsolationLevel, Row, Transaction};

use super::connection::{Parameter, SchemaName};
use super::status;
use crate::clock::Wall;
use crate::store::dump::{
    ApplicationLine, AuditLine, AvailabilityLine, DumpBatch, DumpFault, DumpLine, DumpReader, DumpWriter,
    KeyLine, LedgerLine, OwnerLine, RecordCounts, RequestsLine, UsageLine,
};

/// Number of rows that are read or written with one statement.
const AT_ONCE: usize = 2_000;

/// Why a transfer failed. Nothing was changed.
#[derive(Debug)]
pub(super) enum TransferFault {
    Database(tokio_postgres::Error),
    File(DumpFault),
    /// Applications exist already.
    InUse(u64),
}

/// A finished export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseExport {
    /// Number of records.
    pub counts: RecordCounts,
    /// The schema to which the tables were moved, if the export closed the store.
    pub closed: Option<String>,
}

/// Reads a row as a line.
type ReadLine = fn(&Row) -> Result<DumpLine, tokio_postgres::Error>;

const TABLES: [(&str, ReadLine); 9] = [
    (
        "SELECT id, name, tier, own_minute, own_day, contact, note, created_at, url FROM {schema}.applications ORDER BY id",
        read_application,
    ),
    (
        "SELECT application, encode(digest, 'hex'), shown, created_at, expires_at, revoked_at, last_used_at, name
         FROM {schema}.keys ORDER BY application, digest",
        read_key,
    ),
    (
        "SELECT day::text, application, granted FROM {schema}.ledger_days ORDER BY day, application",
        read_ledger,
    ),
    (
        "SELECT day::text, application, sum(units)::int8
         FROM (SELECT * FROM {schema}.usage_days UNION ALL SELECT day, application, units FROM {schema}.usage_nodes) u
         WHERE EXISTS (SELECT FROM {schema}.applications a WHERE a.id = application)
         GROUP BY day, application ORDER BY day, application",
        read_usage,
    ),
    (
        "SELECT day::text, application, endpoint, outcome, sum(requests)::int8
         FROM (SELECT * FROM {schema}.request_days
               UNION ALL
               SELECT day, application, endpoint, outcome, requests FROM {schema}.request_nodes) r
         WHERE EXISTS (SELECT FROM {schema}.applications a WHERE a.id = application)
         GROUP BY day, application, endpoint, outcome ORDER BY day, application, endpoint, outcome",
        read_requests,
    ),
    ("SELECT id, at, who, what, application, detail FROM {schema}.audit ORDER BY id", read_audit),
    (
        "SELECT min(minute), count(*), is_ready, is_fresh
         FROM (SELECT minute, is_ready, is_fresh,
                      minute - row_number() OVER (PARTITION BY is_ready, is_fresh ORDER BY minute) AS period
               FROM {schema}.status_minutes) m
         GROUP BY is_ready, is_fresh, period ORDER BY 1",
        read_availability,
    ),
    (
        "SELECT id, incident, at, state, title, message FROM {schema}.status_messages ORDER BY id",
        read_status_message,
    ),
    (
        "SELECT id, mailbox, email, created_at, terms_version, terms_accepted_at, tier, suspended_at,
                ARRAY(SELECT application FROM {schema}.owned_applications WHERE owner = o.id ORDER BY application)
         FROM {schema}.owners o ORDER BY id",
        read_owner,
    ),
];

/// Waits for transactions in progress; later ones find no tables once the schema has another name.
const LOCK_ALL: &str = "
LOCK TABLE {schema}.site, {schema}.applications, {schema}.keys, {schema}.audit, {schema}.calendar, {schema}.ledger_days,
    {schema}.ledger_nodes, {schema}.minute_pools, {schema}.minute_shares, {schema}.nodes, {schema}.usage_nodes,
    {schema}.usage_days, {schema}.documents, {schema}.document_contents, {schema}.backend_refreshes,
    {schema}.request_nodes, {schema}.request_days, {schema}.status_minutes, {schema}.status_messages, {schema}.owners, {schema}.owned_applications, {schema}.sign_in_links,
    {schema}.owner_sessions, {schema}.mail_queue, {schema}.closed_applications, {schema}.grace_shares IN ACCESS EXCLUSIVE MODE";

/// Exports everything in one snapshot. `keep` makes the output durable. With `closes` the tables get another schema before
/// the commit, so that no gateway uses them any more.
pub(super) async fn export(
    client: &mut Client,
    schema: &SchemaName,
    (out, keep): (&mut dyn Write, &mut dyn FnMut() -> io::Result<()>),
    closes: bool,
    now: Wall,
) -> Result<DatabaseExport, TransferFault> {
    let level = IsolationLevel::RepeatableRead;
    let snapshot = client.build_transaction().isolation_level(level).start().await?;
    if closes {
        // Before the first read, which takes the snapshot.
        snapshot.batch_execute(&schema.statement(LOCK_ALL)).await?;
    }
    let mut writer = DumpWriter::begin(out, now).map_err(DumpFault::Disk)?;
    let fetch = format!("FETCH {AT_ONCE} FROM exported");
    for (select, read) in TABLES {
        let declare = format!("DECLARE exported NO SCROLL CURSOR FOR {}", schema.statement(select));
        snapshot.batch_execute(&declare).await?;
        loop {
            let rows = snapshot.query_typed(&fetch, &[]).await?;
            for row in &rows {
                writer.push(&read(row)?)?;
            }
            if rows.is_empty() {
                break;
            }
        }
        snapshot.batch_execute("CLOSE exported").await?;
    }
    let counts = writer.finish().map_err(DumpFault::Disk)?;
    let new_name = closes.then(|| {
        let time = now.rfc3339().replace(['-', ':', '.'], "").to_ascii_lowercase();
        // A name has at most 63 characters.
        format!("{:.40}_closed_{time}", schema.statement("{schema}"))
    });
    if let Some(name) = &new_name {
        let rename = schema.statement(&format!("ALTER SCHEMA {{schema}} RENAME TO {name}"));
        snapshot.batch_execute(&rename).await?;
    }
    keep().map_err(DumpFault::Disk)?;
    snapshot.commit().await?;
    Ok(DatabaseExport { counts, closed: new_name })
}

const INSERT_APPLICATIONS: &str = "
INSERT INTO {schema}.applications (id, name, tier, own_minute, own_day, contact, note, created_at, url)
SELECT id, name, tier, own_minute, own_day, contact, note, (extract(epoch FROM created_at) * 1000)::int8, url
FROM json_to_recordset($1::text::json) AS r (id text, name text, tier text, own_minute int8, own_day int8, contact text,
                                             note text, created_at timestamptz, url text)";

const INSERT_KEYS: &str = "
INSERT INTO {schema}.keys (application, digest, shown, created_at, expires_at, revoked_at, last_used_at, name)
SELECT application, decode(digest, 'hex'), shown, (extract(epoch FROM created_at) * 1000)::int8,
       (extract(epoch FROM expires_at) * 1000)::int8, (extract(epoch FROM revoked_at) * 1000)::int8,
       (extract(epoch FROM last_used_at) * 1000)::int8, name
FROM json_to_recordset($1::text::json) AS r (application text, digest text, shown text, created_at timestamptz,
                                             expires_at timestamptz, revoked_at timestamptz, last_used_at timestamptz,
                                             name text)";

const INSERT_LEDGER: &str = "
INSERT INTO {schema}.ledger_days (day, application, granted)
SELECT day, application, granted
FROM json_to_recordset($1::text::json) AS r (day date, application text, granted int8)";

/// Gateways report more of the days that are open.
const INSERT_USAGE: &str = "
INSERT INTO {schema}.usage_days (day, application, units)
SELECT day, application, units FROM json_to_recordset($1::text::json) AS r (day date, application text, units int8)";

const INSERT_REQUESTS: &str = "
INSERT INTO {schema}.request_days (day, application, endpoint, outcome, requests)
SELECT day, application, endpoint, outcome, requests
FROM json_to_recordset($1::text::json) AS r (day date, application text, endpoint text, outcome text, requests int8)";

const INSERT_AUDIT: &str = "
INSERT INTO {schema}.audit (id, at, who, what, application, detail) OVERRIDING SYSTEM VALUE
SELECT number, (extract(epoch FROM at) * 1000)::int8, who, what, application, detail
FROM json_to_recordset($1::text::json) AS r (number int8, at timestamptz, who text, what text, application text,
                                             detail text)";

const INSERT_AVAILABILITY: &str = "
INSERT INTO {schema}.status_minutes (minute, is_ready, is_fresh)
SELECT m.minute, r.ready, r.fresh
FROM json_to_recordset($1::text::json) AS r (first timestamptz, minutes int8, ready bool, fresh bool),
     generate_series(extract(epoch FROM r.first)::int8 / 60, extract(epoch FROM r.first)::int8 / 60 + r.minutes - 1)
     AS m (minute)";

const INSERT_MESSAGES: &str = "
INSERT INTO {schema}.status_messages (id, incident, at, state, title, message)
SELECT id, incident, (extract(epoch FROM at) * 1000)::int8, state, title, message
FROM json_to_recordset($1::text::json) AS r (id int8, incident int8, at timestamptz, state text, title text, message text)";

const INSERT_OWNERS: &str = "
WITH r AS (
    SELECT * FROM json_to_recordset($1::text::json) AS r (
        id text, mailbox text, email text, created_at timestamptz, terms_version text, terms_accepted_at timestamptz,
        tier text, suspended_at timestamptz, applications json)
), owned AS (
    INSERT INTO {schema}.owned_applications (application, owner)
    SELECT a.application, r.id FROM r, json_array_elements_text(r.applications) AS a (application)
)
INSERT INTO {schema}.owners (id, mailbox, email, created_at, terms_version, terms_accepted_at, tier, suspended_at)
SELECT id, mailbox, email, (extract(epoch FROM created_at) * 1000)::int8, terms_version,
       (extract(epoch FROM terms_accepted_at) * 1000)::int8, tier, (extract(epoch FROM suspended_at) * 1000)::int8
FROM r";

/// Later audit records continue the numbers. The newest day in the ledger is open or closed already. Gateways that know
/// another identity read all keys again.
/// The grace of the current day may have been used with the exported store.
const FINISH: &str = "
SELECT setval(pg_get_serial_sequence('{schema}.audit', 'id'), max(id)) FROM {schema}.audit HAVING max(id) IS NOT NULL;
UPDATE {schema}.calendar SET day = greatest(day, (SELECT max(day) FROM {schema}.ledger_days));
DELETE FROM {schema}.grace_shares;
INSERT INTO {schema}.grace_shares SELECT day, 0, 1, 0, 0, 0 FROM {schema}.calendar WHERE day > '1970-01-01';
UPDATE {schema}.site SET id = gen_random_uuid()";

const RECORD: &str = "
INSERT INTO {schema}.audit (at, who, what, application, detail) VALUES ($1, $2, 'import_store', '', $3)";

/// Imports an export into empty tables. `who` and `file` are for the audit trail.
pub(super) async fn import(
    client: &mut Client,
    schema: &SchemaName,
    mut reader: DumpReader,
    (who, file): (&str, &str),
    now: Wall,
) -> Result<RecordCounts, TransferFault> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(&schema.statement(LOCK_ALL)).await?;
    let count = schema.statement("SELECT count(*) FROM {schema}.applications");
    let found: i64 = transaction.query_typed_one(&count, &[]).await?.try_get(0)?;
    if found > 0 {
        return Err(TransferFault::InUse(found.unsigned_abs()));
    }
    let mut batch = DumpBatch::default();
    while let Some(line) = reader.next()? {
        batch.push(line);
        if batch.len() >= AT_ONCE {
            insert(&transaction, schema, std::mem::take(&mut batch)).await?;
        }
    }
    insert(&transaction, schema, batch).await?;
    transaction.batch_execute(&schema.statement(FINISH)).await?;
    let (at, detail) = (now.millis().cast_signed(), format!("the whole store, from {file:?}"));
    let record: [Parameter<'_>; 3] = [(&at, Type::INT8), (&who, Type::TEXT), (&detail, Type::TEXT)];
    transaction.execute_typed(&schema.statement(RECORD), &record).await?;
    transaction.commit().await?;
    Ok(reader.counts())
}

async fn insert(
    transaction: &Transaction<'_>,
    schema: &SchemaName,
    batch: DumpBatch,
) -> Result<(), TransferFault> {
    let statements = [
        INSERT_APPLICATIONS,
        INSERT_KEYS,
        INSERT_LEDGER,
        INSERT_USAGE,
        INSERT_REQUESTS,
        INSERT_AUDIT,
        INSERT_AVAILABILITY,
        INSERT_MESSAGES,
        INSERT_OWNERS,
    ];
    for (statement, records) in statements.iter().zip(batch.into_json().map_err(DumpFault::Disk)?) {
        let records: [Parameter<'_>; 1] = [(&records, Type::TEXT)];
        transaction.execute_typed(&schema.statement(statement), &records).await?;
    }
    Ok(())
}

fn read_application(row: &Row) -> Result<DumpLine, tokio_postgres::Error> {
    let limit = |column| Ok(row.try_get::<_, Option<i64>>(column)?.map(units));
    Ok(DumpLine::Application(ApplicationLine {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        tier: row.try_get(2)?,
        own_minute: limit(3)?,
        own_day: limit(4)?,
        url: row.try_get(8)?,
        contact: row.try_get(5)?,
        note: row.try_get(6)?,
        created_at: instant(row.try_get(7)?),
    }))
}

fn read_key(row: &Row) -> Result<DumpLine, tokio_postgres::Error> {
    let maybe = |column| Ok(row.try_get::<_, Option<i64>>(column)?.map(instant));
    Ok(DumpLine::Key(KeyLine {
        application: row.try_get(0)?,
        digest: row.try_get(1)?,
        shown: row.try_get(2)?,
        created_at: instant(row.try_get(3)?),
        expires_at: maybe(4)?,
        revoked_at: maybe(5)?,
        last_used_at: maybe(6)?,
        name: row.try_get(7)?,
    }))
}

fn read_ledger(row: &Row) -> Result<DumpLine, tokio_postgres::Error> {
    Ok(DumpLine::Ledger(LedgerLine {
        day: row.try_get(0)?,
        application: row.try_get(1)?,
        granted: units(row.try_get(2)?),
        grace: 0,
    }))
}

fn read_usage(row: &Row) -> Result<DumpLine, tokio_postgres::Error> {
    Ok(DumpLine::Usage(UsageLine {
        day: row.try_get(0)?,
        application: row.try_get(1)?,
        units: row.try_get::<_, i64>(2)?.unsigned_abs(),
    }))
}

fn read_requests(row: &Row) -> Result<DumpLine, tokio_postgres::Error> {
    Ok(DumpLine::Requests(RequestsLine {
        day: row.try_get(0)?,
        application: row.try_get(1)?,
        endpoint: row.try_get(2)?,
        outcome: row.try_get(3)?,
        requests: row.try_get::<_, i64>(4)?.unsigned_abs(),
    }))
}

fn read_audit(row: &Row) -> Result<DumpLine, tokio_postgres::Error> {
    Ok(DumpLine::Audit(AuditLine {
        number: row.try_get::<_, i64>(0)?.unsigned_abs(),
        at: instant(row.try_get(1)?),
        who: row.try_get(2)?,
        what: row.try_get(3)?,
        application: row.try_get(4)?,
        detail: row.try_get(5)?,
    }))
}

fn read_availability(row: &Row) -> Result<DumpLine, tokio_postgres::Error> {
    Ok(DumpLine::Availability(AvailabilityLine {
        first: Wall::from_seconds(row.try_get::<_, i64>(0)?.unsigned_abs().saturating_mul(60)).rfc3339(),
        minutes: row.try_get::<_, i64>(1)?.unsigned_abs(),
        ready: row.try_get(2)?,
        fresh: row.try_get(3)?,
    }))
}

fn read_status_message(row: &Row) -> Result<DumpLine, tokio_postgres::Error> {
    Ok(DumpLine::StatusMessage(status::message(row)?.into()))
}

fn read_owner(row: &Row) -> Result<DumpLine, tokio_postgres::Error> {
    Ok(DumpLine::Owner(OwnerLine {
        id: row.try_get(0)?,
        mailbox: row.try_get(1)?,
        email: row.try_get(2)?,
        created_at: instant(row.try_get(3)?),
        terms_version: row.try_get(4)?,
        terms_accepted_at: instant(row.try_get(5)?),
        tier: row.try_get(6)?,
        suspended_at: row.try_get::<_, Option<i64>>(7)?.map(instant),
        applications: row.try_get(8)?,
    }))
}

fn instant(millis: i64) -> String {
    Wall::from_millis(u64::try_from(millis).unwrap_or(0)).rfc3339()
}

fn units(stored: i64) -> u32 {
    u32::try_from(stored).unwrap_or(u32::MAX)
}

impl From<tokio_postgres::Error> for TransferFault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl From<DumpFault> for TransferFault {
    fn from(fault: DumpFault) -> Self {
        Self::File(fault)
    }
}
