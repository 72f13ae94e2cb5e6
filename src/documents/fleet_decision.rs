//! Decides a gateway's next step for a document that several gateways share. The functions are pure.
//!
//! All times are times of the store's clock. They are converted so that an error makes a document appear older, never
//! newer.

use std::time::Duration;

use crate::cache::{PublishedVersion, StoredDocument};
use scoregate_base::clock::{Mono, Now, Wall};
use scoregate_store::{
    AgreedRefresh, ClaimState, EngineClock, PublishedDocument, SharedDocumentState,
};

/// Tolerance for the confirmation time of a document, because gateways act on the same scheduled time a few milliseconds apart.
const TOLERANCE: Duration = Duration::from_millis(100);

/// The next step of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharedFetchStep {
    /// Take the published document.
    Take(PublishedDocument),
    /// Claim the document, and fetch it.
    Claim,
    /// Wait for the gateway that is fetching the document, for at most this long.
    Wait(Duration),
    /// Fail: the fetch of another gateway failed a moment ago.
    Fail,
}

/// A refresh that this gateway has followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowedRefresh {
    pub agreed: AgreedRefresh,
    /// When the refresh was detected. The confirmation times of this gateway's documents are compared with it.
    pub at: Mono,
}

/// The conditions under which a published document can be used.
#[derive(Clone, Copy, Debug, Default)]
pub struct FleetNeed {
    /// Whether the document becomes outdated when the backend refreshes.
    pub follows_backend: bool,
    /// The last refresh that this gateway detected or followed.
    pub last_detected: Mono,
    /// The time from which the stored document may be fetched again, if any.
    pub due_since: Option<Mono>,
    /// The document must have been confirmed at this time or later, if this is set.
    pub confirmed_since: Option<Mono>,
    /// The interval between requests for a document whose refresh is overdue.
    pub overdue_interval: Duration,
    /// A version that cannot be used.
    pub unusable: Option<u64>,
}

impl FleetNeed {
    /// The earliest confirmation time that suffices.
    pub fn since(
        &self,
        clock: &EngineClock,
        refresh: Option<AgreedRefresh>,
        followed: Option<FollowedRefresh>,
    ) -> Wall {
        let wanted = self.due_since.max(self.confirmed_since);
        let wanted = wanted.map(|since| earliest(clock, since).minus(TOLERANCE));
        let detected = self.follows_backend.then(|| {
            let own = match followed {
                Some(followed) if followed.at >= self.last_detected => followed.agreed.detected,
                Some(_) | None => latest(clock, self.last_detected),
            };
            own.max(refresh.map_or(own, |refresh| refresh.detected))
        });
        [wanted, detected]
            .into_iter()
            .flatten()
            .max()
            .unwrap_or_default()
    }

    /// The next step if a confirmation at `since` or later suffices.
    pub fn step(&self, state: &SharedDocumentState, since: Wall) -> SharedFetchStep {
        let now = state.clock.at;
        match (
            state.published.as_ref().filter(|published| {
                let is_fresh =
                    published.due > now || published.confirmed.plus(self.overdue_interval) >= now;
                published.confirmed >= since && is_fresh && self.unusable != Some(published.number)
            }),
            state.claim,
        ) {
            (Some(published), _) => SharedFetchStep::Take(published.clone()),
            (None, ClaimState::Free) => SharedFetchStep::Claim,
            (None, ClaimState::Held(left)) => SharedFetchStep::Wait(left),
            (None, ClaimState::Failed(_)) => SharedFetchStep::Fail,
        }
    }
}

/// The latest time that the store's clock may have shown at this local time.
pub fn latest(clock: &EngineClock, at: Mono) -> Wall {
    Now {
        wall: clock.at,
        mono: clock.sent,
    }
    .wall_at(at)
}

/// The earliest time that the store's clock may have shown at this local time.
pub fn earliest(clock: &EngineClock, at: Mono) -> Wall {
    Now {
        wall: clock.at,
        mono: clock.received,
    }
    .wall_at(at)
}

/// The earliest local time at which the store's clock may have shown this time.
pub fn not_before(clock: &EngineClock, wall: Wall) -> Mono {
    Now {
        wall: clock.at,
        mono: clock.sent,
    }
    .mono_at(wall)
}

/// The latest local time at which the store's clock may have shown this time.
pub fn not_after(clock: &EngineClock, wall: Wall) -> Mono {
    Now {
        wall: clock.at,
        mono: clock.received,
    }
    .mono_at(wall)
}

/// The earliest time of a refresh that can explain a change in this document: just after the document was last
/// confirmed. A refresh that another gateway detected at this time or later is the same refresh.
pub fn same_since(clock: &EngineClock, before: &StoredDocument) -> Wall {
    let confirmed = before.published.map_or_else(
        || earliest(clock, before.confirmed),
        |PublishedVersion { confirmed, .. }| confirmed,
    );
    confirmed.plus(Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn at(millis: u64) -> Mono {
        Mono::from_nanos(millis * 1_000_000)
    }

    fn wall(millis: u64) -> Wall {
        Wall::from_millis(1_000_000_000 + millis)
    }

    /// A clock whose reading of 500 s was received 10 ms after it was requested.
    fn clock() -> EngineClock {
        EngineClock {
            at: wall(500_000),
            sent: at(90_000),
            received: at(90_010),
        }
    }

    fn state(claim: ClaimState, published: Option<(Wall, Wall)>) -> SharedDocumentState {
        let published = published.map(|(confirmed, due)| PublishedDocument {
            number: 3,
            confirmed,
            due,
            label: String::new(),
        });
        SharedDocumentState {
            number: 3,
            claim,
            published,
            refresh: None,
            clock: clock(),
        }
    }

    fn need() -> FleetNeed {
        FleetNeed {
            follows_backend: true,
            overdue_interval: MINUTE,
            ..FleetNeed::default()
        }
    }

    #[test]
    fn errors_of_conversion_make_a_document_older() {
        let clock = clock();
        assert_eq!(
            (earliest(&clock, at(90_010)), latest(&clock, at(90_010))),
            (wall(500_000), wall(500_010))
        );
        let confirmed = earliest(&clock, at(80_000));
        assert!(
            not_before(&clock, confirmed) <= at(80_000) && confirmed <= latest(&clock, at(80_000))
        );
        assert!(not_after(&clock, latest(&clock, at(80_000))) >= at(80_000));
    }

    #[test]
    fn a_published_document_is_taken_if_it_is_current() {
        let due_later = wall(900_000);
        let taken = |published, since| {
            matches!(
                need().step(&state(ClaimState::Free, Some(published)), since),
                SharedFetchStep::Take(_)
            )
        };
        assert!(taken((wall(400_000), due_later), wall(400_000)));
        assert!(
            !taken((wall(400_000), due_later), wall(400_001)),
            "confirmed too early"
        );
        assert!(
            taken((wall(440_000), wall(450_000)), wall(0)),
            "overdue, but confirmed within a minute"
        );
        assert!(!taken((wall(439_999), wall(450_000)), wall(0)), "overdue");
        let unusable = FleetNeed {
            unusable: Some(3),
            ..need()
        };
        let step = unusable.step(
            &state(ClaimState::Free, Some((wall(400_000), due_later))),
            wall(0),
        );
        assert_eq!(step, SharedFetchStep::Claim);
    }

    #[test]
    fn without_a_usable_document_the_claim_decides() {
        let step = |claim| need().step(&state(claim, None), wall(0));
        assert_eq!(step(ClaimState::Free), SharedFetchStep::Claim);
        assert_eq!(
            step(ClaimState::Held(MINUTE)),
            SharedFetchStep::Wait(MINUTE)
        );
        assert_eq!(step(ClaimState::Failed(MINUTE)), SharedFetchStep::Fail);
    }

    #[test]
    fn a_refresh_requires_a_confirmation_after_its_detection() {
        let agreed = AgreedRefresh {
            detected: wall(480_000),
            expected: wall(900_000),
        };
        let clock = clock();
        assert_eq!(need().since(&clock, Some(agreed), None), agreed.detected);
        let followed = FollowedRefresh {
            agreed,
            at: not_after(&clock, agreed.detected),
        };
        let same = FleetNeed {
            last_detected: followed.at,
            ..need()
        };
        assert_eq!(
            same.since(&clock, None, Some(followed)),
            agreed.detected,
            "exactly, on every gateway"
        );
        let own = FleetNeed {
            last_detected: at(89_000),
            ..need()
        };
        assert_eq!(
            own.since(&clock, Some(agreed), Some(followed)),
            wall(499_000)
        );
        let independent = FleetNeed {
            follows_backend: false,
            ..own
        };
        assert_eq!(
            independent.since(&clock, Some(agreed), Some(followed)),
            Wall::default()
        );
        let due = FleetNeed {
            due_since: Some(at(90_010)),
            ..independent
        };
        assert_eq!(
            due.since(&clock, None, None),
            wall(500_000).minus(TOLERANCE)
        );
        let polled = FleetNeed {
            confirmed_since: Some(at(91_010)),
            ..due
        };
        assert_eq!(
            polled.since(&clock, None, None),
            wall(501_000).minus(TOLERANCE)
        );
    }
}
