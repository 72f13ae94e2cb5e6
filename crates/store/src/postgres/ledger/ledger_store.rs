//! The ledger and the health of the database.

use crate::postgres::connection::open_failure::OpenFailure;
use crate::postgres::connection::schema_client::SchemaClient;
use crate::postgres::ledger::day_ledger;
use crate::postgres::ledger::grace_shares;
use crate::postgres::ledger::minutes;
use crate::postgres::ledger::outdated;
use crate::postgres::postgres_store::PostgresStore;
use crate::postgres::reports::inspect;
use crate::{
    DatabaseStatus, ExchangeCounts, HeldGraceShare, Ledger, LedgerExchange, LedgerExchangeReply, StoreFuture,
    StoreHealth,
};
use scoregate_base::clock::Day;
use scoregate_base::keys::ApplicationId;
use scoregate_base::limits::{GraceClaim, GraceShare};

/// An operation named in error messages.
const GRACE: &str = "change shares of grace";

impl Ledger for PostgresStore {
    fn refusal(&self) -> StoreFuture<'_, Option<String>> {
        Box::pin(async move {
            match Box::pin(self.connect_to_serve()).await {
                Ok(()) => Ok(None),
                Err(OpenFailure::Unreachable(error)) => Err(error),
                Err(OpenFailure::Refused(error) | OpenFailure::UnusableTables(error)) => {
                    Ok(Some(error.to_string()))
                }
            }
        })
    }

    fn day(&self) -> StoreFuture<'_, Option<Day>> {
        Box::pin(self.connection.run("read the current day", async |client| day_ledger::day(client).await))
    }

    fn exchange(&self, exchange: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply> {
        Box::pin(self.ledger.exchange(exchange))
    }

    fn claim_grace(&self, claim: GraceClaim) -> StoreFuture<'_, Option<GraceShare>> {
        let work = async move |client: SchemaClient<'_>| grace_shares::claim(client, &claim).await;
        Box::pin(self.connection.change(GRACE, work))
    }

    fn return_grace(&self, share: HeldGraceShare) -> StoreFuture<'_, ()> {
        Box::pin(
            self.connection.run(GRACE, async move |client| grace_shares::give_back(client, &share).await),
        )
    }

    fn recalled(&self, node: u64) -> StoreFuture<'_, Vec<ApplicationId>> {
        let doing = "read recalled shares";
        Box::pin(self.connection.run(doing, async move |client| minutes::recalled(client, node).await))
    }

    fn delete_outdated(&self) -> StoreFuture<'_, u64> {
        let work = async |client: SchemaClient<'_>| outdated::delete(client).await;
        Box::pin(self.connection.change("delete outdated records", work))
    }
}

impl StoreHealth for PostgresStore {
    fn damage(&self) -> Option<String> {
        None
    }

    fn missing_or_replaced(&self) -> Option<String> {
        None
    }

    fn database_status(&self) -> StoreFuture<'_, Option<DatabaseStatus>> {
        let work = async |client: SchemaClient<'_>| inspect::status(client).await.map(Some);
        Box::pin(self.connection.run("read its state", work))
    }

    fn exchange_counts(&self) -> ExchangeCounts {
        self.ledger.counts()
    }
}
