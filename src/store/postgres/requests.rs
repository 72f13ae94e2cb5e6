//! Requests by endpoint and outcome: totals of each gateway process, merged once a day is closed for reports.
//!
//! Reports and merges exclude each other by a lock, as those of `usage` do.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Transaction};

use super::connection::{Parameter, SchemaName};
use super::usage::{LOCK_FOR_MERGE, LOCK_FOR_REPORT};
use crate::clock::Day;
use crate::store::requests::REQUEST_DAYS_KEPT;
use crate::store::usage::USAGE_DAYS_OPEN;
use crate::store::{RequestList, RequestOutcome, RequestQuery, RequestTotal};

/// The statements, with the schema's name.
pub(super) struct RequestStatements {
    lock_name: String,
    record: String,
    read: String,
    merge: String,
    delete: String,
}

const RECORD: &str = "
INSERT INTO {schema}.request_nodes AS n (day, application, endpoint, outcome, node, requests)
SELECT r.day, r.application, r.endpoint, r.outcome, $1, r.requests
FROM unnest($2::text[]::date[], $3::text[], $4::text[], $5::text[], $6::int8[])
     AS r (day, application, endpoint, outcome, requests)
JOIN {schema}.calendar c ON r.day > c.day - $7::int4
ORDER BY r.day, r.application, r.endpoint, r.outcome
ON CONFLICT (day, application, endpoint, outcome, node)
DO UPDATE SET requests = excluded.requests WHERE n.requests < excluded.requests";

/// Days one by one, so that both tables are searched by day and application.
const READ: &str = "
SELECT day::text, endpoint, outcome, sum(requests)::int8 AS requests FROM (
    SELECT day, endpoint, outcome, requests FROM {schema}.request_days
    WHERE day = ANY ($1::text[]::date[]) AND application = $2
    UNION ALL
    SELECT day, endpoint, outcome, requests FROM {schema}.request_nodes
    WHERE day = ANY ($1::text[]::date[]) AND application = $2
) r
GROUP BY r.day, endpoint, outcome ORDER BY r.day, endpoint, outcome";

const MERGE: &str = "
WITH due AS (
    SELECT DISTINCT day, application, endpoint, outcome FROM {schema}.request_nodes
    WHERE day <= (SELECT day - $1::int4 FROM {schema}.calendar)
    ORDER BY day, application, endpoint, outcome LIMIT $2
), taken AS (
    DELETE FROM {schema}.request_nodes n USING due
    WHERE (n.day, n.application, n.endpoint, n.outcome) = (due.day, due.application, due.endpoint, due.outcome)
    RETURNING n.day, n.application, n.endpoint, n.outcome, n.requests
)
INSERT INTO {schema}.request_days AS d (day, application, endpoint, outcome, requests)
SELECT day, application, endpoint, outcome, sum(requests)::int8 FROM taken GROUP BY day, application, endpoint, outcome
ON CONFLICT (day, application, endpoint, outcome) DO UPDATE SET requests = d.requests + excluded.requests";

const DELETE: &str = "
DELETE FROM {schema}.request_days WHERE (day, application, endpoint, outcome) IN (
    SELECT day, application, endpoint, outcome FROM {schema}.request_days
    WHERE day <= (SELECT day - $1::int4 FROM {schema}.calendar)
    ORDER BY day, application, endpoint, outcome LIMIT $2)";

impl RequestStatements {
    pub(super) fn new(schema: &SchemaName) -> Self {
        let [record, read, merge, delete] = [RECORD, READ, MERGE, DELETE].map(|text| schema.statement(text));
        Self { lock_name: schema.statement("{schema} requests"), record, read, merge, delete }
    }

    /// Stores totals of a node.
    pub(super) async fn record(
        &self,
        client: &mut Client,
        node: u64,
        totals: &[RequestTotal],
    ) -> Result<(), tokio_postgres::Error> {
        let (node, open) = (node.cast_signed(), USAGE_DAYS_OPEN.cast_signed());
        let text = |part: fn(&RequestTotal) -> String| totals.iter().map(part).collect::<Vec<String>>();
        let (dates, applications) =
            (text(|total| total.day.to_string()), text(|total| total.application.to_string()));
        let endpoints: Vec<&str> = totals.iter().map(|total| total.endpoint.as_ref()).collect();
        let outcomes: Vec<&str> = totals.iter().map(|total| total.outcome.word()).collect();
        let requests: Vec<i64> =
            totals.iter().map(|total| i64::try_from(total.requests).unwrap_or(i64::MAX)).collect();
        let parameters: [Parameter<'_>; 7] = [
            (&node, Type::INT8),
            (&dates, Type::TEXT_ARRAY),
            (&applications, Type::TEXT_ARRAY),
            (&endpoints, Type::TEXT_ARRAY),
            (&outcomes, Type::TEXT_ARRAY),
            (&requests, Type::INT8_ARRAY),
            (&open, Type::INT4),
        ];
        let transaction = client.transaction().await?;
        // A statement of its own: the next one reads the calendar as it is once the lock is held.
        let lock: [Parameter<'_>; 1] = [(&self.lock_name, Type::TEXT)];
        transaction.query_typed(LOCK_FOR_REPORT, &lock).await?;
        transaction.execute_typed(&self.record, &parameters).await?;
        transaction.commit().await
    }

    /// Requests of an application added up over all nodes.
    pub(super) async fn read(
        &self,
        client: &Client,
        query: &RequestQuery,
    ) -> Result<RequestList, tokio_postgres::Error> {
        let days: Vec<String> = query.days().map(|day| day.to_string()).collect();
        let application = query.application.to_string();
        let parameters: [Parameter<'_>; 2] = [(&days, Type::TEXT_ARRAY), (&application, Type::TEXT)];
        let mut list = RequestList::default();
        for row in client.query_typed(&self.read, &parameters).await? {
            let (day, outcome): (&str, &str) = (row.try_get("day")?, row.try_get("outcome")?);
            // A newer release may have written other outcomes.
            if let (Some(day), Some(outcome)) = (Day::parse(day), RequestOutcome::parse(outcome)) {
                list.totals.push(RequestTotal {
                    day,
                    application: query.application,
                    endpoint: row.try_get::<_, String>("endpoint")?.into(),
                    outcome,
                    requests: row.try_get::<_, i64>("requests")?.unsigned_abs(),
                });
            }
        }
        Ok(list)
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
        for (statement, days) in [(&self.merge, USAGE_DAYS_OPEN), (&self.delete, REQUEST_DAYS_KEPT)] {
            let days = days.cast_signed();
            let parameters: [Parameter<'_>; 2] = [(&days, Type::INT4), (&batch, Type::INT8)];
            changed += transaction.execute_typed(statement, &parameters).await?;
        }
        Ok(changed)
    }
}
