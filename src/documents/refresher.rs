//! Keeps documents current: polls the backend on a schedule for refreshes, and if so refreshes the
//! documents in use, most used first. Stored documents are served meanwhile.
//!
//! One request suffices to detect a refresh: for the most used document, conditional if the backend allows it. Once a
//! refresh is overdue, a changed document fetched for a request also indicates it. Documents not in use are refreshed
//! on their next request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::stream::{self, StreamExt as _};
use tokio_util::sync::CancellationToken;

use crate::cache::StoredDocument;
use crate::clock::{Clock, Mono};
use crate::routes::DocumentKey;

use super::cached_documents::Documents;
use super::fetcher::Fetcher;
use super::refresh_schedule::DetectedRefresh;

/// Concurrent refreshes. The backend's queue limits how many are sent.
const CONCURRENT_REFRESHES: usize = 4;

/// Refreshes documents in use.
pub struct Refresher {
    documents: Arc<Documents>,
    fetcher: Arc<Fetcher>,
    clock: Clock,
    is_active: AtomicBool,
}

/// Marks the refresher as active until it is dropped.
struct ActiveRefresher<'r>(&'r AtomicBool);

impl Refresher {
    /// Refreshes `documents` by `fetcher`.
    pub(super) fn new(documents: Arc<Documents>, fetcher: Arc<Fetcher>, clock: Clock) -> Self {
        Self { documents, fetcher, clock, is_active: AtomicBool::new(false) }
    }

    /// Runs until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let schedule = self.documents.schedule();
        let keep_current = async {
            loop {
                let next = schedule.begun().await.next();
                let seen = tokio::select! {
                    biased;
                    seen = schedule.next_detected() => Some(seen),
                    () = self.clock.sleep_until(next) => None,
                };
                let _active = self.activate();
                match seen {
                    Some(seen) => self.follow(seen).await,
                    None => self.probe().await,
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = keep_current => {}
        }
    }

    fn activate(&self) -> ActiveRefresher<'_> {
        self.is_active.store(true, Ordering::Release);
        ActiveRefresher(&self.is_active)
    }

    /// Whether it is polling the backend or refreshing documents. For tests.
    pub fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Acquire)
    }

    /// Asks the backend once whether it has refreshed.
    async fn probe(&self) {
        let schedule = self.documents.schedule();
        let in_use = self.blocking(|documents| documents.in_use().into_iter().next()).await;
        let Some((key, before)) = in_use.flatten() else {
            // No document is in use: the next request refreshes its document.
            let now = self.clock.now().mono;
            return schedule.step(|interval| interval.not_refreshed(now));
        };
        let after = self.fetcher.revalidate(&key).await;
        let at = self.clock.now().mono;
        match after {
            Some(stored) if !stored.document.has_same_data(&before.document) => {
                self.follow(DetectedRefresh { document: key, stored, at }).await;
            }
            after => schedule.step(|interval| match after.as_ref().map(|after| after.due) {
                // The backend states its next refresh.
                Some(later) if later > interval.expected().max(at) => interval.refreshed(later, at),
                Some(_) | None => interval.not_refreshed(at),
            }),
        }
    }

    /// After a refresh of the backend: documents confirmed before are outdated, and those in use are refreshed.
    async fn follow(&self, DetectedRefresh { document, stored, at }: DetectedRefresh) {
        self.fetcher.outdate(at);
        let cadence = self.documents.retention().cadence;
        let expected = if stored.due > at { stored.due } else { at.plus(cadence) };
        self.documents.schedule().step(|interval| interval.refreshed(expected, at));
        // It was fetched and dated before the refresh was detected. Its record on disk passes the refresh on to the
        // next process.
        self.documents.replace(&document, &stored, stored.current(at, expected));
        tracing::debug!(%document, "backend refresh detected");
        self.refresh_documents_in_use(at).await;
    }

    /// Refreshes documents after the operator announced an early refresh of the backend. The next expected refresh is
    /// unchanged.
    pub async fn follow_an_early_refresh(&self) {
        let at = self.clock.now().mono;
        self.fetcher.outdate(at);
        self.refresh_documents_in_use(at).await;
    }

    async fn refresh_documents_in_use(&self, refreshed_at: Mono) {
        let in_use = self.blocking(|documents| {
            let in_use = documents.in_use();
            documents.decay_uses();
            in_use
        });
        let in_use = in_use.await.unwrap_or_default().into_iter();
        let outdated = in_use.filter(|(_, stored)| stored.confirmed < refreshed_at);
        let refresh = |(key, _): (DocumentKey, Arc<StoredDocument>)| async move {
            drop(self.fetcher.revalidate(&key).await);
        };
        stream::iter(outdated).for_each_concurrent(CONCURRENT_REFRESHES, refresh).await;
    }

    /// Visits every document on a blocking thread. `None` if that panicked.
    async fn blocking<T: Send + 'static>(
        &self,
        task: impl FnOnce(&Documents) -> T + Send + 'static,
    ) -> Option<T> {
        let documents = Arc::clone(&self.documents);
        let result = tokio::task::spawn_blocking(move || task(&documents)).await;
        result.inspect_err(|error| tracing::error!(%error, "background task on the documents panicked")).ok()
    }
}

impl Drop for ActiveRefresher<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
