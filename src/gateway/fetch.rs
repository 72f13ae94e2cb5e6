//! Stage 5: the document. The only stage that knows the cache *and* the backend.
//!
//! A state machine without state: the verdict on what is stored and the end of a flight meet in one `match`. Not for:
//! making a fetch (`larder`), what a document looks like, nor who may see which form of it.

use std::sync::Arc;

use crate::cache::{Stored, Verdict};
use crate::clock::Now;
use crate::routes::DocumentKey;
use crate::upstream::{Failure, Urgency};

use super::larder::{InVain, Larder, NoDocument};
use super::outcome::Outcome;
use super::refusal::Refusal;

/// A document to serve.
#[derive(Clone, Debug)]
pub(super) struct Served {
    /// The document with its dates.
    pub(super) stored: Arc<Stored>,
    /// Where it came from.
    pub(super) outcome: Outcome,
}

/// The stored document, whatever its age. Asks nobody: this is all that a request without a hold may have.
pub(super) fn look(larder: &Larder, key: &DocumentKey, now: Now) -> Option<Served> {
    let (stored, verdict) = larder.find(key, now.mono)?;
    let outcome = match verdict {
        Verdict::Fresh => Outcome::Hit,
        Verdict::UsableWhileRefreshed | Verdict::UsableOnError => Outcome::Stale,
        Verdict::Gone => return None,
    };
    Some(Served { stored, outcome })
}

/// The document: stored, or fetched, or stored and stale because fetching failed.
pub(super) async fn fetch(
    larder: &Arc<Larder>,
    key: &DocumentKey,
    urgency: Urgency,
    now: Now,
) -> Result<Served, Refusal> {
    match larder.find(key, now.mono) {
        Some((stored, Verdict::Fresh)) => Ok(Served { stored, outcome: Outcome::Hit }),
        Some((stored, Verdict::UsableWhileRefreshed)) => {
            larder.refresh(key);
            Ok(Served { stored, outcome: Outcome::Stale })
        }
        Some((stale, Verdict::UsableOnError)) => match larder.wait(key, urgency).await {
            Ok((stored, _)) => Ok(Served { stored, outcome: Outcome::Refreshed }),
            Err(InVain::Without(NoDocument::NoSuchModel)) => Err(Refusal::ModelNotFound),
            Err(_) => Ok(Served { stored: stale, outcome: Outcome::StaleOnError }),
        },
        Some((_, Verdict::Gone)) | None => match larder.wait(key, urgency).await {
            Ok((stored, outcome)) => Ok(Served { stored, outcome }),
            Err(why) => Err(refusal(&why)),
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
