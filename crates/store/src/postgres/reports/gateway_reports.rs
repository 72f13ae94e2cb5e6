//! Reports of gateways to the database, for information: their status, the units that they delivered, the
//! requests that they answered, and evidence of use. Times are those of the server's clock.

use tokio_postgres::Row;

use crate::postgres::connection::schema_client::{Parameter, SchemaClient, SqlResult};
use crate::postgres::postgres_store::PostgresStore;
use crate::postgres::reports::daily_totals;
use crate::sql::daily_totals::{REQUESTS, USAGE};
use crate::sql::evidence;
use crate::sql::tables::SqlRow as _;
use crate::stored::{millis, stored};
use crate::{
    DayRecord, EvidenceQuery, EvidenceStore, HourRecord, NodeList, NodeRegistry, NodeStatus, RequestList,
    RequestOutcome, RequestQuery, RequestStore, RequestTotal, StoreFuture, UsageList, UsageQuery, UsageStore,
    UsageTotal,
};
use scoregate_base::clock::Day;

/// An operation named in error messages.
const REPORT: &str = "report this gateway";

const READ_USAGE: &str = "
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

/// Days one by one, so that both tables are searched by day and application.
const READ_REQUESTS: &str = "
SELECT day::text, endpoint, outcome, sum(requests)::int8 AS requests FROM (
    SELECT day, endpoint, outcome, requests FROM {schema}.request_days
    WHERE day = ANY ($1::text[]::date[]) AND application = $2
    UNION ALL
    SELECT day, endpoint, outcome, requests FROM {schema}.request_nodes
    WHERE day = ANY ($1::text[]::date[]) AND application = $2
) r
GROUP BY r.day, endpoint, outcome ORDER BY r.day, endpoint, outcome";

const REPORT_NODE: &str = "
INSERT INTO {schema}.nodes (node, name, version, started_at, units_held, usage_recorded_at, last_seen_at)
VALUES ($1, $2, $3, $4, $5, $6, (extract(epoch FROM clock_timestamp()) * 1000)::int8)
ON CONFLICT (node) DO UPDATE SET name = excluded.name, version = excluded.version, started_at = excluded.started_at,
    units_held = excluded.units_held, usage_recorded_at = excluded.usage_recorded_at, last_seen_at = excluded.last_seen_at";

const REMOVE_NODE: &str = "DELETE FROM {schema}.nodes WHERE node = $1";

/// A row without a node if there is none, for the clock.
const LIST_NODES: &str = "
SELECT c.at, n.node, n.name, n.version, n.started_at, n.last_seen_at, n.units_held, n.usage_recorded_at
FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8 AS at) c
LEFT JOIN {schema}.nodes n ON true
ORDER BY n.started_at, n.node";

impl UsageStore for PostgresStore {
    fn record_usage(&self, node: u64, totals: Vec<UsageTotal>) -> StoreFuture<'_, ()> {
        let text = |part: fn(&UsageTotal) -> String| totals.iter().map(part).collect::<Vec<String>>();
        let key = [text(|total| total.day.to_string()), text(|total| total.application.to_string())];
        let units: Vec<i64> = totals.iter().map(|total| stored(total.units)).collect();
        Box::pin(self.connection.change("record usage", async move |client| {
            daily_totals::record(client, &USAGE, node, &key, &units).await
        }))
    }

    fn usage(&self, query: UsageQuery) -> StoreFuture<'_, UsageList> {
        Box::pin(self.connection.run("read usage", async move |client| {
            let names = |ids: &Vec<_>| ids.iter().map(ToString::to_string).collect::<Vec<String>>();
            let (first, last) = (query.first.to_string(), query.last.to_string());
            let (applications, limit) = (query.applications.as_ref().map(names), stored(query.limit));
            let mut usage = UsageList::default();
            for row in client.query(READ_USAGE, &[&first, &last, &applications, &limit]).await? {
                (usage.matching, usage.units) = (row.number("matching")?, row.number("total")?);
                let (day, application): (&str, &str) = (row.try_get("day")?, row.try_get("application")?);
                // The engine writes valid days and ids only.
                if let (Some(day), Ok(application)) = (Day::parse(day), application.parse()) {
                    usage.totals.push(UsageTotal { day, application, units: row.number("units")? });
                }
            }
            Ok(usage)
        }))
    }
}

impl RequestStore for PostgresStore {
    fn record_requests(&self, node: u64, totals: Vec<RequestTotal>) -> StoreFuture<'_, ()> {
        let text = |part: fn(&RequestTotal) -> String| totals.iter().map(part).collect::<Vec<String>>();
        let key = [
            text(|total| total.day.to_string()),
            text(|total| total.application.to_string()),
            text(|total| total.endpoint.to_string()),
            text(|total| total.outcome.word().into()),
        ];
        let requests: Vec<i64> = totals.iter().map(|total| stored(total.requests)).collect();
        Box::pin(self.connection.change("record requests", async move |client| {
            daily_totals::record(client, &REQUESTS, node, &key, &requests).await
        }))
    }

    fn requests(&self, query: RequestQuery) -> StoreFuture<'_, RequestList> {
        Box::pin(self.connection.run("read requests", async move |client| {
            let days: Vec<String> = query.days().map(|day| day.to_string()).collect();
            let application = query.application;
            let mut list = RequestList::default();
            for row in client.query(READ_REQUESTS, &[&days, &application.to_string()]).await? {
                let (day, outcome): (&str, &str) = (row.try_get("day")?, row.try_get("outcome")?);
                // A newer release may have written other outcomes.
                if let (Some(day), Some(outcome)) = (Day::parse(day), RequestOutcome::parse(outcome)) {
                    let (endpoint, requests) =
                        (row.try_get::<_, String>("endpoint")?.into(), row.number("requests")?);
                    list.totals.push(RequestTotal { day, application, endpoint, outcome, requests });
                }
            }
            Ok(list)
        }))
    }
}

impl EvidenceStore for PostgresStore {
    fn sketch_key(&self, day: Day, proposed: u64) -> StoreFuture<'_, u64> {
        let work = async move |client: SchemaClient<'_>| evidence::sketch_key(client, day, proposed).await;
        Box::pin(self.connection.run("choose a key", work))
    }

    fn record_evidence(&self, node: u64, hours: Vec<HourRecord>) -> StoreFuture<'_, ()> {
        let work = async move |client: SchemaClient<'_>| evidence::record(client, node, &hours).await;
        Box::pin(self.connection.change("record evidence", work))
    }

    fn merge_evidence(&self, until: u32, catalogue: u16, most: usize) -> StoreFuture<'_, bool> {
        let work =
            async move |client: SchemaClient<'_>| evidence::merge(client, until, catalogue, most).await;
        Box::pin(self.connection.change("merge evidence", work))
    }

    fn evidence(&self, query: EvidenceQuery) -> StoreFuture<'_, Vec<DayRecord>> {
        let work = async move |client: SchemaClient<'_>| evidence::days(client, &query).await;
        Box::pin(self.connection.run("read evidence", work))
    }
}

impl NodeRegistry for PostgresStore {
    fn report_node(&self, status: NodeStatus) -> StoreFuture<'_, ()> {
        Box::pin(self.connection.run(REPORT, async move |client| {
            let NodeStatus { node, name, version, started_at, units_held, usage_recorded_at, .. } = &status;
            let [node, units] = [node, units_held].map(|number| number.cast_signed());
            let [started, recorded] = [*started_at, *usage_recorded_at].map(millis);
            let values: [&dyn Parameter; 6] = [&node, name, version, &started, &units, &recorded];
            client.execute(REPORT_NODE, &values).await.map(drop)
        }))
    }

    fn remove_node(&self, node: u64) -> StoreFuture<'_, ()> {
        Box::pin(self.connection.run(REPORT, async move |client| {
            client.execute(REMOVE_NODE, &[&node.cast_signed()]).await.map(drop)
        }))
    }

    fn nodes(&self) -> StoreFuture<'_, NodeList> {
        Box::pin(self.connection.run("read the gateways", async |client| {
            let mut list = NodeList::default();
            for row in client.query(LIST_NODES, &[]).await? {
                list.clock = Some(row.time("at")?);
                list.nodes.extend(node_status(&row)?);
            }
            Ok(list)
        }))
    }
}

fn node_status(row: &Row) -> SqlResult<Option<NodeStatus>> {
    let Some(node) = row.try_get::<_, Option<i64>>("node")? else { return Ok(None) };
    Ok(Some(NodeStatus {
        node: node.cast_unsigned(),
        name: row.try_get("name")?,
        version: row.try_get("version")?,
        started_at: row.time("started_at")?,
        last_seen_at: row.time("last_seen_at")?,
        units_held: row.number("units_held")?,
        usage_recorded_at: row.time("usage_recorded_at")?,
    }))
}
