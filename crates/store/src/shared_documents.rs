//! Documents that gateways share: one gateway fetches a document, and the others read it from the store.
//!
//! This file contains only data and a trait. The rules are in `documents::shared_fetch`. Times are from the engine's
//! clock, so that the clocks of gateways need not agree. Only the date of the next refresh comes from the backend.

use std::time::Duration;

use bytes::Bytes;

use scoregate_base::clock::{Mono, Wall};

use super::StoreFuture;

/// A reading of the engine's clock, with the times of request and reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineClock {
    /// The reading.
    pub at: Wall,
    /// When the call was sent.
    pub sent: Mono,
    /// When its reply was received.
    pub received: Mono,
}

/// The state of the exclusive right to fetch a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimState {
    /// Nobody fetches the document.
    Free,
    /// No gateway is fetching the document. The last fetch failed recently, and the next is allowed after this time.
    Failed(Duration),
    /// A gateway is fetching the document, for at most this time.
    Held(Duration),
}

/// A published document, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedDocument {
    /// The number of the claim that published the content.
    pub number: u64,
    /// When the request that last confirmed the document was sent, according to the engine's clock. The actual time may
    /// be later, but never earlier.
    pub confirmed: Wall,
    /// When the document is due for a refresh.
    pub due: Wall,
    /// All other metadata, encoded by the gateway.
    pub label: String,
}

/// A backend refresh on which the gateways agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgreedRefresh {
    /// When the refresh was detected, according to the engine's clock.
    pub detected: Wall,
    /// When the next refresh is expected.
    pub expected: Wall,
}

/// The state of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedDocumentState {
    /// The number of the newest claim; zero if there is none.
    pub number: u64,
    /// The state of the claim.
    pub claim: ClaimState,
    /// The published document.
    pub published: Option<PublishedDocument>,
    /// The newest refresh of the backend.
    pub refresh: Option<AgreedRefresh>,
    /// The engine's clock.
    pub clock: EngineClock,
}

/// A document to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The number of the claim.
    pub number: u64,
    /// The new content. `None` if the published content was confirmed.
    pub content: Option<Bytes>,
    /// As in [`PublishedDocument`].
    pub confirmed: Wall,
    /// As in [`PublishedDocument`].
    pub due: Wall,
    /// As in [`PublishedDocument`].
    pub label: String,
}

/// The documents of one backend that gateways share.
///
/// The claim numbers of a document only increase and may have gaps. A claim ends with its publication, its release, or its
/// deadline. A publication under a claim that is not the newest has no effect. A publication after the deadline raises the
/// number.
///
/// A document is confirmed based on the state before the claim. So `after` must be the number of a state without a held
/// claim: no other content has been published since then.
pub trait SharedDocuments: Send + Sync + 'static {
    /// The state of a document. The claim number is zero if the document was never claimed.
    fn state(&self, name: &str) -> StoreFuture<'_, SharedDocumentState>;

    /// Claims a document for at most `duration`, unless a claim is held or is newer than `after`. Returns the claim's
    /// number and the engine's clock.
    fn claim(
        &self,
        name: &str,
        after: u64,
        duration: Duration,
    ) -> StoreFuture<'_, Option<(u64, EngineClock)>>;

    /// The content of a published document. `None` if it was lost or replaced.
    fn content(&self, name: &str, number: u64) -> StoreFuture<'_, Option<Bytes>>;

    /// Publishes a document under a claim, and ends the claim. Returns `false` if there is a newer claim, or if the
    /// content to be confirmed is missing; in the second case the claim continues.
    fn publish(&self, name: &str, publication: Publication) -> StoreFuture<'_, bool>;

    /// Ends a claim without publishing. After a failure, the next claim is allowed after `hold_off`.
    fn release(&self, name: &str, number: u64, hold_off: Option<Duration>) -> StoreFuture<'_, ()>;

    /// Removes published documents. Claims in flight can no longer publish.
    fn withdraw(&self, names: Vec<String>) -> StoreFuture<'_, ()>;

    /// Agrees on a refresh that this gateway detected. If a stored refresh was detected at `same_since` or later, it is the same
    /// refresh and is kept. Otherwise this one is stored. Returns the stored refresh. `revealed_by` is the
    /// document that revealed it: its name and the number of its content. The document counts as confirmed at the
    /// refresh and is due at the next one.
    fn agree(
        &self,
        refresh: AgreedRefresh,
        same_since: Wall,
        revealed_by: Option<(String, u64)>,
    ) -> StoreFuture<'_, AgreedRefresh>;

    /// The newest refresh, and the engine's clock.
    fn refresh(&self) -> StoreFuture<'_, (Option<AgreedRefresh>, EngineClock)>;

    /// Waits for a hint that something was published, released, withdrawn or agreed on. A hint wakes all waiting
    /// callers. Hints between the call and the first poll are delivered. Others may be lost.
    fn published(&self) -> StoreFuture<'_, ()>;
}
