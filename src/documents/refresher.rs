//! Keeps documents current by polling the backend for refreshes on a schedule. After a refresh, the documents in use
//! are fetched, most used first. Until then, stored documents are served.
//!
//! One request for the most used document suffices to detect a refresh. The request is conditional if the backend
//! allows it. Once a refresh is overdue, a changed document that was fetched for a request also indicates it. Documents
//! that are not in use are refreshed on their next request.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::stream::{self, StreamExt as _};
use tokio_util::sync::CancellationToken;

use crate::cache::{PublishedVersion, RefreshInterval, StoredDocument};
use scoregate_base::{
    clock::{Clock, Mono},
    routes::DocumentKey,
};

use super::{
    cached_documents::Documents,
    fetcher::Fetcher,
    fleet_decision::FollowedRefresh,
    fleet_documents::{FleetDocuments, FleetTurn},
    refresh_schedule::DetectedRefresh,
};

/// Number of concurrent refreshes. The backend's queue limits how many requests are sent.
const CONCURRENT_REFRESHES: usize = 4;
/// Interval between attempts to fetch the first document if no request does so.
const FIRST_FETCH_RETRY: Duration = Duration::from_secs(10);

/// Refreshes documents in use.
pub struct Refresher {
    documents: Arc<Documents>,
    fetcher: Arc<Fetcher>,
    /// Other gateways, if there are any.
    fleet: Option<Arc<FleetDocuments>>,
    clock: Clock,
    is_active: AtomicBool,
}

/// Marks the refresher as active until it is dropped.
struct ActiveRefresher<'r>(&'r AtomicBool);

/// An event for the refresher.
enum RefreshEvent {
    /// A refresh that another gateway detected.
    Agreed(FollowedRefresh),
    /// A refresh that a request's fetch detected.
    Detected(DetectedRefresh),
    /// A poll became due at this time.
    Due(Mono),
}

impl Refresher {
    /// Creates a refresher of `documents` that uses `fetcher`.
    pub(super) fn new(
        documents: Arc<Documents>,
        fetcher: Arc<Fetcher>,
        fleet: Option<Arc<FleetDocuments>>,
        clock: Clock,
    ) -> Self {
        Self {
            documents,
            fetcher,
            fleet,
            clock,
            is_active: AtomicBool::new(false),
        }
    }

    /// Runs until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.keep_current() => {}
            () = self.watch_fleet() => {}
        }
    }

    async fn keep_current(&self) {
        let schedule = self.documents.schedule();
        let mut stepped_at = self.clock.mono();
        loop {
            let event = tokio::select! {
                biased;
                // A refresh that another gateway detected takes precedence, because it makes a poll of the backend
                // unnecessary.
                agreed = self.next_agreed() => RefreshEvent::Agreed(agreed),
                event = async {
                    let next = self.begun().await.next();
                    tokio::select! {
                        biased;
                        seen = schedule.next_detected() => RefreshEvent::Detected(seen),
                        () = self.clock.sleep_until(next) => RefreshEvent::Due(next),
                    }
                } => event,
            };
            let _active = self.activate();
            match event {
                RefreshEvent::Agreed(agreed) => self.follow_other_gateways(agreed).await,
                RefreshEvent::Detected(seen) => self.follow(seen).await,
                RefreshEvent::Due(next) => {
                    self.probe(poll_since(stepped_at, next, schedule.expected()))
                        .await;
                }
            }
            stepped_at = self.clock.mono();
        }
    }

    /// Waits for a refresh that another gateway detected.
    async fn next_agreed(&self) -> FollowedRefresh {
        match &self.fleet {
            Some(fleet) => fleet.next_agreed().await,
            None => pending().await,
        }
    }

    async fn watch_fleet(&self) {
        match &self.fleet {
            Some(fleet) => fleet.watch().await,
            None => pending().await,
        }
    }

    fn activate(&self) -> ActiveRefresher<'_> {
        self.is_active.store(true, Ordering::Release);
        ActiveRefresher(&self.is_active)
    }

    /// Whether the refresher is polling the backend or refreshing documents. For tests.
    pub fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Acquire)
    }

    /// Waits for the refresh interval, which the first document sets. If no request fetches a document and polls are enabled,
    /// this function fetches one.
    async fn begun(&self) -> RefreshInterval {
        let mut wait = Duration::ZERO;
        loop {
            tokio::select! {
                biased;
                interval = self.documents.schedule().begun() => return interval,
                () = self.clock.sleep(wait) => self.fetch_when_idle().await,
            }
            wait = FIRST_FETCH_RETRY;
        }
    }

    /// Fetches the document that is kept current without requests, if there is one.
    async fn fetch_when_idle(&self) {
        let always = self.documents.retention().polled_when_idle();
        if let Some(key) = always {
            drop(self.fetcher.revalidate(&key, None).await);
        }
    }

    /// Polls the backend once for a refresh, unless another gateway did so after `since`.
    async fn probe(&self, since: Mono) {
        let in_use = self
            .blocking(|documents| documents.in_use().into_iter().next())
            .await;
        // If no document is in use, the next request refreshes its document.
        let Some((key, before)) = in_use.flatten() else {
            self.fetch_when_idle().await;
            return self.not_refreshed();
        };
        let turn = match &self.fleet {
            Some(fleet) => fleet.probe_turn(since).await,
            None => FleetTurn::Alone,
        };
        let started = self.clock.mono();
        let after = match turn {
            FleetTurn::Taken(_) | FleetTurn::Failed => return self.not_refreshed(),
            FleetTurn::Alone => self.fetcher.revalidate(&key, Some(started)).await,
            FleetTurn::Claimed(claim) => {
                let after = self.fetcher.revalidate(&key, Some(started)).await;
                if let Some(fleet) = &self.fleet {
                    // The poll is published even if it failed, so that in each interval one gateway polls for all.
                    fleet.probed(&claim, started).await;
                }
                after
            }
        };
        self.evaluate(key, before, after).await;
    }

    /// Records that a poll detected no refresh.
    fn not_refreshed(&self) {
        let now = self.clock.now().mono;
        self.documents
            .schedule()
            .step(|interval| interval.not_refreshed(now));
    }

    /// Decides whether the backend has refreshed, by comparing a document before and after a poll.
    async fn evaluate(
        &self,
        key: DocumentKey,
        before: Arc<StoredDocument>,
        after: Option<Arc<StoredDocument>>,
    ) {
        let at = self.clock.now().mono;
        let schedule = self.documents.schedule();
        match after {
            Some(stored) if !stored.document.has_same_data(&before.document) => {
                self.follow(DetectedRefresh {
                    document: key,
                    before,
                    stored,
                    at,
                })
                .await;
            }
            after => schedule.step(|interval| match after.as_ref().map(|after| after.due) {
                // The backend now states a later time for its next refresh.
                Some(later) if later > interval.expected().max(at) => interval.refreshed(later, at),
                Some(_) | None => interval.not_refreshed(at),
            }),
        }
    }

    /// Handles a refresh of the backend: documents that were confirmed before it are outdated, and documents in use are
    /// refreshed. Several gateways agree on the time of the refresh, so that each can use documents that the others
    /// fetched after the refresh.
    async fn follow(
        &self,
        DetectedRefresh {
            document,
            before,
            stored,
            at,
        }: DetectedRefresh,
    ) {
        let cadence = self.documents.retention().cadence;
        let expected = if stored.due > at {
            stored.due
        } else {
            at.plus(cadence)
        };
        let agreed = match &self.fleet {
            Some(fleet) => {
                fleet
                    .agree(Some((&document, &before, &stored)), at, expected)
                    .await
            }
            None => None,
        };
        let at = agreed.map_or(at, |agreed| agreed.at);
        self.fetcher.outdate(at);
        self.documents
            .schedule()
            .step(|interval| interval.refreshed(expected, at));
        // The document was fetched and dated before the refresh was detected. The refresh is stored with the document's
        // record on disk, so that the next process takes it into account.
        let mut current = stored.current(at.max(stored.confirmed), expected);
        if let Some(FollowedRefresh { agreed, .. }) = agreed
            && let Some(version) = stored.published
        {
            let confirmed = version.confirmed.max(agreed.detected);
            current.published = Some(PublishedVersion {
                confirmed,
                ..version
            });
        }
        self.documents.replace(&document, &stored, current);
        tracing::debug!(%document, "backend refresh detected");
        self.refresh_documents_in_use(at).await;
    }

    /// Handles a refresh that another gateway detected.
    async fn follow_other_gateways(&self, refresh: FollowedRefresh) {
        let Some(fleet) = &self.fleet else { return };
        let FollowedRefresh { agreed, at } = fleet.follow(refresh);
        self.fetcher.outdate(at);
        let now = self.clock.now();
        let expected = now.mono_at(agreed.expected);
        self.documents
            .schedule()
            .step(|interval| interval.refreshed(expected, now.mono));
        tracing::debug!("another gateway detected a refresh of the backend");
        self.refresh_documents_in_use(at).await;
    }

    /// Refreshes documents after the operator announces an early refresh of the backend. The next expected refresh does
    /// not change.
    pub async fn follow_an_early_refresh(&self) {
        let at = self.clock.now().mono;
        let expected = self.documents.schedule().expected().unwrap_or(at);
        let agreed = match &self.fleet {
            Some(fleet) => fleet.agree(None, at, expected).await,
            None => None,
        };
        let at = agreed.map_or(at, |agreed| agreed.at);
        self.fetcher.outdate(at);
        self.refresh_documents_in_use(at).await;
    }

    async fn refresh_documents_in_use(&self, refreshed_at: Mono) {
        let in_use = self.blocking(|documents| {
            // The documents are listed before their use counts decay, so that a document with a single use is refreshed once more.
            let in_use = documents.in_use();
            documents.decay_uses();
            in_use
        });
        let in_use = in_use.await.unwrap_or_default().into_iter();
        let outdated = in_use.filter(|(_, stored)| stored.confirmed < refreshed_at);
        stream::iter(outdated)
            .for_each_concurrent(
                CONCURRENT_REFRESHES,
                |(key, _): (DocumentKey, Arc<StoredDocument>)| async move {
                    drop(self.fetcher.revalidate(&key, None).await);
                },
            )
            .await;
    }

    /// Runs a task that visits every document, on a blocking thread. `None` if it panicked.
    async fn blocking<T: Send + 'static>(
        &self,
        task: impl FnOnce(&Documents) -> T + Send + 'static,
    ) -> Option<T> {
        let documents = Arc::clone(&self.documents);
        let result = tokio::task::spawn_blocking(move || task(&documents)).await;
        result
            .inspect_err(
                |error| tracing::error!(%error, "background task for the documents panicked"),
            )
            .ok()
    }
}

/// The time from which a poll by another gateway makes the next poll by this gateway unnecessary. This gateway polled at `before`
/// and is due to poll at `next`. A poll in the last three quarters of the interval suffices, so that one gateway polls for all, however the polls of
/// the gateways are offset. If a refresh is expected by `next`, a poll before the expected time does not suffice.
fn poll_since(before: Mono, next: Mono, expected: Option<Mono>) -> Mono {
    let since = before.plus(next.since(before) / 4);
    since.max(
        expected
            .filter(|expected| *expected <= next)
            .unwrap_or(since),
    )
}

impl Drop for ActiveRefresher<'_> {
    fn drop(&mut self) {
        // The flag is stored after the work, because a test that reads the flag must see the results of the work.
        self.0.store(false, Ordering::Release);
    }
}
