//! Shared documents in the database. Neither keys nor leases wait for them, and claims do not wait for contents. The
//! statements are in `document_statements`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::postgres::connection::schema_client::SchemaClient;
use crate::postgres::documents::document_statements;
use crate::postgres::postgres_store::PostgresStore;
use crate::{
    AgreedRefresh, DocumentSharing, EngineClock, Publication, SharedDocumentState, SharedDocuments,
    StoreFuture,
};
use scoregate_base::clock::{Clock, Mono, Wall};

/// The documents of one backend, for one gateway.
struct PostgresDocuments {
    store: Arc<PostgresStore>,
    scope: String,
    node: u64,
}

impl DocumentSharing for PostgresStore {
    fn shared_documents(self: Arc<Self>, scope: String, node: u64) -> Option<Arc<dyn SharedDocuments>> {
        Some(Arc::new(PostgresDocuments { store: self, scope, node }))
    }
}

impl SharedDocuments for PostgresDocuments {
    fn state(&self, name: &str) -> StoreFuture<'_, SharedDocumentState> {
        let name = name.to_owned();
        Box::pin(self.store.documents.run("read the state of a shared document", async move |client| {
            let call = TimedCall::start(&self.store.clock);
            document_statements::state(client, &self.scope, &name, |at| call.end(at)).await
        }))
    }

    fn claim(
        &self,
        name: &str,
        after: u64,
        duration: Duration,
    ) -> StoreFuture<'_, Option<(u64, EngineClock)>> {
        let name = name.to_owned();
        Box::pin(self.store.documents.run("claim a shared document", async move |client| {
            let (call, document) =
                (TimedCall::start(&self.store.clock), (self.scope.as_str(), name.as_str()));
            let claimed = document_statements::claim(client, document, after, self.node, duration).await?;
            Ok(claimed.map(|(number, at)| (number, call.end(at))))
        }))
    }

    fn content(&self, name: &str, number: u64) -> StoreFuture<'_, Option<Bytes>> {
        let name = name.to_owned();
        Box::pin(self.store.contents.run("read a shared document", async move |client| {
            document_statements::content(client, &self.scope, &name, number).await
        }))
    }

    fn publish(&self, name: &str, publication: Publication) -> StoreFuture<'_, bool> {
        let name = name.to_owned();
        let link = if publication.content.is_some() { &self.store.contents } else { &self.store.documents };
        Box::pin(link.run("publish a shared document", async move |client| {
            document_statements::publish(client, &self.scope, &name, &publication).await
        }))
    }

    fn release(&self, name: &str, number: u64, hold_off: Option<Duration>) -> StoreFuture<'_, ()> {
        let name = name.to_owned();
        Box::pin(self.store.documents.run("release a shared document", async move |client| {
            document_statements::release(client, (&self.scope, &name), number, hold_off).await
        }))
    }

    fn withdraw(&self, names: Vec<String>) -> StoreFuture<'_, ()> {
        let work = async move |client: SchemaClient<'_>| {
            document_statements::withdraw(client, &self.scope, &names).await
        };
        Box::pin(self.store.documents.change("withdraw shared documents", work))
    }

    fn agree(
        &self,
        refresh: AgreedRefresh,
        same_since: Wall,
        revealed_by: Option<(String, u64)>,
    ) -> StoreFuture<'_, AgreedRefresh> {
        Box::pin(self.store.documents.run("agree on a refresh", async move |client| {
            document_statements::agree(client, &self.scope, refresh, same_since, revealed_by.as_ref()).await
        }))
    }

    fn refresh(&self) -> StoreFuture<'_, (Option<AgreedRefresh>, EngineClock)> {
        Box::pin(self.store.documents.run("read the newest refresh", async move |client| {
            let call = TimedCall::start(&self.store.clock);
            let (refresh, at) = document_statements::refresh(client, &self.scope).await?;
            Ok((refresh, call.end(at)))
        }))
    }

    fn published(&self) -> StoreFuture<'_, ()> {
        // Before the first poll, so that a hint between this call and the wait counts.
        let hint = self.store.listener().document_hint();
        Box::pin(async move {
            hint.received().await;
            Ok(())
        })
    }
}

/// A statement that reads the server's clock.
struct TimedCall<'c> {
    clock: &'c Clock,
    sent: Mono,
}

impl<'c> TimedCall<'c> {
    fn start(clock: &'c Clock) -> Self {
        Self { clock, sent: clock.mono() }
    }

    fn end(self, at: Wall) -> EngineClock {
        EngineClock { at, sent: self.sent, received: self.clock.mono() }
    }
}
