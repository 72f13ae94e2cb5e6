//! Usage: totals of each gateway process, merged once a day is closed for reports.
//!
//! A report that arrived after the merge would be counted twice. So reports and merges exclude each other by a lock of
//! their transactions, and a report of a day that may be merged is ignored.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Transaction};

use super::connection::{Parameter, SchemaName};
use crate::clock::Day;
use crate::store::usage::{USAGE_DAYS_KEPT, USAGE_DAYS_OPEN};
use crate::store::{UsageList, UsageQuery, UsageTotal};

/// The statements, with the schema's name.
pub(super) struct UsageStatements {
    lock_name: String,
    record: String,
    read: String,
    merge: String,
    delete: String,
}

pub(super) const LOCK_FOR_REPORT: &str = "SELECT pg_advisory_xact_lock_shared(hashtext($1))";
pub(super) const LOCK_FOR_MERGE: &str = "SELECT pg_try_advisory_xact_lock(hashtext($1))";

const RECORD: &str = "
INSERT INTO {schema}.usage_nodes AS n (day, application, node, units)
SELECT r.day, r.application, $1, r.units
FROM unnest($2::text[]::date[], $3::text[], $4::int8[]) AS r (day, application, units)
JOIN {schema}.calendar c ON r.day > c.day - $5::int4
ORDER BY r.day, r.application
ON CONFLICT (day, application, node) DO UPDATE SET units = excluded.units WHERE n.units < excluded.units";

const READ: &str = "
SELECT day::text, application, units, count(*) OVER () AS matching, sum(units) OVER ()::int8 AS total
FROM (
    SELECT day, application, sum(units)::int8 AS units FROM (
        SELECT day, application, units FROM {schema}.usage_days
        WHERE day BETWEEN $1::text::date AND $2::text::date AND ($3::text[] IS NULL OR application = ANY ($3))
        UNION ALL
        SELECT day, application, units FROM {schema}.usage_nodes
        WHERE day BETWEEN $1::text::date AND $2::text::date AND ($3::text[] IS NULL OR application = ANY ($3))
    ) parts GROUP BY day, application
) u
ORDER BY u.day DESC, units DESC, application LIMIT $4";

const MERGE: &str = "
WITH due AS (
    SELECT DISTINCT day, application FROM {schema}.usage_nodes
    WHERE day <= (SELECT day - $1::int4 FROM {schema}.calendar) ORDER BY day, application LIMIT $2
), taken AS (
    DELETE FROM {schema}.usage_nodes n USING due WHERE (n.day, n.application) = (due.day, due.application)
    RETURNING n.day, n.application, n.units
)
INSERT INTO {schema}.usage_days AS d (day, application, units)
SELECT day, application, sum(units)::int8 FROM taken GROUP BY day, application
ON CONFLICT (day, application) DO UPDATE SET units = d.units + excluded.units";

const DELETE: &str = "
DELETE FROM {schema}.usage_days WHERE (day, application) IN (
    SELECT day, application FROM {schema}.usage_days
    WHERE day <= (SELECT day - $1::int4 FROM {schema}.calendar) ORDER BY day, application LIMIT $2)";

impl UsageStatements {
    pub(super) fn new(schema: &SchemaName) -> Self {
        let [record, read, merge, delete] = [RECORD, READ, MERGE, DELETE].map(|text| schema.statement(text));
        Self { lock_name: schema.statement("{schema} usage"), record, read, merge, delete }
    }

    /// Stores totals of a node.
    pub(super) async fn record(
        &self,
        client: &mut Client,
        node: u64,
        totals: &[UsageTotal],
    ) -> Result<(), tokio_postgres::Error> {
        let (node, open) = (node.cast_signed(), days(USAGE_DAYS_OPEN));
        let text = |part: fn(&UsageTotal) -> String| totals.iter().map(part).collect::<Vec<String>>();
        let (dates, applications) =
            (text(|total| total.day.to_string()), text(|total| total.application.to_string()));
        let units: Vec<i64> = totals.iter().map(|total| count(total.units)).collect();
        let parameters: [Parameter<'_>; 5] = [
            (&node, Type::INT8),
            (&dates, Type::TEXT_ARRAY),
            (&applications, Type::TEXT_ARRAY),
            (&units, Type::INT8_ARRAY),
            (&open, Type::INT4),
        ];
        let transaction = client.transaction().await?;
        // A statement of its own: the next one reads the calendar as it is once the lock is held.
        let lock: [Parameter<'_>; 1] = [(&self.lock_name, Type::TEXT)];
        transaction.query_typed(LOCK_FOR_REPORT, &lock).await?;
        transaction.execute_typed(&self.record, &parameters).await?;
        transaction.commit().await
    }

    /// Usage added up over all nodes.
    pub(super) async fn read(
        &self,
        client: &Client,
        query: &UsageQuery,
    ) -> Result<UsageList, tokio_postgres::Error> {
        let (first, last) = (query.first.to_string(), query.last.to_string());
        let names = |ids: &Vec<_>| ids.iter().map(ToString::to_string).collect::<Vec<String>>();
        let applications = query.applications.as_ref().map(names);
        let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
        let parameters: [Parameter<'_>; 4] = [
            (&first, Type::TEXT),
            (&last, Type::TEXT),
            (&applications, Type::TEXT_ARRAY),
            (&limit, Type::INT8),
        ];
        let mut usage = UsageList::default();
        for row in client.query_typed(&self.read, &parameters).await? {
            let number = |column| Ok(row.try_get::<_, i64>(column)?.unsigned_abs());
            (usage.matching, usage.units) = (number("matching")?, number("total")?);
            let (day, application): (&str, &str) = (row.try_get("day")?, row.try_get("application")?);
            // The engine writes valid days and ids only.
            if let (Some(day), Ok(application)) = (Day::parse(day), application.parse()) {
                usage.totals.push(UsageTotal { day, application, units: number("units")? });
            }
        }
        Ok(usage)
    }

    /// Merges the totals of a batch of closed days and deletes a batch of outdated ones, unless gateways report at this
    /// moment. Returns the number of changed records.
    pub(super) async fn merge(
        &self,
        transaction: &Transaction<'_>,
        batch: i64,
    ) -> Result<u64, tokio_postgres::Error> {
        let lock: [Parameter<'_>; 1] = [(&self.lock_name, Type::TEXT)];
        if !transaction.query_typed_one(LOCK_FOR_MERGE, &lock).await?.try_get::<_, bool>(0)? {
            return Ok(0);
        }
        let mut changed = 0;
        for (statement, days) in [(&self.merge, days(USAGE_DAYS_OPEN)), (&self.delete, days(USAGE_DAYS_KEPT))]
        {
            let parameters: [Parameter<'_>; 2] = [(&days, Type::INT4), (&batch, Type::INT8)];
            changed += transaction.execute_typed(statement, &parameters).await?;
        }
        Ok(changed)
    }
}

fn days(number: u32) -> i32 {
    number.cast_signed()
}

fn count(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}
