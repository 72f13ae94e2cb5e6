//! Requests of gateway processes by day, application, endpoint and outcome, and the units that follow from them. They are
//! merged once a day is closed for reports. The rules are in `requests`.
//!
//! A report that arrived after the merge would be counted twice. So reports and merges exclude each other, and a report of a
//! day that may be merged is ignored.

use super::store::Access::{Change, Read};
use super::store::Store;
use crate::requests::{REQUEST_DAYS_KEPT, REQUEST_DAYS_OPEN};
use crate::statements::SqlField::{Number, Text};
use crate::statements::{Done, RowResult, SiteLock, SqlRow, Tables};
use crate::stored::stored;
use crate::{
    RequestList, RequestOutcome, RequestQuery, RequestTotal, StoreResult, UsageList, UsageTotal,
};
use scoregate_base::clock::Day;
use scoregate_base::keys::ApplicationId;

/// The columns that a total is of.
pub(crate) const KEY: &str = "day, application, endpoint, outcome";
const COLUMNS: usize = 6;

/// The requests that were charged with a unit.
pub(super) const IS_CHARGED: &str = "outcome = 'ok' AND endpoint <> 'me'";

const RECORD: &str = "
INSERT INTO {schema}.request_nodes AS n ({key}, node, requests) VALUES {rows}
ON CONFLICT ({key}, node) DO UPDATE SET requests = excluded.requests WHERE n.requests < excluded.requests";

/// A row if there is anything to merge or to delete.
const IS_DUE: &str = "
SELECT 1 AS due WHERE EXISTS (SELECT 1 FROM {schema}.request_nodes WHERE day <= $1::text::date)
    OR EXISTS (SELECT 1 FROM {schema}.request_days WHERE day <= $2::text::date)";
const DUE: &str = "
SELECT DISTINCT {key} FROM {schema}.request_nodes WHERE day <= $1::text::date ORDER BY {key} LIMIT 500";
const MERGE: &str = "
INSERT INTO {schema}.request_days AS d ({key}, requests)
SELECT {key}, CAST(sum(requests) AS bigint) FROM {schema}.request_nodes WHERE ({key}) IN ({due}) GROUP BY {key}
ON CONFLICT ({key}) DO UPDATE SET requests = d.requests + excluded.requests";
const DELETE_MERGED: &str = "DELETE FROM {schema}.request_nodes WHERE ({key}) IN ({due})";
const DELETE: &str = "
DELETE FROM {schema}.request_days WHERE ({key}) IN (
    SELECT {key} FROM {schema}.request_days WHERE day <= $1::text::date ORDER BY {key} LIMIT 500)";

const READ_USAGE: &str = "
SELECT application, units, count(*) OVER () AS matching, CAST(sum(units) OVER () AS bigint) AS total
FROM (
    SELECT application, CAST(sum(requests) AS bigint) AS units FROM (
        SELECT application, requests FROM {schema}.request_days WHERE day = $1::text::date AND {is_charged}
        UNION ALL
        SELECT application, requests FROM {schema}.request_nodes WHERE day = $1::text::date AND {is_charged}
    ) parts GROUP BY application
) u
ORDER BY units DESC, application LIMIT $2";

/// Days one by one, so that both tables are searched by day and application.
const READ_REQUESTS: &str = "
SELECT CAST(r.day AS text) AS day, endpoint, outcome, CAST(sum(requests) AS bigint) AS requests FROM (
    SELECT day, endpoint, outcome, requests FROM {schema}.request_days WHERE day IN ({wanted}) AND application = $1
    UNION ALL
    SELECT day, endpoint, outcome, requests FROM {schema}.request_nodes WHERE day IN ({wanted}) AND application = $1
) r
GROUP BY r.day, endpoint, outcome ORDER BY r.day, endpoint, outcome";

/// Merges the totals of a batch of closed days and deletes a batch of outdated ones, unless gateways report at this
/// moment. Returns the number of changed records.
pub(crate) async fn merge(tables: Tables<'_>) -> Done<u64> {
    let Some(closed) = last_day_before(tables, REQUEST_DAYS_OPEN).await? else {
        return Ok(0);
    };
    let outdated = last_day_before(tables, REQUEST_DAYS_KEPT)
        .await?
        .unwrap_or_default()
        .to_string();
    let closed = closed.to_string();
    let closed = Text(&closed);
    let outdated = Text(&outdated);
    let statement = |text: &str| text.replace("{due}", DUE).replace("{key}", KEY);
    let is_due = tables
        .find(IS_DUE, &[closed, outdated], |_| Ok(()))
        .await?
        .is_some();
    if !is_due || !tables.lock_site(SiteLock::Merge).await? {
        return Ok(0);
    }
    let merged = tables.run(&statement(MERGE), &[closed]).await?;
    tables.run(&statement(DELETE_MERGED), &[closed]).await?;
    Ok(merged + tables.run(&statement(DELETE), &[outdated]).await?)
}

/// The last day before this number of days that end with the current one.
async fn last_day_before(tables: Tables<'_>, days: u32) -> Done<Option<Day>> {
    let today = tables.today().await?;
    Ok(today
        .and_then(|today| today.number().checked_sub(days))
        .map(Day::from_number))
}

impl Store {
    /// Stores totals of a node durably, at most one for each application, day, endpoint and outcome. A total that is lower than
    /// the stored one changes nothing, nor does one of a day that is no longer open for reports.
    pub async fn record_requests(&self, node: u64, totals: Vec<RequestTotal>) -> StoreResult<()> {
        self.run(Change, "record requests", async move |tables| {
            tables.lock_site(SiteLock::Report).await?;
            // A statement of its own: it reads the calendar as it is once the lock is held.
            let closed = last_day_before(tables, REQUEST_DAYS_OPEN).await?;
            let open: Vec<_> = totals
                .iter()
                .filter(|total| closed.is_none_or(|closed| total.day > closed))
                .map(|total| (total.day.to_string(), total.application.to_string(), total))
                .collect();
            let values = open.iter().flat_map(|(day, application, total)| {
                [
                    Text(day),
                    Text(application),
                    Text(&total.endpoint),
                    Text(total.outcome.word()),
                    Number(node.cast_signed()),
                    Number(stored(total.requests)),
                ]
            });
            let values: Vec<_> = values.collect();
            let record = RECORD.replace("{key}", KEY);
            tables
                .write_rows(&record, "::text::date", COLUMNS, &values)
                .await
        })
        .await
    }

    /// Units delivered on a day, added up over all nodes: up to `limit` applications.
    pub async fn usage(&self, day: Day, limit: usize) -> StoreResult<UsageList> {
        self.run(Read, "read usage", async move |tables| {
            let mut usage = UsageList::default();
            let read_usage = READ_USAGE.replace("{is_charged}", IS_CHARGED);
            let day = day.to_string();
            let values = [Text(&day), Number(stored(limit))];
            for (matching, units, total) in tables.list(&read_usage, &values, usage_row).await? {
                (usage.matching, usage.units) = (matching, units);
                usage.totals.extend(total);
            }
            Ok(usage)
        })
        .await
    }

    /// Requests of an application added up over all nodes.
    pub async fn requests(&self, query: RequestQuery) -> StoreResult<RequestList> {
        let days: Vec<String> = query.days().map(|day| format!("'{day}'")).collect();
        if days.is_empty() {
            return Ok(RequestList::default());
        }
        let statement = READ_REQUESTS.replace("{wanted}", &days.join(", "));
        self.run(Read, "read requests", async move |tables| {
            let id = query.application.to_string();
            let read = |row: &SqlRow<'_>| request_total(row, query.application);
            let totals = tables.list(&statement, &[Text(&id)], read).await?;
            Ok(RequestList { totals })
        })
        .await
    }
}

fn usage_row(row: &SqlRow<'_>) -> RowResult<Option<(u64, u64, Option<UsageTotal>)>> {
    let units = row.number("units")?;
    // Other texts come from manual edits.
    let total = row.text("application")?.parse().ok();
    let total = total.map(|application| UsageTotal { application, units });
    Ok(Some((row.number("matching")?, row.number("total")?, total)))
}

fn request_total(row: &SqlRow<'_>, application: ApplicationId) -> RowResult<Option<RequestTotal>> {
    // Other texts come from manual edits or a newer release.
    let day = Day::parse(&row.text("day")?);
    let Some((day, outcome)) = day.zip(RequestOutcome::parse(&row.text("outcome")?)) else {
        return Ok(None);
    };
    Ok(Some(RequestTotal {
        day,
        application,
        endpoint: row.text("endpoint")?.into(),
        outcome,
        requests: row.number("requests")?,
    }))
}
