//! The change feed: the audit trail, whose numbers are in commit order because one thread writes.

use rusqlite::{Connection, params};

use super::fault::StoreFault;
use super::statements::one;
use crate::stored::stored;
use crate::{ChangedApplications, FeedPosition};
use scoregate_base::keys::ApplicationId;

/// The one data set of this engine.
const SOURCE: &str = "file";

/// The position of the newest change.
pub(super) fn position(connection: &Connection) -> Result<FeedPosition, StoreFault> {
    let (number,): (i64,) = one(connection, "SELECT coalesce(max(id), 0) FROM audit", [])?;
    Ok(FeedPosition { source: SOURCE.into(), number: number.cast_unsigned() })
}

/// Up to `limit` applications that changed after a position, in the order of their last changes.
pub(super) fn changed(
    connection: &Connection,
    after: &FeedPosition,
    limit: usize,
) -> Result<ChangedApplications, StoreFault> {
    let newest = position(connection)?;
    let mut changed = ChangedApplications {
        applications: Vec::new(),
        reached: FeedPosition { number: after.number, ..newest.clone() },
        newest: newest.number,
        clock: None,
    };
    let mut read = connection.prepare_cached(
        "SELECT max(id) AS number, application FROM audit WHERE id > ?1 GROUP BY application ORDER BY number LIMIT ?2",
    )?;
    let mut rows = read.query(params![after.number.cast_signed(), stored(limit)])?;
    while let Some(row) = rows.next()? {
        changed.reached.number = row.get::<_, i64>(0)?.cast_unsigned();
        // Records of maintenance commands name no application.
        changed.applications.extend(row.get::<_, String>(1)?.parse::<ApplicationId>());
    }
    Ok(changed)
}
