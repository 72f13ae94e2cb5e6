//! The report of `scoregate store check` on a database, and the state of the database for metrics.

use scoregate_base::clock::{Day, Wall};

use crate::{
    DatabaseStatus, HotTable, TableRows,
    statements::{Done, RowResult, SchemaClient, ServerHistory, SqlRow, Tables},
};

/// The database, as the current user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseReport {
    /// Version of the server.
    pub server: String,
    /// Number of applied schema steps.
    pub format: u32,
    /// Number of applications.
    pub applications: u64,
    /// Number of keys.
    pub keys: u64,
    /// Keys that are active: neither expired nor revoked.
    pub keys_in_force: u64,
    /// The current day of the ledger; `None` if nothing was ever granted.
    pub day: Option<Day>,
    /// Units granted for that day.
    pub granted: u64,
    /// Number of audit records.
    pub audit: u64,
    /// Number of shared documents.
    pub documents: u64,
    /// Whether commits wait for a synchronous standby.
    pub is_synchronous: bool,
    /// Why the server's timeline cannot be checked; `None` if it can.
    pub hidden_timeline: Option<String>,
    /// The server's clock.
    pub clock: Wall,
}

/// Evaluated for the transactions of this user, because a role may have its own setting.
const IS_SYNCHRONOUS: &str = "current_setting('synchronous_standby_names') <> ''
           AND current_setting('synchronous_commit') IN ('on', 'remote_apply')";

/// Every role may read this view, which does not lock the tables.
const STATISTICS: &str = "
SELECT relname::text AS name, n_live_tup AS live, n_dead_tup AS dead
FROM pg_stat_user_tables WHERE schemaname = '{schema}'";

const STATUS: &str = "SELECT {is_synchronous} AS is_synchronous";

const REPORT: &str = "
SELECT current_setting('server_version') AS server,
       (SELECT format FROM {schema}.site) AS format,
       (SELECT count(*) FROM {schema}.applications) AS applications,
       count(k.digest) AS keys,
       count(k.digest) FILTER (WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > n.at)) AS keys_in_force,
       (SELECT day::text FROM {schema}.calendar WHERE day > '1970-01-01') AS day,
       (SELECT coalesce(sum(granted), 0)::bigint FROM {schema}.ledger_days l
            JOIN {schema}.calendar c ON c.day = l.day) AS granted,
       (SELECT count(*) FROM {schema}.audit) AS audit,
       (SELECT count(*) FROM {schema}.documents) AS documents,
       {is_synchronous} AS is_synchronous,
       n.at AS clock
FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS at) n
LEFT JOIN {schema}.keys k ON true
GROUP BY n.at";

/// Reads the report about the database. The tables must exist.
pub async fn report(client: SchemaClient<'_>) -> Done<DatabaseReport> {
    let hidden_timeline = match ServerHistory::read(client.client).await? {
        ServerHistory::Hidden(reason) => Some(reason),
        ServerHistory::Disclosed { .. } => None,
    };
    let row = client.query_one(&statement(REPORT), &[]).await?;
    let row = SqlRow::new(&row);
    let day = row.optional_text("day")?;
    Ok(DatabaseReport {
        server: row.text("server")?,
        format: row.small_number("format")?,
        applications: row.number("applications")?,
        keys: row.number("keys")?,
        keys_in_force: row.number("keys_in_force")?,
        day: day.as_deref().and_then(Day::parse),
        granted: row.number("granted")?,
        audit: row.number("audit")?,
        documents: row.number("documents")?,
        is_synchronous: row.flag("is_synchronous")?,
        hidden_timeline,
        clock: row.time("clock")?,
    })
}

/// Reads the state of the database.
pub async fn status(client: SchemaClient<'_>) -> Done<DatabaseStatus> {
    let tables = Tables::Database(client);
    let is_synchronous = tables
        .find(&statement(STATUS), &[], |row| row.flag("is_synchronous"))
        .await?;
    Ok(DatabaseStatus {
        is_synchronous: is_synchronous.unwrap_or_default(),
        tables: tables.list(STATISTICS, &[], table_rows).await?,
    })
}

fn table_rows(row: &SqlRow<'_>) -> RowResult<Option<TableRows>> {
    let table = HotTable::parse(&row.text("name")?);
    let live = row.number("live")?;
    let dead = row.number("dead")?;
    Ok(table.map(|table| TableRows { table, live, dead }))
}

fn statement(text: &str) -> String {
    text.replace("{is_synchronous}", IS_SYNCHRONOUS)
}
