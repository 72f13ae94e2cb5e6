//! Totals of gateway processes by day: usage, and requests by endpoint and outcome. They are merged once a day is closed for
//! reports. The rules are in `usage` and `requests`.
//!
//! A report that arrived after the merge would be counted twice. So reports and merges exclude each other, and a report of a
//! day that may be merged is ignored.

use super::tables::SqlField::{Number, Text};
use super::tables::{SiteLock, SqlDone, SqlRow, SqlTables, parameters, write_rows};
use crate::requests::REQUEST_DAYS_KEPT;
use crate::stored::stored;
use crate::usage::{USAGE_DAYS_KEPT, USAGE_DAYS_OPEN};
use crate::{
    RequestList, RequestOutcome, RequestQuery, RequestTotal, UsageList, UsageQuery, UsageTotal,
};
use scoregate_base::clock::Day;

/// A table of totals of processes, and one of totals of closed days.
pub(crate) struct DailyTotals {
    nodes: &'static str,
    days: &'static str,
    /// The columns that a total is of, the day first.
    pub(crate) key: &'static str,
    /// The column of the total.
    total: &'static str,
    days_kept: u32,
}

pub(crate) const USAGE: DailyTotals = DailyTotals {
    nodes: "usage_nodes",
    days: "usage_days",
    key: "day, application",
    total: "units",
    days_kept: USAGE_DAYS_KEPT,
};

pub(crate) const REQUESTS: DailyTotals = DailyTotals {
    nodes: "request_nodes",
    days: "request_days",
    key: "day, application, endpoint, outcome",
    total: "requests",
    days_kept: REQUEST_DAYS_KEPT,
};

const RECORD: &str = "
INSERT INTO {schema}.{nodes} AS n ({key}, node, {total}) VALUES {rows}
ON CONFLICT ({key}, node) DO UPDATE SET {total} = excluded.{total} WHERE n.{total} < excluded.{total}";

/// A row if there is anything to merge or to delete.
const IS_DUE: &str = "
SELECT 1 AS due WHERE EXISTS (SELECT 1 FROM {schema}.{nodes} WHERE day <= $1::text::date)
    OR EXISTS (SELECT 1 FROM {schema}.{days} WHERE day <= $2::text::date)";
const DUE: &str = "SELECT DISTINCT {key} FROM {schema}.{nodes} WHERE day <= $1::text::date ORDER BY {key} LIMIT {merged}";
const MERGE: &str = "
INSERT INTO {schema}.{days} AS d ({key}, {total})
SELECT {key}, CAST(sum({total}) AS bigint) FROM {schema}.{nodes} WHERE ({key}) IN ({due}) GROUP BY {key}
ON CONFLICT ({key}) DO UPDATE SET {total} = d.{total} + excluded.{total}";
const DELETE_MERGED: &str = "DELETE FROM {schema}.{nodes} WHERE ({key}) IN ({due})";
const DELETE: &str = "
DELETE FROM {schema}.{days} WHERE ({key}) IN (
    SELECT {key} FROM {schema}.{days} WHERE day <= $1::text::date ORDER BY {key} LIMIT {merged})";

const READ_USAGE: &str = "
SELECT CAST(u.day AS text) AS day, application, units, count(*) OVER () AS matching,
       CAST(sum(units) OVER () AS bigint) AS total
FROM (
    SELECT day, application, CAST(sum(units) AS bigint) AS units FROM (
        SELECT day, application, units FROM {schema}.usage_days
        WHERE day BETWEEN $1::text::date AND $2::text::date{wanted}
        UNION ALL
        SELECT day, application, units FROM {schema}.usage_nodes
        WHERE day BETWEEN $1::text::date AND $2::text::date{wanted}
    ) parts GROUP BY day, application
) u
ORDER BY u.day DESC, units DESC, application LIMIT $3";

/// Days one by one, so that both tables are searched by day and application.
const READ_REQUESTS: &str = "
SELECT CAST(r.day AS text) AS day, endpoint, outcome, CAST(sum(requests) AS bigint) AS requests FROM (
    SELECT day, endpoint, outcome, requests FROM {schema}.request_days WHERE day IN ({wanted}) AND application = $1
    UNION ALL
    SELECT day, endpoint, outcome, requests FROM {schema}.request_nodes WHERE day IN ({wanted}) AND application = $1
) r
GROUP BY r.day, endpoint, outcome ORDER BY r.day, endpoint, outcome";

impl DailyTotals {
    /// A statement with the names of tables and columns.
    pub(crate) fn statement(&self, text: &str) -> String {
        text.replace("{key}", self.key)
            .replace("{total}", self.total)
            .replace("{nodes}", self.nodes)
            .replace("{days}", self.days)
    }

    /// Stores totals of a node in a transaction, each with its day and its key, without those of closed days.
    async fn record<T: SqlTables, const KEY: usize>(
        &self,
        tables: T,
        node: u64,
        totals: Vec<(Day, [String; KEY], u64)>,
    ) -> SqlDone<T, ()> {
        tables.lock_site(SiteLock::Report).await?;
        // A statement of its own: it reads the calendar as it is once the lock is held.
        let closed = last_day_before(tables, USAGE_DAYS_OPEN).await?;
        let mut values = Vec::new();
        for (_, key, total) in totals
            .iter()
            .filter(|(day, ..)| closed.is_none_or(|closed| *day > closed))
        {
            values.extend(key.iter().map(|text| Text(text)));
            values.extend([Number(node.cast_signed()), Number(stored(*total))]);
        }
        write_rows(
            tables,
            &self.statement(RECORD),
            "::text::date",
            KEY + 2,
            &values,
        )
        .await
    }

    /// Merges the totals of a batch of closed days and deletes a batch of outdated ones, unless gateways report at this
    /// moment. Returns the number of changed records.
    pub(crate) async fn merge<T: SqlTables>(&self, tables: T) -> SqlDone<T, u64> {
        let Some(closed) = last_day_before(tables, USAGE_DAYS_OPEN).await? else {
            return Ok(0);
        };
        let outdated = last_day_before(tables, self.days_kept)
            .await?
            .unwrap_or_default();
        let closed = closed.to_string();
        let outdated = outdated.to_string();
        let closed = Text(&closed);
        let outdated = Text(&outdated);
        let statement = |text: &str| {
            let text = self.statement(&text.replace("{due}", DUE));
            text.replace("{merged}", &T::MERGED_AT_ONCE.to_string())
        };
        let is_due = tables
            .find(&statement(IS_DUE), &[closed, outdated], |_| Ok(()))
            .await?
            .is_some();
        if !is_due || !tables.lock_site(SiteLock::Merge).await? {
            return Ok(0);
        }
        let merged = tables.run(&statement(MERGE), &[closed]).await?;
        tables.run(&statement(DELETE_MERGED), &[closed]).await?;
        Ok(merged + tables.run(&statement(DELETE), &[outdated]).await?)
    }
}

/// The last day before this number of days that end with the current one.
async fn last_day_before<T: SqlTables>(tables: T, days: u32) -> SqlDone<T, Option<Day>> {
    let today = tables.today().await?;
    Ok(today
        .and_then(|today| today.number().checked_sub(days))
        .map(Day::from_number))
}

/// Stores units that a node delivered.
pub(crate) async fn record_usage<T: SqlTables>(
    tables: T,
    node: u64,
    totals: &[UsageTotal],
) -> SqlDone<T, ()> {
    let keyed = totals.iter().map(
        |UsageTotal {
             day,
             application,
             units,
         }| { (*day, [day.to_string(), application.to_string()], *units) },
    );
    USAGE.record(tables, node, keyed.collect()).await
}

/// Stores requests that a node answered.
pub(crate) async fn record_requests<T: SqlTables>(
    tables: T,
    node: u64,
    totals: &[RequestTotal],
) -> SqlDone<T, ()> {
    let keyed = totals.iter().map(
        |RequestTotal {
             day,
             application,
             endpoint,
             outcome,
             requests,
         }| {
            let key = [
                day.to_string(),
                application.to_string(),
                endpoint.to_string(),
                outcome.word().into(),
            ];
            (*day, key, *requests)
        },
    );
    REQUESTS.record(tables, node, keyed.collect()).await
}

/// Usage added up over all nodes.
pub(crate) async fn usage<T: SqlTables>(tables: T, query: &UsageQuery) -> SqlDone<T, UsageList> {
    let first = query.first.to_string();
    let last = query.last.to_string();
    let ids: Option<Vec<String>> = query
        .applications
        .as_ref()
        .map(|ids| ids.iter().map(ToString::to_string).collect());
    let mut usage = UsageList::default();
    let mut values = vec![Text(&first), Text(&last), Number(stored(query.limit))];
    let mut wanted = String::new();
    if let Some(ids) = &ids {
        if ids.is_empty() {
            return Ok(usage);
        }
        wanted = format!(" AND application IN ({})", parameters(4, ids.len()));
        values.extend(ids.iter().map(|id| Text(id)));
    }
    let read = |row: &dyn SqlRow<T::Fault>| {
        // Other texts come from manual edits.
        let total = match (
            Day::parse(&row.text("day")?),
            row.text("application")?.parse(),
        ) {
            (Some(day), Ok(application)) => Some(UsageTotal {
                day,
                application,
                units: row.number("units")?,
            }),
            _ => None,
        };
        Ok(Some((row.number("matching")?, row.number("total")?, total)))
    };
    for (matching, units, total) in tables
        .list(&READ_USAGE.replace("{wanted}", &wanted), &values, read)
        .await?
    {
        (usage.matching, usage.units) = (matching, units);
        usage.totals.extend(total);
    }
    Ok(usage)
}

/// Requests of an application added up over all nodes.
pub(crate) async fn requests<T: SqlTables>(
    tables: T,
    query: &RequestQuery,
) -> SqlDone<T, RequestList> {
    let application = query.application;
    let days: Vec<String> = query.days().map(|day| format!("'{day}'")).collect();
    if days.is_empty() {
        return Ok(RequestList::default());
    }
    let read = |row: &dyn SqlRow<T::Fault>| {
        // Other texts come from manual edits or a newer release.
        let (Some(day), Some(outcome)) = (
            Day::parse(&row.text("day")?),
            RequestOutcome::parse(&row.text("outcome")?),
        ) else {
            return Ok(None);
        };
        let endpoint = row.text("endpoint")?.into();
        let requests = row.number("requests")?;
        Ok(Some(RequestTotal {
            day,
            application,
            endpoint,
            outcome,
            requests,
        }))
    };
    let statement = READ_REQUESTS.replace("{wanted}", &days.join(", "));
    let totals = tables
        .list(&statement, &[Text(&application.to_string())], read)
        .await?;
    Ok(RequestList { totals })
}
