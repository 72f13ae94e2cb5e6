//! Limits of applications, and those that return at a time. The values to restore are those of before the first of several
//! changes with such a time.

use super::rows::SqlRow;
use super::tables::SqlField::{Limit, Text, Time};
use super::tables::{SqlDone, SqlTables};
use crate::{OwnLimits, StoreError, audit_detail};
use scoregate_base::clock::Wall;
use scoregate_base::keys::ApplicationId;

const SET: &str = "UPDATE {schema}.applications SET own_minute = $2, own_day = $3 WHERE id = $1";
const REMEMBER: &str = "
INSERT INTO {schema}.limits_until (application, until, minute, day)
SELECT id, CAST($2 AS bigint), own_minute, own_day FROM {schema}.applications WHERE id = $1
ON CONFLICT (application) DO UPDATE SET until = excluded.until";
const FORGET: &str = "DELETE FROM {schema}.limits_until WHERE application = $1";
const TAKE: &str = "
DELETE FROM {schema}.limits_until WHERE application = $1 AND until <= $2 RETURNING minute, day";
const DUE: &str = "SELECT application FROM {schema}.limits_until WHERE until <= $1 ORDER BY until";

/// Sets limits, and returns the details of the change. With an end, the current limits return then, or those that were to
/// return before.
pub(super) async fn set<T: SqlTables>(
    tables: T,
    id: &str,
    own: OwnLimits,
    until: Option<Wall>,
) -> SqlDone<T, String> {
    match until {
        Some(at) => drop(tables.run(REMEMBER, &[Text(id), Time(at)]).await?),
        None => forget(tables, id).await?,
    }
    tables
        .run(SET, &[Text(id), Limit(own.minute), Limit(own.day)])
        .await?;
    Ok(audit_detail::limits_set(own, until))
}

/// Stores that no limits return.
pub(super) async fn forget<T: SqlTables>(tables: T, id: &str) -> SqlDone<T, ()> {
    tables.run(FORGET, &[Text(id)]).await.map(drop)
}

/// Restores the limits if that is due, and returns the details of the change. Other changes are excluded, so of several
/// attempts one succeeds.
pub(super) async fn restore<T: SqlTables>(tables: T, id: &str, now: Wall) -> SqlDone<T, String> {
    let read = |row: &SqlRow<'_>| {
        Ok(OwnLimits {
            minute: row.limit("minute")?,
            day: row.limit("day")?,
        })
    };
    let own = tables.find(TAKE, &[Text(id), Time(now)], read).await?;
    set(
        tables,
        id,
        own.ok_or(StoreError::Exists("that restoration of limits"))?,
        None,
    )
    .await
}

/// The applications whose limits are to be restored.
pub(crate) async fn due<T: SqlTables>(tables: T, now: Wall) -> SqlDone<T, Vec<ApplicationId>> {
    let id = |row: &SqlRow<'_>| Ok(row.text("application")?.parse().ok());
    tables.list(DUE, &[Time(now)], id).await
}
