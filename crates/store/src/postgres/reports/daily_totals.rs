//! Totals of each gateway process by day, merged once a day is closed for reports: usage, and requests.
//!
//! A report that arrived after the merge would be counted twice. So reports and merges exclude each other by locks of the row
//! of `site`, and a report of a day that may be merged is ignored.

use crate::postgres::connection::schema_client::{Parameter, SchemaClient, SqlResult};
use crate::sql::daily_totals::DailyTotals;
use crate::usage::USAGE_DAYS_OPEN;

/// Excludes merges only.
const LOCK_FOR_REPORT: &str = "SELECT FROM {schema}.site FOR KEY SHARE";
/// Changes wait for a merge, which is skipped while there are reports or changes.
const LOCK_FOR_MERGE: &str = "SELECT FROM {schema}.site FOR UPDATE SKIP LOCKED";

const RECORD: &str = "
INSERT INTO {schema}.{nodes} AS n ({key}, node, {total})
SELECT {r.key}, $1, r.total
FROM unnest($3::int8[], $4::text[]::date[], {texts}) AS r (total, {key})
JOIN {schema}.calendar c ON r.day > c.day - $2::int4
ORDER BY {r.key}
ON CONFLICT ({key}, node) DO UPDATE SET {total} = excluded.{total} WHERE n.{total} < excluded.{total}";

/// Whether there is anything to merge or to delete.
const DUE: &str = "
SELECT EXISTS (SELECT FROM {schema}.{nodes} WHERE day <= (SELECT day - $1::int4 FROM {schema}.calendar))
    OR EXISTS (SELECT FROM {schema}.{days} WHERE day <= (SELECT day - $2::int4 FROM {schema}.calendar)) AS is_due";

const MERGE: &str = "
WITH due AS (
    SELECT DISTINCT {key} FROM {schema}.{nodes}
    WHERE day <= (SELECT day - $1::int4 FROM {schema}.calendar) ORDER BY {key} LIMIT $2
), taken AS (
    DELETE FROM {schema}.{nodes} r WHERE ({r.key}) IN (SELECT {key} FROM due) RETURNING {r.key}, r.{total}
)
INSERT INTO {schema}.{days} AS d ({key}, {total})
SELECT {key}, sum({total})::int8 FROM taken GROUP BY {key}
ON CONFLICT ({key}) DO UPDATE SET {total} = d.{total} + excluded.{total}";

const DELETE: &str = "
DELETE FROM {schema}.{days} WHERE ({key}) IN (
    SELECT {key} FROM {schema}.{days}
    WHERE day <= (SELECT day - $1::int4 FROM {schema}.calendar) ORDER BY {key} LIMIT $2)";

/// Stores totals of a node in a transaction: the columns of the key as texts, and the totals.
pub(crate) async fn record(
    client: SchemaClient<'_>,
    table: &DailyTotals,
    node: u64,
    key: &[Vec<String>],
    totals: &Vec<i64>,
) -> SqlResult<()> {
    // A statement of its own: the next one reads the calendar as it is once the lock is held.
    client.execute(LOCK_FOR_REPORT, &[]).await?;
    let (node, open) = (node.cast_signed(), USAGE_DAYS_OPEN.cast_signed());
    let mut values: Vec<&dyn Parameter> = vec![&node, &open, totals];
    values.extend(key.iter().map(|column| column as &dyn Parameter));
    let texts: Vec<String> =
        table.key_parameters('$', 4).iter().skip(1).map(|number| format!("{number}::text[]")).collect();
    let statement = table.statement(RECORD).replace("{texts}", &texts.join(", "));
    client.execute(&statement, &values).await.map(drop)
}

/// Merges the totals of a batch of closed days and deletes a batch of outdated ones, unless gateways report at this
/// moment. Returns the number of changed records.
pub(crate) async fn merge(client: SchemaClient<'_>, table: &DailyTotals, batch: i64) -> SqlResult<u64> {
    let (open, kept) = (USAGE_DAYS_OPEN.cast_signed(), table.days_kept.cast_signed());
    let due = client.query_one(&table.statement(DUE), &[&open, &kept]).await?;
    if !due.try_get::<_, bool>("is_due")? || client.execute(LOCK_FOR_MERGE, &[]).await? == 0 {
        return Ok(0);
    }
    let mut changed = 0;
    for (text, days) in [(MERGE, USAGE_DAYS_OPEN), (DELETE, table.days_kept)] {
        changed += client.execute(&table.statement(text), &[&days.cast_signed(), &batch]).await?;
    }
    Ok(changed)
}
