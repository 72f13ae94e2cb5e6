//! The health of the database.

use crate::postgres::connection::hosts::ConnectionFault;
use crate::postgres::connection::open_failure::OpenFailure;
use crate::postgres::connection::schema_client::SchemaClient;
use crate::postgres::postgres_store::PostgresStore;
use crate::postgres::reports::inspect;
use crate::{DatabaseStatus, ExchangeCounts, StoreFuture, StoreHealth, StoreResult};

impl PostgresStore {
    /// Connects as far as requests of callers need it. Returns why a server that answers refuses this gateway.
    pub(crate) async fn refusal_to_serve(&self) -> StoreResult<Option<String>> {
        match Box::pin(self.connect_to_serve()).await {
            Ok(()) => Ok(None),
            Err(OpenFailure {
                kind: ConnectionFault::Unreachable,
                error,
            }) => Err(error),
            Err(OpenFailure { error, .. }) => Ok(Some(error.to_string())),
        }
    }
}

impl StoreHealth for PostgresStore {
    fn database_status(&self) -> StoreFuture<'_, Option<DatabaseStatus>> {
        let work = async |client: SchemaClient<'_>| inspect::status(client).await.map(Some);
        Box::pin(self.connection.run("read its state", work))
    }

    fn exchange_counts(&self) -> ExchangeCounts {
        self.ledger.counts()
    }
}
