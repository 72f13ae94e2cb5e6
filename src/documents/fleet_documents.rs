//! The documents that several gateways share. Determines whose turn it is to fetch, and which refreshes the gateways agree on.
//!
//! While the store is unreachable, every gateway fetches for itself, and no fetch waits for the store. A background
//! task probes the store. `fleet_decision` decides which document suffices.

#[cfg(test)]
#[path = "tests_of_fleet_documents.rs"]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    cache::{PublishedVersion, StoredDocument},
    instruments::{DocumentInstruments, SharedFetchEnd},
};
use scoregate_base::{
    clock::{Clock, Mono, Wall},
    routes::DocumentKey,
};
use scoregate_store::{
    AgreedRefresh, EngineClock, Publication, PublishedDocument, SharedDocuments, StoreError,
};

use super::fleet_decision::{
    FleetNeed, FollowedRefresh, SharedFetchStep, earliest, latest, not_after, same_since,
};

/// The pause after a failure of the store's notifications.
const PAUSE_OF_HINTS: Duration = Duration::from_secs(5);
/// Maximum wait for another gateway if no notification arrives.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Time for which other gateways do not repeat a failed fetch.
// This equals the time for which a gateway caches a failed fetch.
const HOLD_OFF: Duration = Duration::from_millis(500);
/// The name under which polls for a refresh are claimed. No document has this address.
const PROBE: &str = "probe";

/// The documents that all gateways with the same backend share.
pub struct SharedFetches {
    /// The shared documents in the store.
    pub shared: Arc<dyn SharedDocuments>,
    /// The identity of the backend.
    pub backend: String,
    /// The longest time that a fetch may take.
    pub claim_duration: Duration,
}

/// A document that this gateway has claimed.
#[derive(Clone, Debug)]
pub struct FleetClaim {
    number: u64,
    /// The document that was published when the claim was made. No other gateway publishes during the claim.
    published: Option<PublishedDocument>,
    clock: EngineClock,
}

/// A document taken from the store.
#[derive(Debug)]
pub struct TakenDocument {
    pub published: PublishedDocument,
    /// `None` if this gateway already has the content.
    pub content: Option<Bytes>,
    pub clock: EngineClock,
}

/// The result of a gateway's request for a document.
#[derive(Debug)]
pub enum FleetTurn {
    /// Another gateway fetched the document.
    Taken(TakenDocument),
    /// This gateway has to fetch the document.
    Claimed(FleetClaim),
    /// The fetch of another gateway failed a moment ago.
    Failed,
    /// This gateway fetches for itself.
    Alone,
}

/// The documents that several gateways share.
pub struct FleetDocuments {
    fetches: SharedFetches,
    /// Whether the last call to the store failed.
    is_away: AtomicBool,
    followed: Mutex<Option<FollowedRefresh>>,
    /// A refresh that other gateways agreed on. It is kept until the refresher takes it.
    noted: Mutex<Option<FollowedRefresh>>,
    has_noted: Notify,
    clock: Clock,
    instruments: Arc<DocumentInstruments>,
}

impl FleetClaim {
    /// The publication of a document that was confirmed under this claim.
    pub fn publication(
        &self,
        content: Bytes,
        confirmed: Mono,
        due: Wall,
        label: String,
    ) -> Publication {
        Publication {
            number: self.number,
            content: Some(content),
            confirmed: earliest(&self.clock, confirmed),
            due,
            label,
        }
    }
}

impl FleetDocuments {
    pub fn new(
        fetches: SharedFetches,
        clock: Clock,
        instruments: Arc<DocumentInstruments>,
    ) -> Self {
        let (is_away, followed, noted, has_noted) = Default::default();
        Self {
            fetches,
            is_away,
            followed,
            noted,
            has_noted,
            clock,
            instruments,
        }
    }

    pub fn backend(&self) -> &str {
        &self.fetches.backend
    }

    /// Requests a document of which this gateway has the version `known`. Takes it, claims it, or waits for the gateway
    /// that is fetching it.
    pub async fn turn(&self, name: &str, need: &FleetNeed, known: Option<u64>) -> FleetTurn {
        let turn = self
            .attempt(self.try_turn(name, need, known))
            .await
            .unwrap_or(FleetTurn::Alone);
        self.instruments.shared_fetches.count(match turn {
            FleetTurn::Taken(_) => SharedFetchEnd::Taken,
            FleetTurn::Claimed(_) => SharedFetchEnd::Claimed,
            FleetTurn::Failed => SharedFetchEnd::Failed,
            FleetTurn::Alone => SharedFetchEnd::Alone,
        });
        turn
    }

    async fn try_turn(
        &self,
        name: &str,
        need: &FleetNeed,
        known: Option<u64>,
    ) -> Result<FleetTurn, StoreError> {
        let shared = &self.fetches.shared;
        let claim_duration = self.fetches.claim_duration;
        // After a claim expires, another gateway may claim the document. After this deadline, the gateway fetches the document
        // itself.
        let deadline = self.clock.mono().plus(2 * claim_duration);
        let mut need = *need;
        loop {
            // The subscription begins before the state is read, so that a publication in between ends the wait.
            let published = shared.published();
            let state = shared.state(name).await?;
            self.note(state.refresh, &state.clock);
            let since = need.since(&state.clock, state.refresh, self.followed());
            match need.step(&state, since) {
                SharedFetchStep::Take(published) => {
                    let number = published.number;
                    if let Some(taken) = self.take(name, published, state.clock, known).await? {
                        return Ok(FleetTurn::Taken(taken));
                    }
                    // The content was lost in a database crash, or was replaced a moment ago.
                    need.unusable = Some(number);
                }
                SharedFetchStep::Claim => {
                    let claimed = shared.claim(name, state.number, claim_duration).await?;
                    if let Some((number, clock)) = claimed {
                        let published = state.published;
                        return Ok(FleetTurn::Claimed(FleetClaim {
                            number,
                            published,
                            clock,
                        }));
                    }
                }
                SharedFetchStep::Wait(left) if self.clock.mono() < deadline => {
                    let left = left.clamp(Duration::from_millis(1), POLL_INTERVAL);
                    if let Ok(hint) = self.clock.within(left, published).await {
                        hint?;
                    }
                }
                SharedFetchStep::Wait(_) => return Ok(FleetTurn::Alone),
                SharedFetchStep::Fail => return Ok(FleetTurn::Failed),
            }
        }
    }

    /// A published document. Its content is not read if its number is `known`. `None` if the store has no content.
    async fn take(
        &self,
        name: &str,
        published: PublishedDocument,
        clock: EngineClock,
        known: Option<u64>,
    ) -> Result<Option<TakenDocument>, StoreError> {
        let is_known = known == Some(published.number);
        let content = if is_known {
            None
        } else {
            self.fetches.shared.content(name, published.number).await?
        };
        let is_usable = is_known || content.is_some();
        Ok(is_usable.then_some(TakenDocument {
            published,
            content,
            clock,
        }))
    }

    /// The document that was published when a claim was made, unless this gateway has it. Its validators make a cheaper
    /// conditional request possible.
    pub async fn published_before(
        &self,
        name: &str,
        claim: &FleetClaim,
        known: Option<u64>,
    ) -> Option<TakenDocument> {
        let published = claim
            .published
            .clone()
            .filter(|published| known != Some(published.number))?;
        let content = self
            .attempt(self.fetches.shared.content(name, published.number))
            .await?;
        content.map(|content| TakenDocument {
            published,
            content: Some(content),
            clock: claim.clock,
        })
    }

    /// Publishes a document that this gateway fetched. `known` is an earlier version with the same content. If
    /// it is still the published version, only a confirmation is published. Returns the document's version, or
    /// `None` if it was not published.
    pub async fn publish(
        &self,
        name: &str,
        claim: &FleetClaim,
        publication: Publication,
        known: Option<PublishedVersion>,
    ) -> Option<PublishedVersion> {
        let Publication {
            number, confirmed, ..
        } = publication;
        let confirmation = Publication {
            content: None,
            ..publication.clone()
        };
        if let Some(PublishedVersion { number, .. }) = known.filter(|known| {
            claim
                .published
                .as_ref()
                .is_some_and(|published| published.number == known.number)
        }) && self
            .attempt(self.fetches.shared.publish(name, confirmation))
            .await?
        {
            return Some(PublishedVersion { number, confirmed });
        }
        let is_published = self
            .attempt(self.fetches.shared.publish(name, publication))
            .await?;
        if !is_published {
            self.instruments
                .shared_fetches
                .count(SharedFetchEnd::Rejected);
        }
        is_published.then_some(PublishedVersion { number, confirmed })
    }

    /// Ends a claim without a document. After a failure, the other gateways wait briefly before they retry.
    pub async fn release(&self, name: &str, claim: &FleetClaim, has_failed: bool) {
        let hold_off = has_failed.then_some(HOLD_OFF);
        self.attempt(self.fetches.shared.release(name, claim.number, hold_off))
            .await;
    }

    /// Requests the right to poll the backend for a refresh, unless another gateway polled after `since`.
    pub async fn probe_turn(&self, since: Mono) -> FleetTurn {
        let need = FleetNeed {
            confirmed_since: Some(since),
            overdue_interval: Duration::MAX,
            ..FleetNeed::default()
        };
        self.attempt(self.try_turn(PROBE, &need, None))
            .await
            .unwrap_or(FleetTurn::Alone)
    }

    /// Publishes the time at which this gateway polled the backend.
    pub async fn probed(&self, claim: &FleetClaim, at: Mono) {
        let poll = claim.publication(Bytes::new(), at, Wall::default(), String::new());
        self.publish(PROBE, claim, poll, None).await;
    }

    /// Agrees with the other gateways on a refresh that was detected at `at` because a document has changed. If no
    /// document is given, the refresh counts as new. `None` if this gateway works alone.
    pub async fn agree(
        &self,
        changed: Option<(&DocumentKey, &StoredDocument, &StoredDocument)>,
        at: Mono,
        expected: Mono,
    ) -> Option<FollowedRefresh> {
        let agreeing = async {
            let (_, clock) = self.fetches.shared.refresh().await?;
            let [detected, expected] = [at, expected].map(|at| latest(&clock, at));
            let same_since = changed.map_or(detected, |(_, before, _)| same_since(&clock, before));
            let revealed_by =
                changed.and_then(|(key, _, after)| Some((key.address(), after.published?.number)));
            let own = AgreedRefresh { detected, expected };
            let agreed = self
                .fetches
                .shared
                .agree(own, same_since, revealed_by)
                .await?;
            Ok(FollowedRefresh {
                agreed,
                at: not_after(&clock, agreed.detected),
            })
        };
        let agreed = self.attempt(agreeing).await?;
        Some(self.follow(agreed))
    }

    /// Records that this gateway follows a refresh, and returns it. If the same refresh was already recorded, returns it as first recorded.
    pub fn follow(&self, refresh: FollowedRefresh) -> FollowedRefresh {
        // The comparison and the replacement are atomic, because fetches and the refresher may follow refreshes
        // concurrently.
        let mut followed = self.followed.lock();
        match *followed {
            Some(known) if known.agreed.detected == refresh.agreed.detected => known,
            Some(known) if known.agreed.detected > refresh.agreed.detected => refresh,
            Some(_) | None => *followed.insert(refresh),
        }
    }

    /// The newest refresh that this gateway has followed.
    pub fn followed(&self) -> Option<FollowedRefresh> {
        *self.followed.lock()
    }

    /// Removes documents from the store.
    pub async fn withdraw(&self, names: Vec<String>) {
        self.attempt(self.fetches.shared.withdraw(names)).await;
    }

    /// Reads the newest refresh whenever the store reports a change.
    pub async fn watch(&self) {
        loop {
            if self.fetches.shared.published().await.is_err() {
                // Without the pause, this would be a busy loop during a database outage.
                self.clock.sleep(PAUSE_OF_HINTS).await;
            }
            let refresh = self.attempt(self.fetches.shared.refresh()).await;
            if let Some((refresh, clock)) = refresh {
                self.note(refresh, &clock);
            }
        }
    }

    /// Waits for a refresh that another gateway detected.
    pub async fn next_agreed(&self) -> FollowedRefresh {
        loop {
            let noted = self.noted.lock().take();
            match noted.filter(|noted| self.is_new(noted.agreed)) {
                Some(noted) => return noted,
                None => self.has_noted.notified().await,
            }
        }
    }

    fn is_new(&self, refresh: AgreedRefresh) -> bool {
        self.followed()
            .is_none_or(|followed| refresh.detected > followed.agreed.detected)
    }

    fn note(&self, refresh: Option<AgreedRefresh>, clock: &EngineClock) {
        let Some(agreed) = refresh.filter(|refresh| self.is_new(*refresh)) else {
            return;
        };
        // This replaces a refresh that the refresher has not processed yet, because it needs only the newest one.
        *self.noted.lock() = Some(FollowedRefresh {
            agreed,
            at: not_after(clock, agreed.detected),
        });
        self.has_noted.notify_one();
    }

    /// Probes the store if it is unreachable. Called every few seconds.
    pub async fn ask_again(&self) {
        // The flag only saves calls, so a stale value costs at most one call.
        if !self.is_away.load(Ordering::Relaxed) {
            return;
        }
        if let Some((refresh, clock)) = self.record(self.fetches.shared.refresh().await) {
            self.note(refresh, &clock);
        }
    }

    /// Makes a call to the store, unless the last call failed.
    async fn attempt<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Option<T> {
        if self.is_away.load(Ordering::Relaxed) {
            return None;
        }
        self.record(call.await)
    }

    /// Records whether the store can be used, based on the result of a call.
    fn record<T>(&self, result: Result<T, StoreError>) -> Option<T> {
        let was_away = self.is_away.swap(result.is_err(), Ordering::Relaxed);
        match result {
            Ok(value) => {
                if was_away {
                    tracing::info!("shared documents can be used again");
                }
                Some(value)
            }
            Err(error) => {
                if !was_away {
                    tracing::warn!(%error, "shared documents cannot be used; this gateway fetches for itself");
                }
                None
            }
        }
    }
}
