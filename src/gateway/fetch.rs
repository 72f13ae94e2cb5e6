//! Stage 5: the document. The only stage that knows the cache *and* the backend.
//!
//! A state machine without state: the verdict on what is stored and the end of a flight meet in one `match`. Not for:
//! making a fetch (`larder`), what a document looks like, nor who may see which form of it.

use std::sync::Arc;
use std::time::Duration;

use crate::cache::{Stored, Verdict};
use crate::clock::{Mono, Now};
use crate::upstream::Failure;

use super::refusal::Refusal;
use super::resolve::Target;
use crate::documents::PROBES_APART;
use crate::documents::Sake;
use crate::documents::{Found, InVain, Larder, NoDocument};
use crate::instruments::Outcome;

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

/// The stored document, whatever its age. Asks nobody: this is all that a request without a hold may have.
pub(super) fn look(found: Option<Found>) -> Option<Served> {
    let found = found?;
    found.stored.used();
    let outcome = match found.verdict {
        Verdict::Fresh => Outcome::Hit,
        Verdict::UsableWhileRefreshed | Verdict::UsableOnError => Outcome::Stale,
        Verdict::Gone => return None,
    };
    Some(Served::found(found, outcome))
}

/// The document: `found` and fresh, or fetched, or stored and stale because fetching failed.
pub(super) async fn fetch(
    larder: &Arc<Larder>,
    target: &Target,
    found: Option<Found>,
    sake: Sake,
    now: Now,
) -> Result<Served, Refusal> {
    if target.names_a_key {
        return Err(Refusal::ModelNotFound);
    }
    let key = &target.key;
    let found = match found {
        Some(fresh) if fresh.verdict == Verdict::Fresh => Some(fresh),
        // Something may have come while the request was admitted.
        Some(_) | None => larder.find(key, now.mono).filter(|found| found.verdict != Verdict::Gone),
    };
    let Some(found) = found else {
        return match larder.wait(key, sake).await {
            Ok((stored, outcome)) => Ok(Served::fetched(stored, outcome)),
            Err(why) => Err(refusal(&why)),
        };
    };
    found.stored.used();
    match found.verdict {
        Verdict::Fresh => Ok(Served::found(found, Outcome::Hit)),
        Verdict::UsableWhileRefreshed => {
            larder.refresh(key, &found.stored, sake, now.mono);
            Ok(Served::found(found, Outcome::Stale))
        }
        Verdict::UsableOnError | Verdict::Gone => match larder.wait(key, sake).await {
            Ok((stored, _)) => Ok(Served::fetched(stored, Outcome::Refreshed)),
            Err(InVain::Without(NoDocument::NoSuchModel)) => Err(Refusal::ModelNotFound),
            Err(_) => Ok(Served::found(found, Outcome::StaleOnError)),
        },
    }
}

/// What a caller is told who waited in vain.
fn refusal(why: &InVain) -> Refusal {
    let unavailable = |retry_after| Refusal::UpstreamUnavailable { retry_after };
    let failure = match why {
        InVain::Without(NoDocument::NoSuchModel) => return Refusal::ModelNotFound,
        InVain::NotInTime => return Refusal::UpstreamTimeout,
        InVain::Died => return Refusal::UpstreamInvalid,
        InVain::Without(NoDocument::Unlisted) => {
            return Refusal::ModelUnlisted { retry_after: PROBES_APART };
        }
        InVain::Without(NoDocument::Failed(failure)) => failure,
    };
    match failure {
        Failure::Late(_) => Refusal::UpstreamTimeout,
        Failure::Invalid(_) => Refusal::UpstreamInvalid,
        Failure::Refused { retry_after, .. } => unavailable(*retry_after),
        Failure::Resting(wait) => unavailable(Some(*wait)),
        Failure::Unreachable(_) | Failure::Crowded => unavailable(None),
    }
}
