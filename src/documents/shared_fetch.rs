//! Takes documents that other gateways fetched, and publishes the documents that this gateway fetched.
//!
//! `fleet_documents` decides whose turn it is. If there is no shared store, every fetch goes to the backend.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::cache::{
    Document, FlightLeader, PublishedVersion, StoredDocument, freshness::overdue_interval,
};
use scoregate_base::{
    clock::{Clock, Mono},
    routes::DocumentKey,
};
use scoregate_store::MirrorRecord;

use super::{
    cached_documents::Documents,
    fleet_decision::{FleetNeed, not_before},
    fleet_documents::{FleetClaim, FleetDocuments, FleetTurn, TakenDocument},
    known_models::KnownModels,
    mirror_record,
};

/// The decision on which gateway fetches a document.
pub enum FetchTurn {
    /// Another gateway fetched the document, which is now stored here.
    Taken(Arc<StoredDocument>),
    /// The fetch of another gateway failed a moment ago.
    Failed,
    /// This gateway fetches the document for all gateways. The previously published document, if any, is stored here.
    Claimed(FleetClaim, Option<Arc<StoredDocument>>),
    /// This gateway fetches the document for itself.
    Alone,
}

/// Shares fetches with other gateways.
pub struct SharedFetch {
    /// `None` if there is no shared store.
    fleet: Option<Arc<FleetDocuments>>,
    documents: Arc<Documents>,
    builders: Arc<Semaphore>,
    clock: Clock,
}

impl SharedFetch {
    pub fn new(
        fleet: Option<Arc<FleetDocuments>>,
        documents: Arc<Documents>,
        builders: Arc<Semaphore>,
        clock: Clock,
    ) -> Self {
        Self {
            fleet,
            documents,
            builders,
            clock,
        }
    }

    /// Waits for this gateway's turn, or takes the document. If `confirmed_since` is given, the document must have been
    /// confirmed at that time or later.
    pub async fn turn<T, N>(
        &self,
        leader: &FlightLeader<T, N>,
        before: Option<&Arc<StoredDocument>>,
        confirmed_since: Option<Mono>,
    ) -> FetchTurn {
        let key = leader.key();
        let Some(fleet) = self
            .fleet
            .as_ref()
            .filter(|_| self.is_shared(key, before.is_some()))
        else {
            return FetchTurn::Alone;
        };
        let name = key.address();
        let mut need = self.need(key, before, confirmed_since);
        let known = before
            .and_then(|before| before.published)
            .map(|version| version.number);
        loop {
            match fleet.turn(&name, &need, known).await {
                FleetTurn::Taken(taken) => {
                    let number = taken.published.number;
                    match self.take(fleet, leader, before, taken).await {
                        Some(stored) => return FetchTurn::Taken(stored),
                        None => need.unusable = Some(number),
                    }
                }
                FleetTurn::Claimed(claim) => {
                    let published = match fleet.published_before(&name, &claim, known).await {
                        Some(published) => self.take(fleet, leader, before, published).await,
                        None => None,
                    };
                    return FetchTurn::Claimed(claim, published);
                }
                FleetTurn::Failed => return FetchTurn::Failed,
                FleetTurn::Alone => return FetchTurn::Alone,
            }
        }
    }

    /// Whether a document may be in the shared store. Documents of models invented by callers must not be.
    fn is_shared(&self, key: &DocumentKey, is_stored: bool) -> bool {
        is_stored
            || key.id.as_ref().is_none_or(|id| {
                KnownModels::newest(&self.documents)
                    .is_some_and(|known| known.lists(id) == Some(true))
            })
    }

    fn need(
        &self,
        key: &DocumentKey,
        before: Option<&Arc<StoredDocument>>,
        confirmed_since: Option<Mono>,
    ) -> FleetNeed {
        let now = self.clock.mono();
        let retention = self.documents.retention();
        FleetNeed {
            follows_backend: retention.lifetime(key.route).follows_the_backend(),
            last_detected: self.documents.schedule().last_detected(),
            due_since: before
                .map(|before| before.due.min(before.revalidate_at))
                .filter(|due| *due <= now),
            confirmed_since,
            overdue_interval: overdue_interval(retention.cadence),
            unusable: None,
        }
    }

    /// Stores a published document. Returns `None` if it is unusable.
    async fn take<T, N>(
        &self,
        fleet: &FleetDocuments,
        leader: &FlightLeader<T, N>,
        before: Option<&Arc<StoredDocument>>,
        taken: TakenDocument,
    ) -> Option<Arc<StoredDocument>> {
        let TakenDocument {
            published,
            content,
            clock,
        } = taken;
        let key = leader.key();
        let now = self.clock.now();
        let document = match (content, before) {
            (Some(content), _) => self.restore(fleet, key, published.label, content).await?,
            (None, before) => before?.document.clone(),
        };
        // Another gateway may have fetched older data from another address of the backend. Older data must not replace
        // newer data.
        if let Some(newer) = self.documents.newer_data(key, document.generated_at()) {
            let stated = document.generated_at().rfc3339();
            tracing::warn!(document = %key, stated, newer = newer.rfc3339(), "a shared document is older than previously received data");
            return None;
        }
        let mut confirmed = not_before(&clock, published.confirmed);
        if let Some(followed) = fleet.followed()
            && published.confirmed >= followed.agreed.detected
        {
            confirmed = confirmed.max(followed.at);
        }
        // The store's clock may be ahead. A document with a confirmation time in the future would stay current after a
        // later refresh.
        let confirmed = confirmed.min(now.mono);
        let due = now.mono_at(published.due);
        let overdue = confirmed.plus(overdue_interval(self.documents.retention().cadence));
        let revalidate_at = if due > now.mono { due } else { overdue };
        let uses = before.map_or(1, |before| before.uses());
        let stored = StoredDocument::restored(document, [due, revalidate_at, confirmed], uses);
        let version = PublishedVersion {
            number: published.number,
            confirmed: published.confirmed,
        };
        Some(
            self.documents
                .adopt(leader, stored.published_as(version), now),
        )
    }

    /// Decodes a document. Compression takes time, so it runs on a blocking thread.
    async fn restore(
        &self,
        fleet: &FleetDocuments,
        key: &DocumentKey,
        label: String,
        content: Bytes,
    ) -> Option<Document> {
        let backend = fleet.backend().to_owned();
        let retention = Arc::clone(self.documents.retention());
        let record = MirrorRecord {
            name: key.address(),
            label,
            content,
        };
        let now = self.clock.now();
        let permit = self.builders.acquire().await.ok()?;
        let restored = tokio::task::spawn_blocking(move || {
            mirror_record::read(&record, &backend, &retention, now)
        })
        .await
        .ok()?;
        drop(permit);
        match restored {
            Ok(restored) => Some(restored.stored.document),
            Err(error) => {
                tracing::warn!(document = %key, %error, "a shared document is unusable");
                None
            }
        }
    }

    /// Publishes a document that this gateway fetched under a claim, and returns it with its version.
    pub async fn publish(
        &self,
        key: &DocumentKey,
        claim: &FleetClaim,
        before: Option<&Arc<StoredDocument>>,
        stored: Arc<StoredDocument>,
    ) -> Arc<StoredDocument> {
        let Some(fleet) = &self.fleet else {
            return stored;
        };
        let name = key.address();
        if !stored.is_cached {
            fleet.release(&name, claim, false).await;
            return stored;
        }
        let now = self.clock.now();
        let refreshed = self.documents.schedule().last_detected();
        let MirrorRecord { label, content, .. } =
            mirror_record::write(key, &stored, refreshed, fleet.backend(), now);
        let has_same_data =
            before.is_some_and(|before| before.document.has_same_data(&stored.document));
        let known = before
            .and_then(|before| before.published)
            .filter(|_| has_same_data);
        let publication =
            claim.publication(content, stored.confirmed, now.wall_at(stored.due), label);
        let version = fleet.publish(&name, claim, publication, known).await;
        match version {
            Some(version) => self.documents.replace_published(key, &stored, version),
            None => stored,
        }
    }

    /// Ends a claim without a document.
    pub async fn release(&self, key: &DocumentKey, claim: &FleetClaim, has_failed: bool) {
        if let Some(fleet) = &self.fleet {
            fleet.release(&key.address(), claim, has_failed).await;
        }
    }
}
