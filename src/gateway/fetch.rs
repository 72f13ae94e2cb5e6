//! Stage 5: the document. The only stage that knows the cache *and* the backend.
//!
//! The verdict on the stored document and the result of a fetch meet in one `match`. Not for: making a fetch (`documents`),
//! nor for which form of a document the caller may see.

use std::sync::Arc;
use std::time::Duration;

use crate::cache::{Stored, Verdict};
use crate::clock::{Mono, Now};
use crate::documents::{DocumentEngine, FetchError, FetchPriority, Found, PROBE_INTERVAL, WaitError};
use crate::instruments::Outcome;
use crate::limits::Rule;
use crate::upstream::Failure;

use super::refusal::Refusal;
use super::resolve::Target;

/// A document to serve.
#[derive(Clone, Debug)]
pub(super) struct Served {
    /// The document with its dates.
    pub(super) stored: Arc<Stored>,
    /// When its refresh is due.
    pub(super) due: Mono,
    /// Where it came from.
    pub(crate) outcome: Outcome,
}

impl Served {
    fn found(found: Found, outcome: Outcome) -> Self {
        Self { stored: found.stored, due: found.due, outcome }
    }

    /// How long ago the backend confirmed it.
    pub(crate) fn age(&self, now: Now) -> Duration {
        now.mono.since(self.stored.confirmed)
    }

    fn fetched(stored: Arc<Stored>, outcome: Outcome) -> Self {
        Self { due: stored.due, stored, outcome }
    }
}

/// The stored document, whatever its age, without asking the backend: all that a request may have whose day is spent.
pub(super) fn look(found: Option<Found>) -> Result<Served, Refusal> {
    let found = found.ok_or(Refusal::Limited(Rule::Day))?;
    found.stored.used();
    let outcome = match found.verdict {
        Verdict::Fresh => Outcome::Hit,
        Verdict::UsableWhileRefreshed | Verdict::UsableOnError => Outcome::Stale,
        Verdict::Gone => return Err(Refusal::Limited(Rule::Day)),
    };
    Ok(Served::found(found, outcome))
}

/// The document: `found` and fresh, or fetched, or stored and stale because fetching failed.
pub(super) async fn fetch(
    engine: &DocumentEngine,
    target: &Target,
    found: Option<Found>,
    priority: FetchPriority,
    now: Now,
) -> Result<Served, Refusal> {
    if target.names_a_key {
        return Err(Refusal::ModelNotFound);
    }
    let key = &target.key;
    let found = match found {
        Some(fresh) if fresh.verdict == Verdict::Fresh => Some(fresh),
        // Something may have come while the request was admitted.
        Some(_) | None => engine.documents.find(key, now.mono).filter(|found| found.verdict != Verdict::Gone),
    };
    let Some(found) = found else {
        return match engine.fetcher.fetch(key, priority).await {
            Ok((stored, outcome)) => Ok(Served::fetched(stored, outcome)),
            Err(why) => Err(refusal(&why)),
        };
    };
    found.stored.used();
    match found.verdict {
        Verdict::Fresh => Ok(Served::found(found, Outcome::Hit)),
        Verdict::UsableWhileRefreshed => {
            engine.fetcher.refresh(key, &found.stored, priority, now.mono);
            Ok(Served::found(found, Outcome::Stale))
        }
        Verdict::UsableOnError | Verdict::Gone => match engine.fetcher.fetch(key, priority).await {
            Ok((stored, _)) => Ok(Served::fetched(stored, Outcome::Refreshed)),
            Err(WaitError::Fetch(FetchError::NoSuchModel)) => Err(Refusal::ModelNotFound),
            Err(_) => Ok(Served::found(found, Outcome::StaleOnError)),
        },
    }
}

/// The refusal of a request that got no document.
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
        Failure::Late(_) => Refusal::UpstreamTimeout,
        Failure::Invalid(_) => Refusal::UpstreamInvalid,
        Failure::Refused { retry_after, .. } => unavailable(*retry_after),
        Failure::Resting(wait) => unavailable(Some(*wait)),
        Failure::Unreachable(_) | Failure::Crowded => unavailable(None),
    }
}
