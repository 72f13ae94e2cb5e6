//! Limits concurrent requests: two pools of slots, each with a short queue.
//!
//! Requests served from the cache and requests that wait for the backend use separate pools, so a slow backend, whose
//! callers fill the `waiting` pool, never causes a refusal of a request that needs no backend. Dropping a slot
//! releases it. The number of upstream requests is limited in `upstream`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::clock::{Clock, Mono};
use crate::instruments::{Instruments, PoolLabel};

use super::refusal::Refusal;

/// Minimum interval between log lines about refused requests; metrics count each.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Sizes of the pools and their queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConcurrencyConfig {
    /// Slots for requests whose document is cached.
    pub cached: usize,
    /// Slots for requests that wait for the backend.
    pub waiting: usize,
    /// Queue length of each pool.
    pub queue: usize,
    /// Maximum time in a queue.
    pub queue_timeout: Duration,
}

/// Two pools of slots.
pub struct ConcurrencyLimit {
    cached: SlotPool,
    waiting: SlotPool,
    patience: Duration,
    instruments: Arc<Instruments>,
    /// Monotonic time of the last log line in nanoseconds; 0 for none.
    logged_at: AtomicU64,
}

/// The slots of a pool and of its queue. Queued requests are served in order, before new ones.
#[derive(Debug)]
struct SlotPool {
    size: usize,
    places: Semaphore,
    queue: Semaphore,
}

/// A slot, released by drop.
#[derive(Debug)]
pub(super) struct ConcurrencySlot<'c> {
    _permit: SemaphorePermit<'c>,
}

impl ConcurrencyLimit {
    /// Creates empty pools.
    pub fn new(config: ConcurrencyConfig, instruments: Arc<Instruments>) -> Self {
        instruments.slots(PoolLabel::Cached, config.cached);
        instruments.slots(PoolLabel::Waiting, config.waiting);
        Self {
            cached: SlotPool::new(config.cached, config.queue),
            waiting: SlotPool::new(config.waiting, config.queue),
            patience: config.queue_timeout,
            instruments,
            logged_at: AtomicU64::new(0),
        }
    }

    /// Takes a slot of one of the pools. If none is free, waits in the queue for at most the queue timeout; if the
    /// queue is full, refuses at once.
    pub(super) async fn enter(&self, cached: bool, clock: &Clock) -> Result<ConcurrencySlot<'_>, Refusal> {
        let (pool, space) =
            if cached { (PoolLabel::Cached, &self.cached) } else { (PoolLabel::Waiting, &self.waiting) };
        if let Ok(permit) = space.places.try_acquire() {
            return Ok(ConcurrencySlot { _permit: permit });
        }
        self.queue(pool, space, clock).await.ok_or_else(|| {
            self.instruments.overloaded(pool);
            self.log_refusals(pool, clock.now().mono);
            Refusal::Overloaded
        })
    }

    async fn queue<'c>(
        &'c self,
        pool: PoolLabel,
        space: &'c SlotPool,
        clock: &Clock,
    ) -> Option<ConcurrencySlot<'c>> {
        let _queued = space.queue.try_acquire().ok()?;
        self.instruments.queued(pool);
        let permit = clock.within(self.patience, space.places.acquire()).await.ok()?;
        Some(ConcurrencySlot { _permit: permit.ok()? })
    }

    /// Updates the gauges of slots in use. Called every few seconds: updating them per request would cost as much as
    /// taking the slot.
    pub(super) fn update_gauges(&self) {
        self.instruments.slots_in_use(PoolLabel::Cached, self.cached.taken());
        self.instruments.slots_in_use(PoolLabel::Waiting, self.waiting.taken());
    }

    fn log_refusals(&self, pool: PoolLabel, now: Mono) {
        let logged = self.logged_at.load(Ordering::Relaxed);
        let is_due = logged == 0 || now.since(Mono::from_nanos(logged)) >= LOG_INTERVAL;
        // One of several concurrent requests writes the line.
        let is_first =
            || self.logged_at.compare_exchange(logged, now.nanos(), Ordering::Relaxed, Ordering::Relaxed);
        if is_due && is_first().is_ok() {
            let (pool, slots) = (pool.word(), self.pool(pool).size);
            tracing::warn!(pool, slots, "concurrency limit reached; requests are refused");
        }
    }

    fn pool(&self, pool: PoolLabel) -> &SlotPool {
        match pool {
            PoolLabel::Cached => &self.cached,
            PoolLabel::Waiting => &self.waiting,
        }
    }
}

impl SlotPool {
    fn new(size: usize, queue: usize) -> Self {
        let most = Semaphore::MAX_PERMITS;
        Self { size, places: Semaphore::new(size.min(most)), queue: Semaphore::new(queue.min(most)) }
    }

    fn taken(&self) -> usize {
        self.size.saturating_sub(self.places.available_permits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ManualClock, Wall};
    use crate::telemetry::metrics::MetricsRegistry;
    use futures_util::FutureExt as _;

    const PATIENCE: Duration = Duration::from_millis(10);

    struct Scene {
        capacity: ConcurrencyLimit,
        registry: MetricsRegistry,
        clock: Clock,
        hand: ManualClock,
    }

    impl Scene {
        fn of(cached: usize, waiting: usize, queue: usize) -> Self {
            let registry = MetricsRegistry::default();
            let instruments = Arc::new(Instruments::new(&registry, &[]));
            let config = ConcurrencyConfig { cached, waiting, queue, queue_timeout: PATIENCE };
            let (clock, hand) = Clock::manual(Wall::from_seconds(0));
            Self { capacity: ConcurrencyLimit::new(config, instruments), registry, clock, hand }
        }

        /// The immediate result; `None` if the request has to queue.
        fn try_enter(&self, cached: bool) -> Option<Result<ConcurrencySlot<'_>, Refusal>> {
            self.capacity.enter(cached, &self.clock).now_or_never()
        }

        fn shows(&self, series: &str) {
            self.capacity.update_gauges();
            let text = self.registry.scrape().render();
            assert!(text.lines().any(|line| line == series), "{series} in {text}");
        }
    }

    #[test]
    fn a_slot_is_free_again_when_it_is_dropped() {
        let scene = Scene::of(2, 1, 0);
        let (one, two) = (scene.try_enter(true).unwrap().unwrap(), scene.try_enter(true).unwrap().unwrap());
        scene.shows("scoregate_concurrency_in_use{pool=\"cached\"} 2");
        assert_eq!(scene.try_enter(true).unwrap().unwrap_err(), Refusal::Overloaded);
        drop(one);
        let three = scene.try_enter(true).unwrap().unwrap();
        drop((two, three));
        scene.shows("scoregate_concurrency_in_use{pool=\"cached\"} 0");
        scene.shows("scoregate_overload_refused_total{pool=\"cached\"} 1");
    }

    #[test]
    fn a_full_pool_refuses_no_request_of_the_other_pool() {
        for full in [true, false] {
            let scene = Scene::of(1, 1, 0);
            let _place = scene.try_enter(full).unwrap().unwrap();
            assert_eq!(scene.try_enter(full).unwrap().unwrap_err(), Refusal::Overloaded);
            assert!(scene.try_enter(!full).unwrap().is_ok());
        }
    }

    #[test]
    fn queued_requests_are_served_in_order_and_before_new_ones() {
        let scene = Scene::of(1, 1, 2);
        let place = scene.try_enter(false).unwrap().unwrap();
        let mut first = Box::pin(scene.capacity.enter(false, &scene.clock));
        let mut second = Box::pin(scene.capacity.enter(false, &scene.clock));
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        assert_eq!(scene.try_enter(false).unwrap().unwrap_err(), Refusal::Overloaded, "the queue is full");
        drop(place);
        assert!(scene.try_enter(false).is_none_or(|new| new.is_err()), "somebody was before");
        assert!(second.as_mut().now_or_never().is_none());
        let place = first.as_mut().now_or_never().unwrap().unwrap();
        drop(place);
        assert!(second.as_mut().now_or_never().unwrap().is_ok());
        scene.shows("scoregate_overload_queued_total{pool=\"waiting\"} 2");
    }

    #[test]
    fn a_queued_request_is_refused_at_the_queue_timeout() {
        let scene = Scene::of(1, 1, 1);
        let place = scene.try_enter(false).unwrap().unwrap();
        let mut queued = Box::pin(scene.capacity.enter(false, &scene.clock));
        assert!(queued.as_mut().now_or_never().is_none());
        scene.hand.advance(Duration::from_nanos(9_999_999));
        assert!(queued.as_mut().now_or_never().is_none());
        scene.hand.advance(Duration::from_nanos(1));
        assert_eq!(queued.as_mut().now_or_never().unwrap().unwrap_err(), Refusal::Overloaded);
        drop(place);
        assert!(scene.try_enter(false).unwrap().is_ok(), "what was refused holds nothing");
    }

    #[test]
    fn a_request_that_leaves_the_queue_keeps_no_slot() {
        let scene = Scene::of(1, 1, 1);
        let place = scene.try_enter(false).unwrap().unwrap();
        let mut gone = Box::pin(scene.capacity.enter(false, &scene.clock));
        assert!(gone.as_mut().now_or_never().is_none());
        drop(gone);
        let mut unaware = Box::pin(scene.capacity.enter(false, &scene.clock));
        assert!(unaware.as_mut().now_or_never().is_none(), "the queue has pool again");
        drop(place);
        // Got its slot and leaves before it was polled.
        drop(unaware);
        assert!(scene.try_enter(false).unwrap().is_ok());
        scene.shows("scoregate_concurrency_in_use{pool=\"waiting\"} 0");
    }

    #[test]
    fn refusals_are_logged_once_in_ten_seconds() {
        let scene = Scene::of(0, 0, 0);
        let logged = |scene: &Scene| scene.capacity.logged_at.load(Ordering::Relaxed);
        assert!(scene.try_enter(true).unwrap().is_err());
        let first = logged(&scene);
        scene.hand.advance(Duration::from_secs(9));
        assert!(scene.try_enter(false).unwrap().is_err());
        assert_eq!(logged(&scene), first);
        scene.hand.advance(Duration::from_secs(1));
        assert!(scene.try_enter(false).unwrap().is_err());
        assert_ne!(logged(&scene), first);
    }
}
