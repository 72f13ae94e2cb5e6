//! `scoregate store restore` on a database, in one transaction: takes over tables that PostgreSQL tools restored, or
//! fills empty tables from an export. Until then, gateways refuse restored tables (`connection::server_check`).

use super::{
    database_transfer,
    import::{ImportOptions, ImportedDay},
};
use crate::{
    TransferError,
    dump::{DumpReader, RowCounts},
    postgres::IS_OWN,
    sql::{END_SIGN_INS, restored_day},
    statements::{
        Done, Fault, SchemaClient,
        SqlField::{Text, Time},
        Tables,
    },
};
use scoregate_base::clock::{Day, Wall};

/// A restored database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseRestore {
    /// Number of imported rows, if an export was imported.
    pub imported: Option<RowCounts>,
    /// The last change in the backup.
    pub last_change: Option<Wall>,
    /// The state of the current day.
    pub day: ImportedDay,
}

/// Gateways that reported within the last half minute, by the server's clock, are live.
const STATE: &str = "
SELECT n.at AS clock, c.day::text AS day, (SELECT max(at) FROM {schema}.audit) AS last_change,
       (SELECT count(*) FROM {schema}.nodes WHERE last_seen_at > n.at - 30000) AS live
FROM {schema}.calendar c, (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8 AS at) n";

/// Gateways claim their shares of grace for today and tomorrow. Claims since the backup are unknown, so no gateway gets
/// these shares.
const WITHHOLD: &str = "
DELETE FROM {schema}.grace_shares;
INSERT INTO {schema}.grace_shares (day, share, shares, token, life, node)
SELECT c.day + d, 0, 1, 0, 0, 0 FROM {schema}.calendar c, generate_series(0, 1) d";

/// Marks these tables as the ones that gateways use.
const TAKE_OVER: &str = "
UPDATE {schema}.calendar SET day = $1::text::date, own_oid = tableoid, cluster = {cluster},
    restored_at = greatest(restored_at + 1, $2), seen_at = greatest(seen_at, $2)";

/// Restores a database. `file` is the name of the export, for the audit trail.
pub async fn restore(
    client: SchemaClient<'_>,
    from: Option<(DumpReader, &str)>,
    options: &ImportOptions,
) -> Done<DatabaseRestore> {
    let tables = Tables::Database(client);
    let mut source = String::from("the restored database");
    let mut imported = None;
    if let Some((reader, file)) = from {
        source = format!("the whole store, from {file:?}");
        imported = Some(database_transfer::fill(client, reader).await?);
    } else {
        tables.lock().await?;
    }
    let RestoredState {
        last_change,
        clock,
        day,
    } = accepted_state(client, options).await?;
    let restored = if options.reopen_day {
        let units = restored_day::remaining(tables, day, &options.tiers).await?;
        ImportedDay::Reopened(day, units)
    } else {
        restored_day::close(tables, day).await?;
        source = format!("{source}; {day} is closed");
        ImportedDay::Closed(day)
    };
    take_over(client, day, clock).await?;
    let words = [options.who.as_str(), "import_store", "", &source];
    tables.audit(clock, words).await?;
    Ok(DatabaseRestore {
        imported,
        last_change,
        day: restored,
    })
}

/// The restored data, once it may be used.
struct RestoredState {
    last_change: Option<Wall>,
    clock: Wall,
    day: Day,
}

async fn accepted_state(client: SchemaClient<'_>, options: &ImportOptions) -> Done<RestoredState> {
    let state = Tables::Database(client).find(STATE, &[], |row| {
        let day = Day::parse(&row.text("day")?).unwrap_or_default();
        let live = row.number("live")?;
        Ok((
            row.optional_time("last_change")?,
            row.time("clock")?,
            day,
            live,
        ))
    });
    let Some((last_change, clock, found, live)) = state.await? else {
        return Err(Fault::Record("the current day is missing".into()));
    };
    // The list of gateways in a restored database is from the time of the backup.
    if live > 0 && client.query_opt(IS_OWN, &[]).await?.is_some() {
        return Err(TransferError::LiveGateways(live).into());
    }
    if !options.accept_lost_revocations {
        let after = last_change;
        return Err(TransferError::LostRevocations { after }.into());
    }
    let day = found.max(clock.day());
    let is_behind = day > clock.day() || last_change.is_some_and(|at| at > clock);
    if is_behind && !options.reopen_day {
        return Err(TransferError::ClockBehind(clock).into());
    }
    Ok(RestoredState {
        last_change,
        clock,
        day,
    })
}

/// Marks the tables as usable by gateways, withholds grace, ends sessions, and deletes queued mail.
async fn take_over(client: SchemaClient<'_>, day: Day, clock: Wall) -> Done<()> {
    let day = day.to_string();
    let now = Time(clock);
    client.execute(TAKE_OVER, &[Text(&day), now]).await?;
    client.batch_execute(WITHHOLD).await?;
    client.batch_execute(END_SIGN_INS).await
}
