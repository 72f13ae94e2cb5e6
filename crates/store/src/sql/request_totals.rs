//! Requests of gateway processes by day, application, endpoint and outcome, and the units derived from them. The totals
//! of a day are merged after the day is closed for reports. The rules are in `requests`.
//!
//! Before the account or the tier of an application changes, the values for its earlier days are stored, so that closed
//! days are always reported with the same account and tier.
//!
//! A report that arrived after the merge would be counted twice. So reports and merges exclude each other, and a report
//! about a day that may be merged is ignored.

use super::store::{
    Access::{Change, Read},
    Store,
};
use crate::{
    RequestList, RequestOutcome, RequestQuery, RequestTotal, StoreResult, UsageList, UsageTotal,
    requests::{REQUEST_DAYS_KEPT, REQUEST_DAYS_OPEN},
    statements::{
        Done, RowResult, SiteLock,
        SqlField::{Number, OptionalText, Text},
        SqlRow, Tables,
    },
    stored::stored,
};
use scoregate_base::{
    clock::Day,
    keys::{ApplicationId, OwnerId},
};

/// The columns that identify a total.
pub const KEY: &str = "day, application, endpoint, outcome";
const COLUMNS: usize = 6;

/// Selects the requests that cost a unit.
pub const IS_CHARGED: &str = "outcome = 'ok' AND endpoint <> 'me'";

const RECORD: &str = "
INSERT INTO {schema}.request_nodes AS n ({key}, node, requests) VALUES {rows}
ON CONFLICT ({key}, node) DO UPDATE SET requests = excluded.requests WHERE n.requests < excluded.requests";

/// Returns a row if there is anything to merge or to delete.
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

/// Returns a row if reports of the day have not been merged yet.
const IS_UNMERGED: &str =
    "SELECT 1 AS found FROM {schema}.request_nodes WHERE day = $1::text::date LIMIT 1";
const READ_USAGE: &str = "
SELECT u.application, units, matching, total, {account} AS account, coalesce(t.tier, a.tier) AS tier
FROM (
    SELECT application, units, count(*) OVER () AS matching, CAST(sum(units) OVER () AS bigint) AS total
    FROM (
        SELECT application, CAST(sum(requests) AS bigint) AS units FROM (
            SELECT application, requests FROM {schema}.request_days WHERE day = $1::text::date AND {is_charged}
            UNION ALL
            SELECT application, requests FROM {schema}.request_nodes WHERE day = $1::text::date AND {is_charged}
        ) parts GROUP BY application
    ) sums
    WHERE $3 IS NULL OR application IN (
        SELECT application FROM {schema}.owned_applications WHERE owner = $3
        UNION SELECT application FROM {schema}.usage_terms WHERE owner = $3
    )
    ORDER BY units DESC, application LIMIT $2
) u
LEFT JOIN {schema}.usage_terms t ON t.day = $1::text::date AND t.application = u.application
LEFT JOIN {schema}.applications a ON a.id = u.application
LEFT JOIN {schema}.owned_applications o ON o.application = u.application
WHERE $3 IS NULL OR {account} = $3
ORDER BY units DESC, u.application";
const ACCOUNT: &str = "CASE WHEN t.tier IS NULL THEN o.owner ELSE t.owner END";
/// Includes the last day even if it has no requests: reports may follow.
const KEEP_TERMS: &str = "
INSERT INTO {schema}.usage_terms (day, application, owner, tier)
SELECT r.day, a.id, o.owner, a.tier FROM (
    SELECT day FROM {schema}.request_days WHERE day IN ({wanted}) AND application = $1
    UNION SELECT day FROM {schema}.request_nodes WHERE day IN ({wanted}) AND application = $1
    UNION SELECT $2::text::date
) r
JOIN {schema}.applications a ON a.id = $1
LEFT JOIN {schema}.owned_applications o ON o.application = a.id
WHERE true ON CONFLICT DO NOTHING";

/// Searches one day at a time, so that each search of both tables uses the index on day and application.
const READ_REQUESTS: &str = "
SELECT CAST(r.day AS text) AS day, endpoint, outcome, CAST(sum(requests) AS bigint) AS requests FROM (
    SELECT day, endpoint, outcome, requests FROM {schema}.request_days WHERE day IN ({wanted}) AND application = $1
    UNION ALL
    SELECT day, endpoint, outcome, requests FROM {schema}.request_nodes WHERE day IN ({wanted}) AND application = $1
) r
GROUP BY r.day, endpoint, outcome ORDER BY r.day, endpoint, outcome";

/// Merges the totals of a batch of closed days and deletes a batch of outdated ones, unless gateways are reporting now.
/// Returns the number of changed records.
pub async fn merge(tables: Tables<'_>) -> Done<u64> {
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
    let is_due = tables
        .find(IS_DUE, &[closed, outdated], |_| Ok(()))
        .await?
        .is_some();
    if !is_due || !tables.lock_site(SiteLock::Merge).await? {
        return Ok(0);
    }
    let merged = tables.run(&of_due_days(MERGE), &[closed]).await?;
    tables.run(&of_due_days(DELETE_MERGED), &[closed]).await?;
    Ok(merged + tables.run(&of_due_days(DELETE), &[outdated]).await?)
}

fn of_due_days(statement: &str) -> String {
    statement.replace("{due}", DUE).replace("{key}", KEY)
}

/// The last day before a period of `days` days that ends with the current day.
async fn last_day_before(tables: Tables<'_>, days: u32) -> Done<Option<Day>> {
    let today = tables.today().await?;
    Ok(today
        .and_then(|today| today.number().checked_sub(days))
        .map(Day::from_number))
}

impl Store {
    /// Stores the totals of a node durably, at most one for each application, day, endpoint and outcome. A total is
    /// ignored if it is lower than the stored one, or if its day is no longer open for reports.
    pub async fn record_requests(&self, node: u64, totals: Vec<RequestTotal>) -> StoreResult<()> {
        self.run(Change, "record requests", async move |tables| {
            tables.lock_site(SiteLock::Report).await?;
            // A separate statement, so that it reads the calendar after the lock is held.
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

    /// Units delivered on a day, summed over all nodes: up to `limit` applications, or only the applications of an
    /// account.
    pub async fn usage(
        &self,
        day: Day,
        limit: usize,
        owner: Option<OwnerId>,
    ) -> StoreResult<UsageList> {
        self.run(Read, "read usage", async move |tables| {
            let date = day.to_string();
            let closed = last_day_before(tables, REQUEST_DAYS_OPEN).await?;
            let unmerged = tables.find(IS_UNMERGED, &[Text(&date)], |_| Ok(())).await?;
            let mut usage = UsageList {
                is_closed: closed >= Some(day) && unmerged.is_none(),
                ..UsageList::default()
            };
            let owner = owner.map(|id| id.to_string());
            let limit = Number(stored(limit));
            let values = [Text(&date), limit, OptionalText(owner.as_deref())];
            let statement = READ_USAGE
                .replace("{account}", ACCOUNT)
                .replace("{is_charged}", IS_CHARGED);
            for (matching, units, total) in tables
                .list(&statement, &values, |row: &SqlRow<'_>| usage_row(row, day))
                .await?
            {
                (usage.matching, usage.units) = (matching, units);
                usage.totals.extend(total);
            }
            Ok(usage)
        })
        .await
    }

    /// Requests of an application, summed over all nodes.
    pub async fn requests(&self, query: RequestQuery) -> StoreResult<RequestList> {
        let days = days_of(&query);
        if days.is_empty() {
            return Ok(RequestList::default());
        }
        let statement = READ_REQUESTS.replace("{wanted}", &days);
        self.run(Read, "read requests", async move |tables| {
            let id = query.application.to_string();
            let totals = tables
                .list(&statement, &[Text(&id)], |row: &SqlRow<'_>| {
                    request_total(row, query.application)
                })
                .await?;
            Ok(RequestList { totals })
        })
        .await
    }
}

/// Stores the account and the tier of an application for its earlier days up to `last`, in the transaction that changes
/// one of them.
pub async fn keep_terms(tables: Tables<'_>, application: ApplicationId, last: Day) -> Done<()> {
    let earlier = RequestQuery {
        application,
        first: Day::default(),
        last,
    };
    let keep = KEEP_TERMS.replace("{wanted}", &days_of(&earlier));
    let application = application.to_string();
    let last = last.to_string();
    let values = [Text(&application), Text(&last)];
    tables.run(&keep, &values).await.map(drop)
}

/// The days of a query as a list for a statement.
fn days_of(query: &RequestQuery) -> String {
    let days: Vec<String> = query.days().map(|day| format!("'{day}'")).collect();
    days.join(", ")
}

/// The sums of a day and the total of an application. The total is `None` for an invalid id, which comes from manual
/// edits.
fn usage_row(row: &SqlRow<'_>, day: Day) -> RowResult<Option<(u64, u64, Option<UsageTotal>)>> {
    let account = row.optional_text("account")?;
    let tier = row.optional_text("tier")?;
    let units = row.number("units")?;
    let application = row.text("application")?.parse().ok();
    let total = application.map(|application| UsageTotal {
        account: account.and_then(|id| id.parse().ok()),
        application,
        day,
        id: format!("{day}_{application}"),
        tier,
        units,
    });
    Ok(Some((row.number("matching")?, row.number("total")?, total)))
}

fn request_total(row: &SqlRow<'_>, application: ApplicationId) -> RowResult<Option<RequestTotal>> {
    // Other values come from manual edits or a newer release.
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
