//! Deletes outdated records in batches, and merges requests of closed days.

use super::request_totals;
use super::tables::SqlField::{Number, Text, Time};
use super::tables::{SqlDone, SqlTables};
use crate::evidence::{HOUR_DAYS, KEY_DAYS};
use crate::notices::NOTICE_DAYS;
use crate::requests::REQUEST_DAYS_KEPT;
use crate::status::first_kept;
use scoregate_base::clock::Day;
use scoregate_base::evidence::EVIDENCE_DAYS_KEPT;

const DELETE: &str = "
DELETE FROM {schema}.{table} WHERE ({key}) IN (
    SELECT {key} FROM {schema}.{table} WHERE {is_outdated} {at_once})";
/// The first minute of all is kept: it shows that the service has a history.
const OLD_MINUTE: &str =
    "minute < $1 AND minute > (SELECT min(minute) FROM {schema}.status_minutes)";

/// Of the ledger, this number of days is kept for inspection and for the sums of months, today included.
const LEDGER_DAYS_KEPT: u32 = 35;
/// Requests with an idempotency key are kept for at least this number of days: payment providers repeat messages for three days.
const IDEMPOTENCY_DAYS: u32 = 4;

/// Deletes links and sessions that expired before the current day of the ledger, applications that were closed before it, old
/// days of the ledger, old notices, old evidence and old minutes of the status page. Returns the number of changed records.
pub(crate) async fn delete<T: SqlTables>(tables: T) -> SqlDone<T, u64> {
    let mut deleted = 0;
    for statement in T::OUTDATED {
        deleted += tables.run(statement, &[]).await?;
    }
    let Some(today) = tables.today().await? else {
        return Ok(deleted);
    };
    deleted += delete_before(tables, today).await?;
    deleted += delete_requests(tables, today).await?;
    // Last: changes wait for a merge.
    Ok(deleted + request_totals::merge(tables).await?)
}

/// Deletes records that are outdated on a day.
async fn delete_before<T: SqlTables>(tables: T, today: Day) -> SqlDone<T, u64> {
    let mut deleted = 0;
    let date = today.to_string();
    let before = |days| today.number().saturating_sub(days);
    let numbers = [
        before(EVIDENCE_DAYS_KEPT),
        before(HOUR_DAYS) * 24,
        before(KEY_DAYS),
    ];
    let [days, hours, keys] = numbers.map(|number| Number(number.into()));
    let notices = Time(Day::from_number(before(NOTICE_DAYS)).start());
    let ledger = Day::from_number(before(LEDGER_DAYS_KEPT - 1)).to_string();
    for (table, key, is_outdated, until) in [
        (
            "status_minutes",
            "minute",
            OLD_MINUTE,
            Number(first_kept(Some(today)).cast_signed()),
        ),
        (
            "sign_in_links",
            "digest",
            "expires_at < $1",
            Time(today.start()),
        ),
        (
            "owner_sessions",
            "digest",
            "expires_at < $1",
            Time(today.start()),
        ),
        (
            "closed_applications",
            "mailbox_digest, application",
            "day < $1::text::date",
            Text(&date),
        ),
        (
            "ledger_windows",
            "scope, kind, starts, ends",
            "ends < $1::text::date",
            Text(&date),
        ),
        (
            "ledger_nodes",
            "day, application, node",
            "day < $1::text::date",
            Text(&ledger),
        ),
        (
            "ledger_days",
            "day, application",
            "day < $1::text::date",
            Text(&ledger),
        ),
        ("notices", "id", "at < $1", notices),
        ("evidence_days", "day, application", "day < $1", days),
        (
            "evidence_hours",
            "hour, application, node",
            "hour < $1",
            hours,
        ),
        ("evidence_keys", "day", "day < $1", keys),
    ] {
        let delete = statement::<T>([table, key, is_outdated]);
        deleted += tables.run(&delete, &[until]).await?;
    }
    Ok(deleted)
}

/// Deletes what is kept about requests.
async fn delete_requests<T: SqlTables>(tables: T, today: Day) -> SqlDone<T, u64> {
    let before = |days| Day::from_number(today.number().saturating_sub(days));
    let usage = before(REQUEST_DAYS_KEPT - 1).to_string();
    let terms = statement::<T>(["usage_terms", "day, application", "day < $1::text::date"]);
    let deleted = tables.run(&terms, &[Text(&usage)]).await?;
    let keys = statement::<T>(["idempotency_keys", "digest", "at < $1"]);
    let until = Time(before(IDEMPOTENCY_DAYS).start());
    Ok(deleted + tables.run(&keys, &[until]).await?)
}

/// The statement that deletes a batch of records of a table with this key, by this condition.
fn statement<T: SqlTables>([table, key, is_outdated]: [&str; 3]) -> String {
    DELETE
        .replace("{is_outdated}", is_outdated)
        .replace("{at_once}", T::DELETED_AT_ONCE)
        .replace("{table}", table)
        .replace("{key}", key)
}
