//! Decides when to fetch. However many requests are waiting, there is at most one concurrent fetch per document, and
//! none if its result is already known.
//!
//! Fetches run in tasks that do not belong to a client; see `fetch_task`.

use std::{sync::Arc, time::Duration};

use tokio_util::task::TaskTracker;

use crate::{
    cache::{FlightCompletion, FlightRole, SingleFlight, StoredDocument},
    instruments::{CacheOutcome, DocumentInstruments},
    upstream::{ProtectedUpstream, UpstreamRequest},
};
use scoregate_base::{
    clock::{Clock, Mono},
    routes::{DocumentKey, Selection},
};

use super::{
    backend_status::BackendStatus,
    cached_documents::Documents,
    fetch_priority::{FetchContext, FetchPriority},
    fetch_task::{FetchError, FetchResult, FetchWorker},
    fleet_documents::FleetDocuments,
    known_models::KnownModels,
    probe_turns::ProbeTurns,
};

/// The reason why a request got no document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// The fetch failed.
    Fetch(FetchError),
    /// The fetch took longer than a request may wait.
    TimedOut,
    /// The fetch panicked. The panic was logged.
    Aborted,
}

/// A fetch that a request has joined or started.
struct JoinedFetch {
    result: FlightCompletion<FetchResult>,
    outcome: CacheOutcome,
}

/// The outcome of a fetch, as far as it can be known before the fetch starts.
#[derive(Clone, Debug)]
pub enum FetchForesight {
    /// The result is known, so no fetch is made.
    Known(FetchResult),
    /// A fetch of the document is in flight.
    Joined,
    /// The model is not listed. Documents of such models are fetched one by one.
    OneByOne,
    /// A fetch is made.
    Open,
}

/// The condition under which a fetch is unnecessary.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// The stored document is not due for a refresh. Another fetch may have ended since the lookup.
    Current,
    /// The fetch is always needed.
    Confirmation,
}

/// Makes fetches, and tracks the fetches in flight.
pub struct Fetcher {
    documents: Arc<Documents>,
    worker: FetchWorker,
    flights: SingleFlight<FetchResult, FetchContext>,
    turns: ProbeTurns,
    tasks: TaskTracker,
    clock: Clock,
    instruments: Arc<DocumentInstruments>,
}

impl Fetcher {
    /// Creates a fetcher from `upstream` into `documents`.
    pub(super) fn new(
        documents: Arc<Documents>,
        upstream: ProtectedUpstream,
        fleet: Option<Arc<FleetDocuments>>,
        clock: Clock,
        instruments: Arc<DocumentInstruments>,
    ) -> Self {
        let worker = FetchWorker::new(
            Arc::clone(&documents),
            upstream,
            fleet,
            clock.clone(),
            Arc::clone(&instruments),
        );
        let (flights, turns, tasks) = Default::default();
        Self {
            documents,
            worker,
            flights,
            turns,
            tasks,
            clock,
            instruments,
        }
    }

    /// The metric handles, for another engine of the same server.
    #[cfg(feature = "lab")]
    pub fn instruments(&self) -> &Arc<DocumentInstruments> {
        &self.instruments
    }

    /// Number of requests that wait for a fetch.
    #[cfg(any(test, feature = "lab"))]
    pub fn waiters(&self) -> usize {
        self.flights.waiters()
    }

    /// Refreshes an overdue document in the background, unless the backend confirmed it a moment ago. Every request for
    /// a stale document calls this, so nothing is started while the circuit breaker is open.
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

    /// Requests a document from the backend, even if it is current. Of several gateways, only one sends the request. If
    /// `since` is given, a request sent before that time does not suffice. Returns the document that is stored
    /// afterwards.
    pub(super) async fn revalidate(
        self: &Arc<Self>,
        key: &DocumentKey,
        since: Option<Mono>,
    ) -> Option<Arc<StoredDocument>> {
        let priority = FetchPriority {
            confirmed_since: since,
            ..FetchPriority::BACKGROUND
        };
        self.join_or_start(key, priority, Need::Confirmation)
            .result
            .result()
            .await?
            .ok()
    }

    /// Fetches a document for a request, which waits for at most the fetch timeout. For an unlisted model the list of
    /// models is refreshed first.
    pub(crate) async fn fetch(
        self: &Arc<Self>,
        key: &DocumentKey,
        priority: FetchPriority<'_>,
    ) -> Result<(Arc<StoredDocument>, CacheOutcome), WaitError> {
        let deadline = self
            .clock
            .now()
            .mono
            .plus(self.documents.retention().fetch_timeout);
        let fetch = |key: DocumentKey| {
            self.join_or_start(&key, priority, Need::Current)
                .by(deadline, &self.clock)
        };
        match fetch(key.clone()).await {
            Err(WaitError::Fetch(FetchError::Unlisted)) => {}
            ended => return ended,
        }
        let unlisted = Err(WaitError::Fetch(FetchError::Unlisted));
        let refreshed = match KnownModels::newest(&self.documents) {
            Some(list)
                if self.documents.may_revalidate(
                    &list.key,
                    &list.stored,
                    self.clock.now().mono,
                ) =>
            {
                fetch(list.key).await.is_ok()
            }
            Some(_) => false,
            None => match fetch(DocumentKey::list_of_models()).await {
                Ok(_) => true,
                Err(WaitError::Fetch(FetchError::NoSuchModel | FetchError::Unlisted)) => false,
                // If there is no list, nothing is known about the model.
                Err(error) => return Err(error),
            },
        };
        if refreshed {
            fetch(key.clone()).await
        } else {
            unlisted
        }
    }

    /// Joins the fetch of a document that is in flight, or starts one. No fetch is started if the previous one failed a
    /// moment ago, the stored document suffices, the backend cannot have the model, or the model is not listed.
    fn join_or_start(
        self: &Arc<Self>,
        key: &DocumentKey,
        priority: FetchPriority<'_>,
        need: Need,
    ) -> JoinedFetch {
        let (leader, result) = match self.flights.join(key, priority.context()) {
            FlightRole::Shared(result, context) => {
                context.priority.raise(priority.class);
                return JoinedFetch {
                    result,
                    outcome: CacheOutcome::Shared,
                };
            }
            FlightRole::First(leader, result) => (leader, result),
        };
        let now = self.clock.now().mono;
        // The document is looked up after the flight was joined, because otherwise a fetch that ended in between would
        // be repeated.
        let known =
            match self.foreknown(key, self.documents.get(key), need, KnownModels::newest, now) {
                FetchForesight::Known(known) => Some(known),
                FetchForesight::OneByOne if self.turns.take(priority.caller, now) => None,
                FetchForesight::OneByOne => Some(Err(FetchError::Unlisted)),
                FetchForesight::Joined | FetchForesight::Open => None,
            };
        if let Some(known) = known {
            leader.complete(known);
            return JoinedFetch {
                result,
                outcome: CacheOutcome::Shared,
            };
        }
        let fetcher = Arc::clone(self);
        self.tasks
            .spawn(async move { fetcher.worker.run(leader).await });
        JoinedFetch {
            result,
            outcome: CacheOutcome::Miss,
        }
    }

    /// The outcome of fetching a document, as far as it can be known before the fetch starts.
    fn foreknown(
        &self,
        key: &DocumentKey,
        stored: Option<Arc<StoredDocument>>,
        need: Need,
        models: fn(&Documents) -> Option<KnownModels>,
        now: Mono,
    ) -> FetchForesight {
        if !self.worker.upstream().may_have(key) {
            return FetchForesight::Known(Err(FetchError::NoSuchModel));
        }
        if let Some(failed) = self.worker.negative().get(key, now) {
            return FetchForesight::Known(Err(failed));
        }
        if let Some(stored) = stored {
            let is_enough = need == Need::Current && now < self.documents.due(key, &stored);
            return if is_enough {
                FetchForesight::Known(Ok(stored))
            } else {
                FetchForesight::Open
            };
        }
        let Some(id) = key.id.as_ref() else {
            return FetchForesight::Open;
        };
        let list = models(&self.documents);
        let is_listed = list.as_ref().and_then(|list| list.lists(id));
        let is_current =
            list.is_some_and(|list| !self.documents.may_revalidate(&list.key, &list.stored, now));
        match is_listed {
            Some(true) => FetchForesight::Open,
            Some(false) if is_current && self.worker.upstream().lists_all_models() => {
                FetchForesight::Known(Err(FetchError::NoSuchModel))
            }
            Some(false) | None => FetchForesight::OneByOne,
        }
    }

    /// The outcome for a request that would fetch this document now. Nothing is fetched or counted.
    pub(crate) fn foresee(
        &self,
        key: &DocumentKey,
        stored: Option<&StoredDocument>,
    ) -> FetchForesight {
        if self.flights.has(key) {
            return FetchForesight::Joined;
        }
        let stored = stored.map(|stored| Arc::new(stored.clone()));
        self.foreknown(
            key,
            stored,
            Need::Current,
            KnownModels::confirmed_last,
            self.clock.now().mono,
        )
    }

    /// The request that the backend would get, without credentials.
    pub(crate) fn question(
        &self,
        key: &DocumentKey,
        stored: Option<&StoredDocument>,
    ) -> Vec<String> {
        let known = stored.map(|stored| stored.document.source());
        self.worker.upstream().question(UpstreamRequest {
            key,
            known,
            trace: None,
        })
    }

    /// Marks documents as overdue, or removes them with `hard`. Results of fetches in flight are not stored.
    pub(super) fn purge(&self, selection: &Selection, hard: bool) -> usize {
        // Flights are invalidated first, because a result that arrives during the purge must not be stored after it.
        self.flights.invalidate(|key| selection.fits(key));
        self.worker.negative().remove(|key| selection.fits(key));
        self.documents.purge(selection, hard)
    }

    /// Called after a refresh of the backend: documents that were confirmed before `at` are outdated, and failures may
    /// no longer apply.
    pub(super) fn outdate(&self, at: Mono) {
        if at <= self.documents.schedule().last_detected() {
            return;
        }
        self.documents.schedule().record_refresh(at);
        self.instruments.refreshes.increment(1);
        // An unknown model may have been added, and the cause of a failure may be gone.
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

    /// Removes expired entries, and updates the metrics of the documents and the backend.
    pub(super) fn sweep(&self) {
        let now = self.clock.now();
        self.worker.negative().sweep(now.mono);
        let (documents, bytes) = self.documents.sweep(now.mono);
        self.instruments
            .cache_size(documents, bytes, self.flights.len());
        self.instruments.upstream(&self.worker.upstream().status());
        let expected = self.documents.expected_refresh(now).unwrap_or(now.wall);
        self.instruments
            .next_refresh(now.wall.since(expected), expected.since(now.wall));
    }
}

impl JoinedFetch {
    /// Waits for the result, at most until `deadline`.
    async fn by(
        self,
        deadline: Mono,
        clock: &Clock,
    ) -> Result<(Arc<StoredDocument>, CacheOutcome), WaitError> {
        let Self { result, outcome } = self;
        let result = clock
            .until(deadline, result.result())
            .await
            .map_err(|_| WaitError::TimedOut)?;
        Ok((
            result
                .ok_or(WaitError::Aborted)?
                .map_err(WaitError::Fetch)?,
            outcome,
        ))
    }
}
