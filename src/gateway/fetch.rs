//! Stage 5: gets the document. The only stage that uses the cache *and* the backend.
//!
//! The verdict on the stored document and the result of a fetch meet in one `match`. Fetches themselves are in
//! `documents`; the form of the document is chosen in `respond`.

use std::sync::Arc;
use std::time::Duration;

use crate::cache::{Freshness, StoredDocument};
use crate::documents::{DocumentEngine, FetchError, FetchPriority, FoundDocument, PROBE_INTERVAL, WaitError};
use crate::instruments::CacheOutcome;
use crate::upstream::UpstreamFailure;
use scoregate_base::clock::{Mono, Now};
use scoregate_base::limits::LimitRule;

use super::refusal::Refusal;
use super::resolve::ResolvedTarget;

/// A document to serve.
#[derive(Clone, Debug)]
pub(super) struct Served {
    pub(super) stored: Arc<StoredDocument>,
    /// When its refresh is due.
    pub(super) due: Mono,
    /// Source of the document.
    pub(crate) outcome: CacheOutcome,
}

impl Served {
    /// A fresh document, found without a fetch.
    pub(super) fn hit(found: FoundDocument) -> Self {
        Self::found(found, CacheOutcome::Hit)
    }

    fn found(found: FoundDocument, outcome: CacheOutcome) -> Self {
        Self { stored: found.stored, due: found.due, outcome }
    }

    /// Time since the backend confirmed the document.
    pub(crate) fn age(&self, now: Now) -> Duration {
        now.mono.since(self.stored.confirmed)
    }

    fn fetched(stored: Arc<StoredDocument>, outcome: CacheOutcome) -> Self {
        Self { due: stored.due, stored, outcome }
    }
}

/// The stored document, fresh or stale but not expired, without a fetch. For requests whose daily quota is used up.
pub(super) fn stored_only(found: Option<FoundDocument>) -> Result<Served, Refusal> {
    let found = found.ok_or(Refusal::Limited(LimitRule::Day))?;
    found.stored.used();
    let outcome = match found.verdict {
        Freshness::Fresh => CacheOutcome::Hit,
        Freshness::StaleWhileRevalidate | Freshness::StaleIfError => CacheOutcome::Stale,
        Freshness::Expired => return Err(Refusal::Limited(LimitRule::Day)),
    };
    Ok(Served::found(found, outcome))
}

/// The document: stored and fresh, or fetched, or stored and stale because the fetch failed.
pub(super) async fn fetch(
    engine: &DocumentEngine,
    target: &ResolvedTarget,
    found: Option<FoundDocument>,
    priority: FetchPriority<'_>,
    now: Now,
) -> Result<Served, Refusal> {
    if target.names_a_key {
        return Err(Refusal::ModelNotFound);
    }
    let key = &target.key;
    let found = match found {
        Some(fresh) if fresh.verdict == Freshness::Fresh => Some(fresh),
        // It may have been stored while the request was admitted.
        Some(_) | None => {
            engine.documents.find(key, now.mono).filter(|found| found.verdict != Freshness::Expired)
        }
    };
    let Some(found) = found else {
        return match engine.fetcher.fetch(key, priority).await {
            Ok((stored, outcome)) => Ok(Served::fetched(stored, outcome)),
            Err(why) => Err(refusal(&why)),
        };
    };
    found.stored.used();
    match found.verdict {
        Freshness::Fresh => Ok(Served::found(found, CacheOutcome::Hit)),
        Freshness::StaleWhileRevalidate => {
            engine.fetcher.refresh(key, &found.stored, priority, now.mono);
            Ok(Served::found(found, CacheOutcome::Stale))
        }
        Freshness::StaleIfError | Freshness::Expired => match engine.fetcher.fetch(key, priority).await {
            Ok((stored, _)) => Ok(Served::fetched(stored, CacheOutcome::Refreshed)),
            Err(WaitError::Fetch(FetchError::NoSuchModel)) => Err(Refusal::ModelNotFound),
            Err(_) => Ok(Served::found(found, CacheOutcome::StaleOnError)),
        },
    }
}

/// The refusal for a request without a document.
fn refusal(why: &WaitError) -> Refusal {
    let unavailable = |retry_after| Refusal::UpstreamUnavailable { retry_after };
    let failure = match why {
        WaitError::Fetch(FetchError::NoSuchModel) => return Refusal::ModelNotFound,
        WaitError::TimedOut => return Refusal::UpstreamTimeout,
        WaitError::Aborted => return Refusal::UpstreamInvalid,
        WaitError::Fetch(FetchError::Unlisted) => {
            return Refusal::ModelUnlisted { retry_after: PROBE_INTERVAL };
        }
        WaitError::Fetch(FetchError::Backend(failure)) => failure,
    };
    match failure {
        UpstreamFailure::Timeout(_) => Refusal::UpstreamTimeout,
        UpstreamFailure::Invalid(_) => Refusal::UpstreamInvalid,
        UpstreamFailure::ErrorStatus { retry_after, .. } => unavailable(*retry_after),
        UpstreamFailure::CircuitOpen(wait) => unavailable(Some(*wait)),
        UpstreamFailure::Unreachable(_) | UpstreamFailure::QueueFull => unavailable(None),
    }
}
