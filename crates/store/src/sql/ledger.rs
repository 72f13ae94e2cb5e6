//! The ledger of both engines.

use super::{
    file_ledger, grace_shares, outdated,
    store::{
        Access::{Change, Erase, Read, Write},
        Store,
    },
};
use crate::{HeldGraceShare, Ledger, LedgerExchange, LedgerExchangeReply, StoreFuture};
use scoregate_base::{
    clock::Day,
    limits::{GraceClaim, GraceShare},
};

impl Ledger for Store {
    fn day(&self) -> StoreFuture<'_, Option<Day>> {
        Box::pin(self.run(Read, "read the current day", async |tables| {
            tables.today().await
        }))
    }

    fn exchange(&self, exchange: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply> {
        if let Some(database) = self.database() {
            return Box::pin(database.ledger.exchange(exchange));
        }
        let doing = "exchange ledger reports";
        Box::pin(self.run(Change, doing, async move |tables| {
            file_ledger::exchange(tables, &exchange).await
        }))
    }

    fn claim_grace(&self, claim: GraceClaim) -> StoreFuture<'_, Option<GraceShare>> {
        Box::pin(self.run(Change, "register for grace", async move |tables| {
            grace_shares::claim(tables, &claim).await
        }))
    }

    fn others_hold_grace(&self, day: Day, node: u64) -> StoreFuture<'_, bool> {
        let doing = "read shares of grace";
        Box::pin(self.run(Read, doing, async move |tables| {
            grace_shares::others_hold(tables, day, node).await
        }))
    }

    fn return_grace(&self, share: HeldGraceShare) -> StoreFuture<'_, ()> {
        Box::pin(self.run(Write, "return grace", async move |tables| {
            grace_shares::give_back(tables, &share).await
        }))
    }

    fn refusal(&self) -> StoreFuture<'_, Option<String>> {
        Box::pin(self.refusal_to_serve())
    }

    fn delete_outdated(&self) -> StoreFuture<'_, u64> {
        Box::pin(self.run(Erase, "delete outdated records", async |tables| {
            outdated::delete(tables).await
        }))
    }
}
