//! Whether the key directory has the changes that other gateways made. After a pause of the process, or once the store
//! is reachable again, requests wait until the directory has these changes.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use tokio::sync::{Notify, watch};

use scoregate_base::clock::{Clock, Mono, Now, Wall};

/// Maximum age at which a reading counts as recent. The change feed is read every second, so an older reading means that the process
/// was paused or the store is unreachable.
const MAX_READING_AGE: Duration = Duration::from_secs(4);
/// Maximum time that a request waits for the next reading, and the timeout of a reading. This timeout plus the interval
/// of readings is less than [`MAX_READING_AGE`], so no request waits for a store that has become unreachable.
pub const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(2);

/// Key changes may have been missed for longer than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("key changes were last read too long ago")]
pub struct KeysOutdated;

/// The time of the last reading of a shared store's change feed. The default is for a store that is not shared, where
/// no changes can be missing.
#[derive(Debug, Default)]
pub struct KeyFreshness {
    is_shared: bool,
    /// The time when the last complete reading began, in monotonic time and in wall time. Wall time continues while the
    /// machine is suspended.
    mono: AtomicU64,
    wall: AtomicU64,
    /// Changes may be missing until the feed is read again.
    must_read: AtomicBool,
    /// The directory was loaded from the local copy, and the store has not been read since.
    is_copied: AtomicBool,
    /// The newest attempt.
    attempt: watch::Sender<FeedAttempt>,
    wake: Notify,
    max_age: Option<Duration>,
}

#[derive(Clone, Copy, Debug, Default)]
struct FeedAttempt {
    began: Option<Now>,
    is_failed: bool,
    /// Changes may have been made after the attempt, so its result is outdated.
    is_outdated: bool,
}

impl KeyFreshness {
    /// Creates the state for a shared store. Requests are refused if the last reading is older than `max_age`.
    pub fn shared(max_age: Option<Duration>) -> Self {
        Self {
            is_shared: true,
            max_age,
            ..Self::default()
        }
    }

    /// Waits until the directory has all changes made before `now`. Does not wait if the last reading is recent or if
    /// the store is unreachable.
    pub(crate) async fn ensure(&self, clock: &Clock, now: Now) -> Result<(), KeysOutdated> {
        if self.is_current(now) {
            return Ok(());
        }
        let mut attempts = self.attempt.subscribe();
        let newest = *attempts.borrow();
        // After a failed attempt, the store is unreachable, and waiting would not help.
        if !newest.is_failed || newest.is_outdated {
            self.wake.notify_one();
            // A timeout is not an error, because the age is checked next.
            drop(
                clock
                    .within(
                        CATCH_UP_TIMEOUT,
                        attempts.wait_for(|attempt| {
                            attempt.began.is_some_and(|began| {
                                began.mono >= now.mono && began.wall >= now.wall
                            }) && !attempt.is_outdated
                        }),
                    )
                    .await,
            );
        }
        match self.max_age {
            Some(max_age) if self.age(clock.now()) > max_age => Err(KeysOutdated),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether the last reading is recent.
    pub(crate) fn is_current(&self, now: Now) -> bool {
        !self.is_shared
            || self.age(now) <= MAX_READING_AGE && !self.must_read.load(Ordering::Relaxed)
    }

    /// Records that the directory was loaded from a local copy that was complete at `read_at`. Requests do not wait for
    /// the store.
    pub(crate) fn loaded_from_copy(&self, read_at: Wall, now: Now) {
        self.mono.store(now.mono.nanos(), Ordering::Relaxed);
        self.wall.store(read_at.millis(), Ordering::Relaxed);
        // The flag is stored last: a thread that sees it also sees the times of the copy.
        self.is_copied.store(true, Ordering::Release);
        self.attempt.send_replace(FeedAttempt {
            began: Some(now),
            is_failed: true,
            is_outdated: false,
        });
    }

    /// Whether the directory was loaded from the local copy.
    pub fn is_copied(&self) -> bool {
        // Pairs with the stores in `loaded_from_copy` and `attempted`.
        self.is_copied.load(Ordering::Acquire)
    }

    /// The age of the local copy, if the directory was loaded from it and the store has not been read since.
    pub fn age_of_copy(&self, now: Now) -> Option<Duration> {
        self.is_copied().then(|| self.age(now))
    }

    /// Time since the last complete reading.
    pub(crate) fn age(&self, now: Now) -> Duration {
        if !self.is_shared {
            return Duration::ZERO;
        }
        // A reading that ends between these loads can only make the age too large, because the larger age counts.
        let mono = self.mono.load(Ordering::Relaxed);
        let wall = self.wall.load(Ordering::Relaxed);
        now.mono
            .since(Mono::from_nanos(mono))
            .max(now.wall.since(Wall::from_millis(wall)))
    }

    /// Records an attempt, begun at `began`, to read the feed.
    pub(crate) fn attempted(&self, began: Now, succeeded: bool) {
        if !self.is_shared {
            return;
        }
        if succeeded {
            // The times are stored before `is_copied`, because readers load `is_copied` first. This also clears
            // requests for a reading that were made after this reading began. They are made again with the next report
            // of outdated terms.
            self.mono.store(began.mono.nanos(), Ordering::Relaxed);
            self.wall.store(began.wall.millis(), Ordering::Relaxed);
            self.must_read.store(false, Ordering::Relaxed);
            self.is_copied.store(false, Ordering::Release);
        }
        self.attempt.send_replace(FeedAttempt {
            began: Some(began),
            is_failed: !succeeded,
            is_outdated: false,
        });
    }

    /// Makes requests wait for the next reading, because changes are missing or, after the store was unreachable, may
    /// be missing.
    pub(crate) fn require_reading(&self) {
        if self.is_shared {
            self.must_read.store(true, Ordering::Relaxed);
            self.attempt
                .send_modify(|attempt| attempt.is_outdated = true);
            self.wake.notify_one();
        }
    }

    /// Waits until the feed should be read: after `interval`, or earlier if a request is waiting.
    pub async fn next_reading(&self, clock: &Clock, interval: Duration) {
        tokio::select! {
            () = self.wake.notified() => {}
            () = clock.sleep(interval) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use crate::accounts::key_freshness::*;

    /// The freshness of a directory that was read at startup, and its clock.
    fn read_at_start(
        max_age: Option<Duration>,
    ) -> (KeyFreshness, Clock, scoregate_base::clock::ManualClock) {
        let (clock, manual) = Clock::manual(Wall::from_seconds(1_763_726_400));
        let freshness = KeyFreshness::shared(max_age);
        freshness.attempted(clock.now(), true);
        (freshness, clock, manual)
    }

    #[tokio::test]
    async fn without_a_shared_store_keys_are_never_outdated() {
        let (clock, manual) = Clock::manual(Wall::from_seconds(1_763_726_400));
        let freshness = KeyFreshness::default();
        freshness.attempted(clock.now(), true);
        manual.advance(Duration::from_hours(100));
        freshness.require_reading();
        assert!(freshness.is_current(clock.now()));
        assert_eq!(freshness.age(clock.now()), Duration::ZERO);
    }

    #[tokio::test]
    async fn after_a_pause_or_a_suspend_requests_wait_for_the_next_reading() {
        for pause in [
            scoregate_base::clock::ManualClock::advance,
            scoregate_base::clock::ManualClock::suspend,
        ] {
            let (freshness, clock, manual) = read_at_start(None);
            pause(&manual, Duration::from_mins(10));
            let mut request = Box::pin(freshness.ensure(&clock, clock.now()));
            assert!(futures_util::poll!(&mut request).is_pending());
            freshness.attempted(clock.now(), true);
            assert_eq!(request.await, Ok(()));
            assert!(freshness.is_current(clock.now()));
        }
    }

    #[tokio::test]
    async fn requests_do_not_wait_while_the_store_is_unreachable_and_are_refused_after_the_maximum_age()
     {
        for (max_age, expected) in [
            (None, Ok(())),
            (Some(Duration::from_mins(1)), Err(KeysOutdated)),
        ] {
            let (freshness, clock, manual) = read_at_start(max_age);
            manual.advance(Duration::from_mins(1));
            freshness.attempted(clock.now(), false);
            assert_eq!(freshness.ensure(&clock, clock.now()).await, Ok(()));
            manual.advance(Duration::from_secs(1));
            assert_eq!(freshness.ensure(&clock, clock.now()).await, expected);
        }
    }

    #[tokio::test]
    async fn the_age_of_a_local_copy_is_that_of_its_reading_until_the_store_is_read() {
        for (max_age, expected) in [
            (None, Ok(())),
            (Some(Duration::from_mins(2)), Err(KeysOutdated)),
        ] {
            let (clock, manual) = Clock::manual(Wall::from_seconds(1_763_726_400));
            let freshness = KeyFreshness::shared(max_age);
            assert_eq!(freshness.age_of_copy(clock.now()), None);
            let read_at = clock.now().wall.minus(Duration::from_mins(1));
            freshness.loaded_from_copy(read_at, clock.now());
            assert_eq!(
                freshness.ensure(&clock, clock.now()).await,
                Ok(()),
                "nothing to wait for"
            );
            manual.advance(Duration::from_secs(61));
            assert_eq!(
                freshness.age_of_copy(clock.now()),
                Some(Duration::from_secs(121))
            );
            assert_eq!(freshness.ensure(&clock, clock.now()).await, expected);
            freshness.attempted(clock.now(), false);
            assert!(freshness.is_copied());
            freshness.attempted(clock.now(), true);
            assert_eq!(freshness.age_of_copy(clock.now()), None);
            assert!(freshness.is_current(clock.now()));
        }
    }

    #[tokio::test]
    async fn requests_wait_for_a_reading_once_the_store_is_reachable_again() {
        let (freshness, clock, _manual) = read_at_start(None);
        freshness.attempted(clock.now(), false);
        freshness.require_reading();
        let mut request = Box::pin(freshness.ensure(&clock, clock.now()));
        // The failed attempt does not count, although it began at the same time.
        assert_eq!(futures_util::poll!(&mut request), Poll::Pending);
        freshness.attempted(clock.now(), true);
        assert_eq!(request.await, Ok(()));
    }
}
