//! A fetch: requests a document from the backend, and stores the response or caches the failure. Each fetch runs in a
//! separate task. `fetcher` decides when to fetch.

use std::{panic::AssertUnwindSafe, sync::Arc, thread::available_parallelism, time::Duration};

use futures_util::FutureExt as _;
use tokio::sync::Semaphore;

use crate::{
    cache::{Document, DocumentContent, FlightLeader, NegativeCache, StoredDocument},
    instruments::{DocumentInstruments, FetchEnd},
    upstream::{ProtectedUpstream, UpstreamFailure, UpstreamRequest, UpstreamResponse},
};
use scoregate_base::{
    clock::{Clock, Now},
    routes::DocumentKey,
};
use scoregate_observe::traces::OpenSpan;

use super::{
    backend_status::LastFetches,
    cached_documents::{Confirmation, Documents},
    fetch_priority::FetchContext,
    fetch_span,
    fleet_documents::{FleetClaim, FleetDocuments},
    known_models::KnownModels,
    shared_fetch::{FetchTurn, SharedFetch},
};

/// Time for which a failed fetch is not repeated. It is short, so that a recovery is detected soon.
const FAILURE_TTL: Duration = Duration::from_millis(500);
/// Time for which a model that is unknown to the backend is not fetched again.
// Clients often repeat a wrong id. A detected refresh removes the entry earlier.
const UNKNOWN_MODEL_TTL: Duration = Duration::from_mins(1);

/// The reason why a fetch returned no document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchError {
    /// The model is unknown to the backend.
    NoSuchModel,
    /// The model is not listed, and it is another caller's turn to request an unlisted model.
    Unlisted,
    Backend(UpstreamFailure),
}

pub type FetchResult = Result<Arc<StoredDocument>, FetchError>;

/// The right to make a fetch whose result all waiting requests share.
pub type FetchLeader = FlightLeader<FetchResult, FetchContext>;

/// Performs fetches, and caches their failures.
pub struct FetchWorker {
    documents: Arc<Documents>,
    upstream: ProtectedUpstream,
    /// Recently failed fetches, by key.
    negative: NegativeCache<FetchError>,
    last: LastFetches,
    /// Permits for document builds: one for every two cores, since a build saturates a core and uses megabytes of memory.
    builders: Arc<Semaphore>,
    shared: SharedFetch,
    clock: Clock,
    instruments: Arc<DocumentInstruments>,
}

impl FetchWorker {
    /// Creates a worker that fetches from `upstream` into `documents`.
    pub fn new(
        documents: Arc<Documents>,
        upstream: ProtectedUpstream,
        fleet: Option<Arc<FleetDocuments>>,
        clock: Clock,
        instruments: Arc<DocumentInstruments>,
    ) -> Self {
        let (negative, last) = Default::default();
        let builders = Arc::new(Semaphore::new(
            available_parallelism().map_or(1, usize::from).div_ceil(2),
        ));
        let shared = SharedFetch::new(
            fleet,
            Arc::clone(&documents),
            Arc::clone(&builders),
            clock.clone(),
        );
        Self {
            documents,
            upstream,
            negative,
            last,
            builders,
            shared,
            clock,
            instruments,
        }
    }

    /// The backend with its queue and circuit breaker.
    pub fn upstream(&self) -> &ProtectedUpstream {
        &self.upstream
    }

    /// Documents that cannot be fetched for now.
    pub fn negative(&self) -> &NegativeCache<FetchError> {
        &self.negative
    }

    pub fn last(&self) -> &LastFetches {
        &self.last
    }

    /// Makes one fetch. A panic counts as a failure: the waiting requests get the failure, and it is cached.
    pub async fn run(&self, leader: FetchLeader) {
        let key = leader.key().clone();
        if AssertUnwindSafe(self.fetch(leader))
            .catch_unwind()
            .await
            .is_err()
        {
            self.instruments.panics.increment(1);
            tracing::error!(document = %key, "a fetch panicked");
            let failure = UpstreamFailure::Invalid("reading it panicked".into());
            let now = self.clock.now();
            self.last.failed(&key, &failure, now.wall);
            // The failure is cached, so that a document that causes a panic is not fetched for every request.
            self.negative.insert(
                key,
                FetchError::Backend(failure),
                now.mono.plus(FAILURE_TTL),
            );
        }
    }

    async fn fetch(&self, leader: FetchLeader) {
        let before = self.documents.get(leader.key());
        let turn = self
            .shared
            .turn(&leader, before.as_ref(), leader.note().confirmed_since)
            .await;
        let result = match turn {
            FetchTurn::Taken(stored) => Ok(stored),
            FetchTurn::Failed => Err(FetchError::Backend(UpstreamFailure::Unreachable(
                "another gateway's request failed a moment ago".into(),
            ))),
            FetchTurn::Claimed(claim, published) => {
                self.request_for_all(&leader, published.or_else(|| before.clone()), &claim)
                    .await
            }
            FetchTurn::Alone => self.request(&leader, before.clone()).await.0,
        };
        let now = self.clock.now();
        match &result {
            Ok(stored) => {
                self.last.succeeded(now.wall);
                self.documents
                    .detect(leader.key(), before.as_ref(), stored, now.mono);
            }
            Err(error) => self.remember(&leader, error, now),
        }
        // The flight is completed after the failure is cached, so that a new request does not repeat the fetch.
        leader.complete(result);
    }

    /// Requests the document from the backend, and publishes it to the other gateways.
    async fn request_for_all(
        &self,
        leader: &FetchLeader,
        before: Option<Arc<StoredDocument>>,
        claim: &FleetClaim,
    ) -> FetchResult {
        let key = leader.key();
        let known = before.clone();
        match self.request(leader, before).await {
            (Ok(stored), _) => Ok(self
                .shared
                .publish(key, claim, known.as_ref(), stored)
                .await),
            (Err(error), end) => {
                let has_failed = end.was_sent() && end != FetchEnd::NotFound;
                self.shared.release(key, claim, has_failed).await;
                Err(error)
            }
        }
    }

    /// Requests the document from the backend.
    async fn request(
        &self,
        leader: &FetchLeader,
        before: Option<Arc<StoredDocument>>,
    ) -> (FetchResult, FetchEnd) {
        let started = self.clock.now();
        let known = before.as_ref().map(|stored| stored.document.source());
        let FetchContext {
            priority,
            trace,
            span,
            ..
        } = leader.note();
        let span = span.as_ref();
        let span = span
            .map(|span| fetch_span::begin(span, leader.key(), &self.upstream.address(), started));
        let trace = span.as_ref().and_then(OpenSpan::trace).or(*trace);
        let request = UpstreamRequest {
            key: leader.key(),
            known,
            trace: trace.as_ref(),
        };
        let fetched = self.upstream.fetch(request, priority).await;
        let status = fetch_span::status(&fetched);
        let now = self.clock.now();
        let confirmation = Confirmation {
            before,
            // The time is taken before the request is sent, because the data may change while the response is in transit.
            requested_at: started.mono,
            answered: now,
            next_refresh: None,
            stated_at: None,
        };
        let result = self.settle(leader, fetched, confirmation).await;
        let end = match &result {
            Ok(_) => FetchEnd::Success,
            Err(FetchError::Backend(failure)) => FetchEnd::of(failure),
            Err(FetchError::NoSuchModel | FetchError::Unlisted) => FetchEnd::NotFound,
        };
        self.instruments
            .fetched(end, now.mono.since(started.mono), leader.waiters());
        if let Some(span) = span {
            fetch_span::end(span, status, end, leader.waiters(), now);
        }
        (result, end)
    }

    /// Stores the response, or removes a document that the backend no longer has.
    async fn settle(
        &self,
        leader: &FetchLeader,
        fetched: Result<UpstreamResponse, UpstreamFailure>,
        mut confirmation: Confirmation,
    ) -> FetchResult {
        let key = leader.key();
        match fetched {
            Ok(UpstreamResponse::Content {
                content,
                next_refresh,
            }) => {
                confirmation.next_refresh = next_refresh;
                self.store(leader, content, confirmation).await
            }
            Ok(UpstreamResponse::Unchanged { next_refresh }) => {
                confirmation.next_refresh = next_refresh;
                let document = confirmation
                    .before
                    .as_ref()
                    .ok_or_else(|| invalid("it answered 304 to a request without validators"))?
                    .document
                    .clone();
                Ok(self.documents.confirm(leader, document, &confirmation))
            }
            Ok(UpstreamResponse::Nothing {
                content,
                next_refresh,
            }) if self.model_exists(key, confirmation.before.is_some()) => {
                confirmation.next_refresh = next_refresh;
                self.store(leader, content, confirmation).await
            }
            Ok(UpstreamResponse::IdRejected)
                if self.model_exists(key, confirmation.before.is_some()) =>
            {
                Err(invalid("unexpected status 400"))
            }
            Ok(
                UpstreamResponse::NoSuchModel
                | UpstreamResponse::IdRejected
                | UpstreamResponse::Nothing { .. },
            ) => {
                // A removed model is a valid response, not a failure: remove the stored document.
                leader.while_current(|| self.documents.remove(key));
                self.documents.note_change(key);
                Err(FetchError::NoSuchModel)
            }
            Err(failure) => Err(FetchError::Backend(failure)),
        }
    }

    /// Whether a model exists, for a response from which this is not clear. A model exists if it is listed or, if there is no list, if
    /// one of its documents is stored.
    fn model_exists(&self, key: &DocumentKey, is_stored: bool) -> bool {
        key.id
            .as_ref()
            .and_then(|id| KnownModels::newest(&self.documents)?.lists(id))
            .unwrap_or(is_stored)
    }

    /// Caches a failure. If the request was never sent, the failure is not cached, so that the fetch can be repeated as soon as
    /// the backend accepts requests.
    fn remember(&self, leader: &FetchLeader, error: &FetchError, now: Now) {
        let key = leader.key();
        let ttl = match error {
            FetchError::NoSuchModel => {
                self.last.succeeded(now.wall);
                UNKNOWN_MODEL_TTL
            }
            FetchError::Unlisted
            | FetchError::Backend(UpstreamFailure::CircuitOpen(_) | UpstreamFailure::QueueFull) => {
                return;
            }
            FetchError::Backend(failure) => {
                let endpoint = key.route.endpoint().name;
                tracing::warn!(endpoint, document = %key, %failure, "a fetch failed");
                self.last.failed(key, failure, now.wall);
                FAILURE_TTL
            }
        };
        let until = now.mono.plus(ttl);
        leader.while_current(|| self.negative.insert(key.clone(), error.clone(), until));
    }

    /// Builds a document from a response and stores it.
    async fn store(
        &self,
        leader: &FetchLeader,
        content: DocumentContent,
        mut confirmation: Confirmation,
    ) -> FetchResult {
        confirmation.stated_at = content.stated_at;
        self.check(leader, &content, confirmation.before.as_deref())?;
        let before = confirmation.before.clone();
        let document = self.build(leader.key().clone(), content, before).await?;
        Ok(self.documents.confirm(leader, document, &confirmation))
    }

    /// Rejects a response that is unexpectedly empty, or older than data received earlier.
    fn check(
        &self,
        leader: &FetchLeader,
        content: &DocumentContent,
        before: Option<&StoredDocument>,
    ) -> Result<(), FetchError> {
        // Older data never replaces newer data. Only an operator can accept older data, with a purge.
        if let Some(stated) = content.stated_at
            && let Some(newer) = self.documents.newer_data(leader.key(), stated)
        {
            let stated = stated.rfc3339();
            let newer = newer.rfc3339();
            return Err(invalid(&format!(
                "its data is from {stated}, older than the data from {newer} received before; \
                 to accept it, run `scoregate cache purge {} --hard`",
                leader.key().address()
            )));
        }
        let Some(before) = before.filter(|before| before.makes_suspect(content)) else {
            return Ok(());
        };
        let suspected = Arc::new(before.suspected());
        leader.while_current(|| self.documents.put(leader.key().clone(), suspected));
        Err(invalid(
            "it is empty, unlike the previous response; a second empty response is accepted",
        ))
    }

    /// Builds a document. Compression takes time, so it runs on a limited number of blocking threads.
    async fn build(
        &self,
        key: DocumentKey,
        content: DocumentContent,
        before: Option<Arc<StoredDocument>>,
    ) -> Result<Document, FetchError> {
        let retention = Arc::clone(self.documents.retention());
        // The permit is held until the document is built, because more concurrent builds would take cores away from
        // requests.
        let permit = self
            .builders
            .acquire()
            .await
            .map_err(|error| invalid(&error.to_string()))?;
        let built = tokio::task::spawn_blocking(move || {
            let label = retention.label(&key);
            let before = before.as_deref().map(|stored| &stored.document);
            Document::build(content, &label, before)
        });
        let built = built.await.map_err(|error| invalid(&error.to_string()))?;
        let document = built.map_err(|bad| invalid(&bad.to_string()))?;
        drop(permit);
        Ok(document)
    }
}

fn invalid(reason: &str) -> FetchError {
    FetchError::Backend(UpstreamFailure::Invalid(reason.into()))
}
