//! Shared documents in the database. The statements are in `document_statements`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_postgres::Client;

use super::PostgresStore;
use super::connection::SchemaName;
use super::document_statements::DocumentStatements;
use super::link::DatabaseLink;
use crate::clock::{Clock, Mono, Wall};
use crate::store::{
    AgreedRefresh, DocumentSharing, EngineClock, Publication, SharedDocumentState, SharedDocuments,
    StoreError, StoreFuture,
};

/// The documents of all backends. Neither keys nor leases wait for them, and claims do not wait for contents.
pub(super) struct DocumentDatabase {
    statements: DocumentStatements,
    /// For everything but contents.
    states: DatabaseLink,
    contents: DatabaseLink,
}

/// The documents of one backend, for one gateway.
struct PostgresDocuments {
    store: Arc<PostgresStore>,
    scope: String,
    node: u64,
}

const STATE: &str = "read the state of a shared document";
const CLAIM: &str = "claim a shared document";
const CONTENT: &str = "read a shared document";
const PUBLISH: &str = "publish a shared document";
const RELEASE: &str = "release a shared document";
const WITHDRAW: &str = "withdraw shared documents";
const AGREE: &str = "agree on a refresh";
const REFRESH: &str = "read the newest refresh";

impl DocumentDatabase {
    pub(super) fn new(schema: &SchemaName, link: impl Fn() -> DatabaseLink) -> Self {
        Self { statements: DocumentStatements::new(schema), states: link(), contents: link() }
    }
}

impl DocumentSharing for PostgresStore {
    fn shared_documents(self: Arc<Self>, scope: String, node: u64) -> Option<Arc<dyn SharedDocuments>> {
        Some(Arc::new(PostgresDocuments { store: self, scope, node }))
    }
}

impl PostgresDocuments {
    fn database(&self) -> &DocumentDatabase {
        &self.store.documents
    }

    async fn read_state(&self, name: &str) -> Result<SharedDocumentState, StoreError> {
        let DocumentDatabase { statements, states, .. } = self.database();
        let work = async |client: &mut Client| {
            let call = TimedCall::start(&self.store.clock);
            let row = statements.state(client, &self.scope, name).await?;
            Ok((call.end(row.at), row))
        };
        let (clock, row) = states.run(STATE, work).await?;
        Ok(SharedDocumentState {
            number: row.number,
            claim: row.claim,
            published: row.published,
            refresh: row.refresh,
            clock,
        })
    }

    async fn take(
        &self,
        name: &str,
        after: u64,
        duration: Duration,
    ) -> Result<Option<(u64, EngineClock)>, StoreError> {
        let DocumentDatabase { statements, states, .. } = self.database();
        let work = async |client: &mut Client| {
            let call = TimedCall::start(&self.store.clock);
            let document = (self.scope.as_str(), name);
            let claimed = statements.claim(client, document, after, self.node, duration).await?;
            Ok(claimed.map(|(number, at)| (number, call.end(at))))
        };
        Ok(states.run(CLAIM, work).await?)
    }
}

impl SharedDocuments for PostgresDocuments {
    fn state(&self, name: &str) -> StoreFuture<'_, SharedDocumentState> {
        let name = name.to_owned();
        Box::pin(async move { self.read_state(&name).await })
    }

    fn claim(
        &self,
        name: &str,
        after: u64,
        duration: Duration,
    ) -> StoreFuture<'_, Option<(u64, EngineClock)>> {
        let name = name.to_owned();
        Box::pin(async move { self.take(&name, after, duration).await })
    }

    fn content(&self, name: &str, number: u64) -> StoreFuture<'_, Option<Bytes>> {
        let name = name.to_owned();
        Box::pin(async move {
            let DocumentDatabase { statements, contents, .. } = self.database();
            let work =
                async |client: &mut Client| statements.content(client, &self.scope, &name, number).await;
            Ok(contents.run(CONTENT, work).await?)
        })
    }

    fn publish(&self, name: &str, publication: Publication) -> StoreFuture<'_, bool> {
        let name = name.to_owned();
        Box::pin(async move {
            let DocumentDatabase { statements, states, contents } = self.database();
            let link = if publication.content.is_some() { contents } else { states };
            let work = async |client: &mut Client| {
                statements.publish(client, &self.scope, &name, &publication).await
            };
            Ok(link.run(PUBLISH, work).await?)
        })
    }

    fn release(&self, name: &str, number: u64, hold_off: Option<Duration>) -> StoreFuture<'_, ()> {
        let name = name.to_owned();
        Box::pin(async move {
            let DocumentDatabase { statements, states, .. } = self.database();
            let work = async |client: &mut Client| {
                statements.release(client, (&self.scope, &name), number, hold_off).await
            };
            Ok(states.run(RELEASE, work).await?)
        })
    }

    fn withdraw(&self, names: Vec<String>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let DocumentDatabase { statements, states, .. } = self.database();
            let work = async |client: &mut Client| statements.withdraw(client, &self.scope, &names).await;
            Ok(states.run(WITHDRAW, work).await?)
        })
    }

    fn agree(
        &self,
        refresh: AgreedRefresh,
        same_since: Wall,
        revealed_by: Option<(String, u64)>,
    ) -> StoreFuture<'_, AgreedRefresh> {
        Box::pin(async move {
            let DocumentDatabase { statements, states, .. } = self.database();
            let work = async |client: &mut Client| {
                statements.agree(client, &self.scope, refresh, same_since, revealed_by.as_ref()).await
            };
            Ok(states.run(AGREE, work).await?)
        })
    }

    fn refresh(&self) -> StoreFuture<'_, (Option<AgreedRefresh>, EngineClock)> {
        Box::pin(async move {
            let DocumentDatabase { statements, states, .. } = self.database();
            let work = async |client: &mut Client| {
                let call = TimedCall::start(&self.store.clock);
                let (refresh, at) = statements.refresh(client, &self.scope).await?;
                Ok((refresh, call.end(at)))
            };
            Ok(states.run(REFRESH, work).await?)
        })
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
