//! Decides which fetches are made: one per document however many requests wait, and none whose result is already
//! known.
//!
//! Fetches run in tasks that belong to no client; see `fetch_task`.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::TaskTracker;

use crate::cache::{FlightCompletion, FlightRole, SingleFlight, StoredDocument};
use crate::instruments::{CacheOutcome, Instruments};
use crate::upstream::ProtectedUpstream;
use scoregate_base::clock::{Clock, Mono};
use scoregate_base::keys::ApplicationId;
use scoregate_base::routes::{DocumentKey, Selection};

use super::backend_status::BackendStatus;
use super::cached_documents::Documents;
use super::fetch_priority::{FetchContext, FetchPriority};
use super::fetch_task::{FetchError, FetchResult, FetchWorker};
use super::fleet_documents::FleetDocuments;
use super::known_models::KnownModels;
use super::probe_turns::ProbeTurns;

/// Why a request got no document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WaitError {
    /// The fetch failed.
    Fetch(FetchError),
    /// The fetch takes longer than a request may wait.
    TimedOut,
    /// The fetch panicked; the panic was logged.
    Aborted,
}

/// A fetch that was joined or started.
struct JoinedFetch {
    result: FlightCompletion<FetchResult>,
    outcome: CacheOutcome,
}

/// When a fetch is unnecessary.
#[derive(Clone, Copy)]
enum Need {
    /// If the stored document is not due for a refresh: another fetch may have ended since the lookup.
    Current,
    /// Never.
    Confirmation,
}

/// Makes fetches, and tracks those in flight.
pub struct Fetcher {
    documents: Arc<Documents>,
    worker: FetchWorker,
    flights: SingleFlight<FetchResult, FetchContext>,
    turns: ProbeTurns,
    tasks: TaskTracker,
    clock: Clock,
    instruments: Arc<Instruments>,
}

impl Fetcher {
    /// Fetches from `upstream` into `documents`.
    pub(super) fn new(
        documents: Arc<Documents>,
        upstream: ProtectedUpstream,
        fleet: Option<Arc<FleetDocuments>>,
        clock: Clock,
        instruments: Arc<Instruments>,
    ) -> Self {
        let worker = FetchWorker::new(
            Arc::clone(&documents),
            upstream,
            fleet,
            clock.clone(),
            Arc::clone(&instruments),
        );
        let (flights, turns, tasks) = Default::default();
        Self { documents, worker, flights, turns, tasks, clock, instruments }
    }

    /// Number of requests that wait for a fetch.
    #[cfg(any(test, feature = "lab"))]
    pub fn waiters(&self) -> usize {
        self.flights.waiters()
    }

    /// Refreshes an overdue document in the background, unless the backend confirmed it a moment ago. Starts nothing
    /// while the circuit breaker is open: every request for a stale document comes here.
    pub(crate) fn refresh(
        self: &Arc<Self>,
        key: &DocumentKey,
        stored: &StoredDocument,
        priority: FetchPriority<'_>,
        now: Mono,
    ) {
        if self.documents.may_revalidate(key, stored, now) && !self.worker.upstream().is_open() {
            drop(self.join_or_start(key, priority.without_waiting(), Need::Current));
        }
    }

    /// Asks the backend about a document, whether it is current or not. Of several gateways one asks; if given, its request
    /// must not be older than `since`. Returns the document stored afterwards.
    pub(super) async fn revalidate(
        self: &Arc<Self>,
        key: &DocumentKey,
        since: Option<Mono>,
    ) -> Option<Arc<StoredDocument>> {
        let priority = FetchPriority { confirmed_since: since, ..FetchPriority::BACKGROUND };
        self.join_or_start(key, priority, Need::Confirmation).result.result().await?.ok()
    }

    /// Fetches a document for a request, which waits for at most the fetch timeout. For an unlisted model the list of
    /// models is refreshed first.
    pub(crate) async fn fetch(
        self: &Arc<Self>,
        key: &DocumentKey,
        priority: FetchPriority<'_>,
    ) -> Result<(Arc<StoredDocument>, CacheOutcome), WaitError> {
        let deadline = self.clock.now().mono.plus(self.documents.retention().fetch_timeout);
        let fetch =
            |key: DocumentKey| self.join_or_start(&key, priority, Need::Current).by(deadline, &self.clock);
        match fetch(key.clone()).await {
            Err(WaitError::Fetch(FetchError::Unlisted)) => {}
            ended => return ended,
        }
        let unlisted = Err(WaitError::Fetch(FetchError::Unlisted));
        let refreshed = match KnownModels::newest(&self.documents) {
            Some(list) if self.documents.may_revalidate(&list.key, &list.stored, self.clock.now().mono) => {
                fetch(list.key).await.is_ok()
            }
            Some(_) => false,
            None => match fetch(DocumentKey::list_of_models()).await {
                Ok(_) => true,
                Err(WaitError::Fetch(FetchError::NoSuchModel | FetchError::Unlisted)) => false,
                // Without a list, nothing is known about the model.
                Err(error) => return Err(error),
            },
        };
        if refreshed { fetch(key.clone()).await } else { unlisted }
    }

    /// Joins the fetch of a document that is in flight, or starts one, unless its result is known: it failed a moment
    /// ago, the stored document suffices, the backend cannot have the model, or the model is not listed.
    fn join_or_start(
        self: &Arc<Self>,
        key: &DocumentKey,
        priority: FetchPriority<'_>,
        need: Need,
    ) -> JoinedFetch {
        let (leader, result) = match self.flights.join(key, priority.context()) {
            FlightRole::Shared(result, context) => {
                context.priority.raise(priority.class);
                return JoinedFetch { result, outcome: CacheOutcome::Shared };
            }
            FlightRole::First(leader, result) => (leader, result),
        };
        if !self.worker.upstream().may_have(key) {
            leader.complete(Err(FetchError::NoSuchModel));
            return JoinedFetch { result, outcome: CacheOutcome::Shared };
        }
        let now = self.clock.now().mono;
        let is_enough = |stored: &StoredDocument| match need {
            Need::Current => now < self.documents.due(key, stored),
            Need::Confirmation => false,
        };
        let failed = self.worker.negative().get(key, now).map(Err);
        let known = failed.or_else(|| match self.documents.get(key) {
            Some(stored) => is_enough(&stored).then_some(Ok(stored)),
            None => self.refuse_unlisted(key, priority.caller, now).map(Err),
        });
        if let Some(known) = known {
            leader.complete(known);
            return JoinedFetch { result, outcome: CacheOutcome::Shared };
        }
        let fetcher = Arc::clone(self);
        self.tasks.spawn(async move { fetcher.worker.run(leader).await });
        JoinedFetch { result, outcome: CacheOutcome::Miss }
    }

    /// Why a document that was never stored is not fetched, if its model is not listed.
    fn refuse_unlisted(
        &self,
        key: &DocumentKey,
        caller: Option<ApplicationId>,
        now: Mono,
    ) -> Option<FetchError> {
        let id = key.id.as_ref()?;
        let list = KnownModels::newest(&self.documents);
        let is_listed = list.as_ref().and_then(|list| list.lists(id));
        let is_current =
            list.is_some_and(|list| !self.documents.may_revalidate(&list.key, &list.stored, now));
        match is_listed {
            Some(true) => None,
            Some(false) if is_current && self.worker.upstream().lists_all_models() => {
                Some(FetchError::NoSuchModel)
            }
            Some(false) | None => (!self.turns.take(caller, now)).then_some(FetchError::Unlisted),
        }
    }

    /// Marks documents as overdue, or removes them with `hard`. Results of fetches in flight are not stored.
    pub(super) fn purge(&self, selection: &Selection, hard: bool) -> usize {
        self.flights.invalidate(|key| selection.fits(key));
        self.worker.negative().remove(|key| selection.fits(key));
        self.documents.purge(selection, hard)
    }

    /// After a refresh of the backend: documents confirmed before are outdated, and failures may no longer apply.
    pub(super) fn outdate(&self, at: Mono) {
        if at <= self.documents.schedule().last_detected() {
            return;
        }
        self.documents.schedule().record_refresh(at);
        self.instruments.refreshed();
        self.worker.negative().remove(|_| true);
    }

    /// The backend's status.
    pub fn status(&self) -> BackendStatus {
        let now = self.clock.now();
        let (last_success, last_failure) = self.worker.last().both();
        let next_refresh = self.documents.expected_refresh(now);
        BackendStatus {
            address: self.worker.upstream().address(),
            condition: self.worker.upstream().status(),
            last_failure,
            last_success,
            next_refresh,
            overdue: next_refresh.map_or(Duration::ZERO, |at| now.wall.since(at)),
        }
    }

    /// Removes expired entries, and updates the metrics of documents and backend.
    pub(super) fn sweep(&self) {
        let now = self.clock.now();
        self.worker.negative().sweep(now.mono);
        let (documents, bytes) = self.documents.sweep(now.mono);
        self.instruments.cache_size(documents, bytes, self.flights.len());
        self.instruments.upstream(&self.worker.upstream().status());
        let expected = self.documents.expected_refresh(now).unwrap_or(now.wall);
        self.instruments.next_refresh(now.wall.since(expected), expected.since(now.wall));
    }
}

impl JoinedFetch {
    /// Waits for the result until `deadline`.
    async fn by(
        self,
        deadline: Mono,
        clock: &Clock,
    ) -> Result<(Arc<StoredDocument>, CacheOutcome), WaitError> {
        let Self { result, outcome } = self;
        let result = clock.until(deadline, result.result()).await.map_err(|_| WaitError::TimedOut)?;
        Ok((result.ok_or(WaitError::Aborted)?.map_err(WaitError::Fetch)?, outcome))
    }
}
