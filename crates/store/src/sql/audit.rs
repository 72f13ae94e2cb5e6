//! The audit trail, and the feed of changes.
//!
//! A position in the feed consists of the number of an audit record, the identity of the data set, and the history of
//! the server.

use super::store::{Access::Read, Store};
use crate::{
    AuditQuery, AuditRecord, ChangedApplications, FeedPosition, StoreResult,
    statements::{
        Fault, RowResult,
        SqlField::{Number, Text},
        SqlRow,
    },
    stored::stored,
};
use scoregate_base::{clock::Wall, keys::ApplicationId};

/// A limited number of applications that changed after a position, in the order of their last changes.
const CHANGED: &str = "
SELECT {source} AS source, {clock} AS clock, (SELECT coalesce(max(id), 0) FROM {schema}.audit) AS newest,
       a.number, a.application
FROM (SELECT 1) one
LEFT JOIN (
    SELECT max(id) AS number, application FROM {schema}.audit WHERE id > $1 GROUP BY application
    ORDER BY number LIMIT $2
) a ON true
ORDER BY a.number";

/// The search for a subject uses the index, because the last record of an application may be a million records back.
const AUDIT: &str = "
SELECT id, at, who, what, application, detail FROM {schema}.audit WHERE id < $1 AND {is_wanted}
ORDER BY id DESC LIMIT $2";

impl Store {
    /// The position of the newest change. A reader that gets the position before reading the first page of applications misses
    /// no change.
    pub async fn position(&self) -> StoreResult<FeedPosition> {
        let ChangedApplications {
            reached, newest, ..
        } = self.changed_after(FeedPosition::default(), 0).await?;
        Ok(FeedPosition {
            number: newest,
            ..reached
        })
    }

    /// Up to `limit` applications that changed after a position, in the order of their last changes.
    pub async fn changed_after(
        &self,
        after: FeedPosition,
        limit: usize,
    ) -> StoreResult<ChangedApplications> {
        self.run(Read, "read the change feed", async move |tables| {
            let values = [Number(stored(after.number)), Number(stored(limit))];
            let mut changed = ChangedApplications {
                reached: after,
                ..ChangedApplications::default()
            };
            let rows = tables.list(CHANGED, &values, feed_row).await?;
            if rows.is_empty() {
                return Err(Fault::Record(
                    "source is missing: the tables were replaced".into(),
                ));
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
        })
        .await
    }

    /// Audit records, newest first. An unreadable record is returned with the fields that can be read.
    pub async fn audit(&self, query: AuditQuery) -> StoreResult<Vec<AuditRecord>> {
        let (subject, is_wanted) = match (query.application, query.owner) {
            (Some(id), _) => (id.to_string(), "application = $3"),
            (None, Some(id)) => (
                id.to_string(),
                "application = '' AND (detail = $3 OR {position}(detail, $3 || ',') = 1)",
            ),
            (None, None) => (String::new(), "$3 = ''"),
        };
        let statement = AUDIT.replace("{is_wanted}", is_wanted);
        self.run(Read, "read the audit trail", async move |tables| {
            let before = query.before.map_or(i64::MAX, stored);
            let values = [Number(before), Number(stored(query.limit)), Text(&subject)];
            tables
                .list(&statement, &values, |row| Ok(Some(audit_record(row))))
                .await
        })
        .await
    }
}

type FeedRow = ((String, u64, Option<Wall>), Option<u64>, Option<String>);

fn feed_row(row: &SqlRow<'_>) -> RowResult<Option<FeedRow>> {
    let all = (
        row.text("source")?,
        row.number("newest")?,
        row.optional_time("clock")?,
    );
    let number = row.optional_number("number")?;
    Ok(Some((all, number, row.optional_text("application")?)))
}

fn audit_record(row: &SqlRow<'_>) -> AuditRecord {
    let word = |column| row.text(column).unwrap_or_else(|_| "?".into());
    AuditRecord {
        number: row.number("id").unwrap_or(0),
        at: row.time("at").unwrap_or_default(),
        who: word("who"),
        what: word("what"),
        application: word("application"),
        detail: word("detail"),
    }
}
