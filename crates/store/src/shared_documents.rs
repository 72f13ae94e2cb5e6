//! Documents that gateways share: one gateway fetches a document, the others take it from the store.
//!
//! Data and trait only. The rules are in `documents::shared_fetch`. Times are from the engine's clock, so that the clocks of
//! gateways need not agree; the date of the next refresh is the backend's statement.

use std::time::Duration;

use bytes::Bytes;

use scoregate_base::clock::{Mono, Wall};

use super::StoreFuture;

/// A reading of the engine's clock, and when it was requested and received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineClock {
    /// The reading.
    pub at: Wall,
    /// When the call was sent.
    pub sent: Mono,
    /// When its reply was received.
    pub received: Mono,
}

/// The right to fetch a document, as far as someone has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimState {
    /// Nobody fetches the document.
    Free,
    /// Nobody fetches it; the last fetch failed a moment ago, and the next is allowed after this time.
    Failed(Duration),
    /// A gateway fetches it, for at most this time.
    Held(Duration),
}

/// A published document, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedDocument {
    /// The number of the claim that published the content.
    pub number: u64,
    /// When the request that last confirmed it was sent, by the engine's clock. At most that time, never later.
    pub confirmed: Wall,
    /// When its refresh is due.
    pub due: Wall,
    /// Everything else, encoded by the gateway.
    pub label: String,
}

/// A refresh of the backend on which the gateways agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgreedRefresh {
    /// When it was detected, by the engine's clock.
    pub detected: Wall,
    /// The next expected refresh.
    pub expected: Wall,
}

/// The state of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedDocumentState {
    /// The number of the newest claim; zero if there was none.
    pub number: u64,
    /// Whether it is held.
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
    /// The claim.
    pub number: u64,
    /// The new content. `None` if the published one was confirmed.
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
/// Numbers of claims of a document only grow, and not by one. A claim ends with its publication, its release, or its
/// deadline. A publication under any but the newest claim changes nothing; after its deadline it raises the number.
///
/// A document is confirmed on the basis of the state before the claim. So `after` is the number of a state in which the
/// document was not held: then no other content was published since.
pub trait SharedDocuments: Send + Sync + 'static {
    /// The state of a document. One that was never claimed has number zero.
    fn state(&self, name: &str) -> StoreFuture<'_, SharedDocumentState>;

    /// Claims a document for at most `duration`, unless there is a claim newer than `after` or one that is held.
    /// Returns the claim's number and the engine's clock.
    fn claim(
        &self,
        name: &str,
        after: u64,
        duration: Duration,
    ) -> StoreFuture<'_, Option<(u64, EngineClock)>>;

    /// The content of a published document. `None` if it was lost or replaced.
    fn content(&self, name: &str, number: u64) -> StoreFuture<'_, Option<Bytes>>;

    /// Publishes a document under a claim, which ends. Returns `false` if there is a newer claim, or if the content to
    /// be confirmed is missing; in the second case the claim continues.
    fn publish(&self, name: &str, publication: Publication) -> StoreFuture<'_, bool>;

    /// Ends a claim without a publication. After a failure, the next claim is allowed after `hold_off`.
    fn release(&self, name: &str, number: u64, hold_off: Option<Duration>) -> StoreFuture<'_, ()>;

    /// Removes published documents. Claims in flight publish nothing.
    fn withdraw(&self, names: Vec<String>) -> StoreFuture<'_, ()>;

    /// Agrees on a refresh that this gateway detected. If one is stored that was detected at `same_since` or later, it is
    /// the same one and remains; otherwise this one is stored. Returns the stored one. The document that revealed it, by
    /// its name and the number of its content, counts as confirmed at the refresh and is due at the next one.
    fn agree(
        &self,
        refresh: AgreedRefresh,
        same_since: Wall,
        revealed_by: Option<(String, u64)>,
    ) -> StoreFuture<'_, AgreedRefresh>;

    /// The newest refresh, and the engine's clock.
    fn refresh(&self) -> StoreFuture<'_, (Option<AgreedRefresh>, EngineClock)>;

    /// Waits for a hint that something was published, released, withdrawn or agreed. All callers that wait are woken. Hints
    /// between the call and the first poll count; others may be lost.
    fn published(&self) -> StoreFuture<'_, ()>;
}
