//! The ledger and the health of the database.

use crate::nodes::LIVE;
use crate::postgres::connection::hosts::ConnectionFault;
use crate::postgres::connection::open_failure::OpenFailure;
use crate::postgres::connection::schema_client::SchemaClient;
use crate::postgres::ledger::outdated;
use crate::postgres::postgres_store::PostgresStore;
use crate::postgres::reports::inspect;
use crate::sql::grace_shares;
use crate::sql::tables::{SqlField, SqlTables as _};
use crate::{
    DatabaseStatus, ExchangeCounts, HeldGraceShare, Ledger, LedgerExchange, LedgerExchangeReply,
    StoreFuture, StoreHealth,
};
use scoregate_base::clock::Day;
use scoregate_base::limits::{GraceClaim, GraceShare};

/// An operation named in error messages.
const GRACE: &str = "change shares of grace";

const OTHER_HOLDERS: &str = "
SELECT node FROM {schema}.grace_shares JOIN {schema}.nodes USING (node)
WHERE day = $1::text::date AND node <> $2 AND last_seen_at > extract(epoch FROM clock_timestamp()) * 1000 - $3::int8";

impl Ledger for PostgresStore {
    fn refusal(&self) -> StoreFuture<'_, Option<String>> {
        Box::pin(async move {
            match Box::pin(self.connect_to_serve()).await {
                Ok(()) => Ok(None),
                Err(OpenFailure {
                    kind: ConnectionFault::Unreachable,
                    error,
                }) => Err(error),
                Err(OpenFailure { error, .. }) => Ok(Some(error.to_string())),
            }
        })
    }

    fn day(&self) -> StoreFuture<'_, Option<Day>> {
        Box::pin(
            self.connection
                .run("read the current day", async |client| client.today().await),
        )
    }

    fn exchange(&self, exchange: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply> {
        Box::pin(self.ledger.exchange(exchange))
    }

    fn claim_grace(&self, claim: GraceClaim) -> StoreFuture<'_, Option<GraceShare>> {
        let work = async move |client: SchemaClient<'_>| grace_shares::claim(client, &claim).await;
        Box::pin(self.connection.change(GRACE, work))
    }

    fn others_hold_grace(&self, day: Day, node: u64) -> StoreFuture<'_, bool> {
        let work = async move |client: SchemaClient<'_>| {
            let live = i64::try_from(LIVE.as_millis()).unwrap_or(i64::MAX);
            let day = day.to_string();
            let values = [
                SqlField::Text(&day),
                SqlField::Number(node.cast_signed()),
                SqlField::Number(live),
            ];
            let others = client.list(OTHER_HOLDERS, &values, |row| row.signed("node").map(Some));
            others.await.map(|found| !found.is_empty())
        };
        Box::pin(self.connection.run(GRACE, work))
    }

    fn return_grace(&self, share: HeldGraceShare) -> StoreFuture<'_, ()> {
        let work =
            async move |client: SchemaClient<'_>| grace_shares::give_back(client, &share).await;
        Box::pin(self.connection.run(GRACE, work))
    }

    fn delete_outdated(&self) -> StoreFuture<'_, u64> {
        let work = async |client: SchemaClient<'_>| outdated::delete(client).await;
        Box::pin(self.connection.change("delete outdated records", work))
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
