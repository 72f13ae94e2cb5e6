//! The audit trail, and the feed of changes.
//!
//! A position of the feed is the number of an audit record, the identity of the data set, and the history of the server.

use super::rows::{BadRecord, SqlRow};
use super::tables::SqlField::{Number, Text};
use super::tables::{SqlDone, SqlTables};
use crate::stored::stored;
use crate::{AuditQuery, AuditRecord, ChangedApplications, FeedPosition};
use scoregate_base::keys::ApplicationId;

/// Up to a number of applications that changed after a position, in the order of their last changes.
const CHANGED: &str = "
SELECT {source} AS source, {clock} AS clock, (SELECT coalesce(max(id), 0) FROM {schema}.audit) AS newest,
       a.number, a.application
FROM (SELECT 1) one
LEFT JOIN (
    SELECT max(id) AS number, application FROM {schema}.audit WHERE id > $1 GROUP BY application
    ORDER BY number LIMIT $2
) a ON true
ORDER BY a.number";

/// The search for a subject uses the index: the last record of one application may be a million records back.
const AUDIT: &str = "
SELECT id, at, who, what, application, detail FROM {schema}.audit WHERE id < $1 AND {is_wanted}
ORDER BY id DESC LIMIT $2";

/// Applications that changed after a position, in the order of their last changes.
pub(crate) async fn changed<T: SqlTables>(
    tables: T,
    after: FeedPosition,
    limit: usize,
) -> SqlDone<T, ChangedApplications> {
    let values = [Number(stored(after.number)), Number(stored(limit))];
    let mut changed = ChangedApplications {
        reached: after,
        ..ChangedApplications::default()
    };
    let statement = CHANGED
        .replace("{source}", T::SOURCE)
        .replace("{clock}", T::CLOCK);
    let read = |row: &SqlRow<'_>| {
        let all = (
            row.text("source")?,
            row.number("newest")?,
            row.optional_time("clock")?,
        );
        Ok(Some((
            all,
            row.optional_number("number")?,
            row.optional_text("application")?,
        )))
    };
    let rows = tables.list(&statement, &values, read).await?;
    if rows.is_empty() {
        // The tables were replaced.
        return Err(BadRecord("source is missing".into()).into());
    }
    for (all, number, application) in rows {
        (changed.reached.source, changed.newest, changed.clock) = all;
        changed.reached.number = number.unwrap_or(changed.reached.number);
        // Records of maintenance commands name no application.
        changed
            .applications
            .extend(application.and_then(|id| id.parse::<ApplicationId>().ok()));
    }
    Ok(changed)
}

/// The position of the newest change.
pub(crate) async fn position<T: SqlTables>(tables: T) -> SqlDone<T, FeedPosition> {
    let ChangedApplications {
        reached, newest, ..
    } = changed(tables, FeedPosition::default(), 0).await?;
    Ok(FeedPosition {
        number: newest,
        ..reached
    })
}

/// Records, newest first. An unreadable one is returned as far as possible.
pub(crate) async fn records<T: SqlTables>(
    tables: T,
    query: AuditQuery,
) -> SqlDone<T, Vec<AuditRecord>> {
    let (subject, is_wanted) = match (query.application, query.owner) {
        (Some(id), _) => (id.to_string(), "application = $3"),
        (None, Some(id)) => (
            id.to_string(),
            "application = '' AND (detail = $3 OR {position}(detail, $3 || ',') = 1)",
        ),
        (None, None) => (String::new(), "$3 = ''"),
    };
    let statement = AUDIT
        .replace("{is_wanted}", is_wanted)
        .replace("{position}", T::POSITION);
    let read = |row: &SqlRow<'_>| {
        let word = |column| row.text(column).unwrap_or_else(|_| "?".into());
        Ok(Some(AuditRecord {
            number: row.number("id").unwrap_or(0),
            at: row.time("at").unwrap_or_default(),
            who: word("who"),
            what: word("what"),
            application: word("application"),
            detail: word("detail"),
        }))
    };
    let before = query.before.map_or(i64::MAX, stored);
    let limit = stored(query.limit);
    tables
        .list(
            &statement,
            &[Number(before), Number(limit), Text(&subject)],
            read,
        )
        .await
}
