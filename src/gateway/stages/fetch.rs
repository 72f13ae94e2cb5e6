//! Stage 5: gets the document. Only this stage uses both the cache and the backend.
//!
//! One `match` combines the verdict on the stored document with the result of a fetch. `documents` does the fetching;
//! `respond` chooses the form of the document.

use std::sync::Arc;

use crate::{
    cache::{Freshness, StoredDocument},
    documents::{
        DocumentEngine, FetchError, FetchPriority, FoundDocument, PROBE_INTERVAL, WaitError,
    },
    gateway::Refusal,
    instruments::CacheOutcome,
    upstream::UpstreamFailure,
};
use scoregate_base::{
    clock::{Mono, Now},
    limits::LimitRule,
};

use super::resolve::ResolvedTarget;

/// A document to serve.
#[derive(Clone, Debug)]
pub struct Served {
    pub(crate) stored: Arc<StoredDocument>,
    /// When the refresh of the document is due.
    pub(crate) due: Mono,
    /// The source of the document.
    pub(crate) outcome: CacheOutcome,
}

impl Served {
    /// A fresh document, found without a fetch.
    pub(crate) fn hit(found: &FoundDocument) -> Self {
        Self {
            stored: Arc::clone(&found.stored),
            due: found.due,
            outcome: CacheOutcome::Hit,
        }
    }

    fn found(found: FoundDocument, outcome: CacheOutcome) -> Self {
        Self {
            stored: found.stored,
            due: found.due,
            outcome,
        }
    }

    fn fetched(stored: Arc<StoredDocument>, outcome: CacheOutcome) -> Self {
        Self {
            due: stored.due,
            stored,
            outcome,
        }
    }
}

/// The source of a request's document.
#[derive(Debug)]
pub enum DocumentSource {
    /// No source: the request is refused without a fetch.
    Nowhere(Refusal),
    /// The stored document is served. It is refreshed in the background if it is stale.
    Store(Served),
    /// The request waits for a fetch. If the fetch fails, this document is served.
    Fetch(Option<FoundDocument>),
}

/// The source for this target. `found` is the stored document.
pub fn source(target: &ResolvedTarget, found: Option<FoundDocument>) -> DocumentSource {
    if target.names_a_key {
        return DocumentSource::Nowhere(Refusal::ModelNotFound);
    }
    let Some(found) = found else {
        return DocumentSource::Fetch(None);
    };
    match found.verdict {
        Freshness::Fresh => DocumentSource::Store(Served::found(found, CacheOutcome::Hit)),
        Freshness::StaleWhileRevalidate => {
            DocumentSource::Store(Served::found(found, CacheOutcome::Stale))
        }
        Freshness::StaleIfError => DocumentSource::Fetch(Some(found)),
        Freshness::Expired => DocumentSource::Fetch(None),
    }
}

/// The document after a fetch. `fallback` is the document that was stored before.
pub fn fetched(
    fallback: Option<FoundDocument>,
    fetched: Result<(Arc<StoredDocument>, CacheOutcome), WaitError>,
) -> Result<Served, Refusal> {
    match (fetched, fallback) {
        (Ok((stored, outcome)), fallback) => Ok(Served::fetched(
            stored,
            fetched_outcome(outcome, fallback.is_some()),
        )),
        (Err(why), Some(found)) if why != WaitError::Fetch(FetchError::NoSuchModel) => {
            Ok(Served::found(found, CacheOutcome::StaleOnError))
        }
        (Err(why), _) => Err(refusal(&why)),
    }
}

/// The outcome of a request after a fetch with this result.
pub const fn fetched_outcome(outcome: CacheOutcome, was_stored: bool) -> CacheOutcome {
    if was_stored {
        CacheOutcome::Refreshed
    } else {
        outcome
    }
}

/// The stored document, fresh or stale but not expired, without a fetch. Used if the caller's daily quota is used up.
pub fn stored_only(found: Option<FoundDocument>) -> Result<Served, Refusal> {
    // If there is no document, `settle` replaces this refusal with the reason for the missing unit.
    let found = found.ok_or(Refusal::Limited(LimitRule::Day))?;
    let outcome = match found.verdict {
        Freshness::Fresh => CacheOutcome::Hit,
        Freshness::StaleWhileRevalidate | Freshness::StaleIfError => CacheOutcome::Stale,
        Freshness::Expired => return Err(Refusal::Limited(LimitRule::Day)),
    };
    Ok(Served::found(found, outcome))
}

/// The stored document. This call counts as a use.
pub fn revalidate(found: Option<FoundDocument>) -> Result<Served, Refusal> {
    if let Some(found) = &found {
        found.stored.used();
    }
    stored_only(found)
}

/// The document: a fresh stored document, a fetched document, or a stale stored document if the fetch failed.
pub async fn fetch(
    engine: &DocumentEngine,
    target: &ResolvedTarget,
    found: Option<FoundDocument>,
    priority: FetchPriority<'_>,
    now: Now,
) -> Result<Served, Refusal> {
    let key = &target.key;
    let found = match found {
        Some(fresh) if fresh.is_fresh() => Some(fresh),
        // The document may have been stored while the request was admitted.
        Some(_) | None => engine.documents.find(key, now.mono),
    };
    match source(target, found) {
        DocumentSource::Nowhere(refusal) => Err(refusal),
        DocumentSource::Store(served) => {
            served.stored.used();
            if served.outcome == CacheOutcome::Stale {
                engine
                    .fetcher
                    .refresh(key, &served.stored, priority, now.mono);
            }
            Ok(served)
        }
        DocumentSource::Fetch(fallback) => {
            if let Some(found) = &fallback {
                found.stored.used();
            }
            fetched(fallback, engine.fetcher.fetch(key, priority).await)
        }
    }
}

/// The refusal for a request without a document.
fn refusal(why: &WaitError) -> Refusal {
    let failure = match why {
        WaitError::Fetch(FetchError::NoSuchModel) => return Refusal::ModelNotFound,
        WaitError::TimedOut => return Refusal::UpstreamTimeout,
        WaitError::Aborted => return Refusal::UpstreamInvalid,
        WaitError::Fetch(FetchError::Unlisted) => {
            return Refusal::ModelUnlisted {
                retry_after: PROBE_INTERVAL,
            };
        }
        WaitError::Fetch(FetchError::Backend(failure)) => failure,
    };
    let retry_after = match failure {
        UpstreamFailure::Timeout(_) => return Refusal::UpstreamTimeout,
        UpstreamFailure::Invalid(_) => return Refusal::UpstreamInvalid,
        UpstreamFailure::ErrorStatus { retry_after, .. } => *retry_after,
        UpstreamFailure::CircuitOpen(wait) => Some(*wait),
        UpstreamFailure::Unreachable(_) | UpstreamFailure::QueueFull => None,
    };
    Refusal::UpstreamUnavailable { retry_after }
}
