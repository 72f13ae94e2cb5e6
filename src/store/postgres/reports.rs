//! Reports of gateways to the database, for information: their status, the units that they delivered, and the
//! requests that they answered.

use super::PostgresStore;
use crate::store::{
    NodeList, NodeRegistry, NodeStatus, RequestList, RequestQuery, RequestStore, RequestTotal, StoreFuture,
    UsageList, UsageQuery, UsageStore, UsageTotal,
};

/// Operations named in error messages.
const USAGE: &str = "read usage";
const RECORD: &str = "record usage";
const REQUESTS: &str = "read requests";
const RECORD_REQUESTS: &str = "record requests";
const NODES: &str = "read the gateways";
const REPORT: &str = "report this gateway";

impl UsageStore for PostgresStore {
    fn record_usage(&self, node: u64, totals: Vec<UsageTotal>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let work =
                async |client: &mut tokio_postgres::Client| self.usage.record(client, node, &totals).await;
            Ok(self.connection.run(RECORD, work).await?)
        })
    }

    fn usage(&self, query: UsageQuery) -> StoreFuture<'_, UsageList> {
        Box::pin(async move {
            let work = async |client: &mut tokio_postgres::Client| self.usage.read(client, &query).await;
            Ok(self.connection.run(USAGE, work).await?)
        })
    }
}

impl RequestStore for PostgresStore {
    fn record_requests(&self, node: u64, totals: Vec<RequestTotal>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let work =
                async |client: &mut tokio_postgres::Client| self.requests.record(client, node, &totals).await;
            Ok(self.connection.run(RECORD_REQUESTS, work).await?)
        })
    }

    fn requests(&self, query: RequestQuery) -> StoreFuture<'_, RequestList> {
        Box::pin(async move {
            let work = async |client: &mut tokio_postgres::Client| self.requests.read(client, &query).await;
            Ok(self.connection.run(REQUESTS, work).await?)
        })
    }
}

impl NodeRegistry for PostgresStore {
    fn report_node(&self, status: NodeStatus) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let work = async |client: &mut tokio_postgres::Client| self.nodes.report(client, &status).await;
            Ok(self.connection.run(REPORT, work).await?)
        })
    }

    fn remove_node(&self, node: u64) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let work = async |client: &mut tokio_postgres::Client| self.nodes.remove(client, node).await;
            Ok(self.connection.run(REPORT, work).await?)
        })
    }

    fn nodes(&self) -> StoreFuture<'_, NodeList> {
        Box::pin(async move {
            let work = async |client: &mut tokio_postgres::Client| self.nodes.list(client).await;
            Ok(self.connection.run(NODES, work).await?)
        })
    }
}
