//! Limits concurrent requests with two pools of slots. Each pool has a short queue.
//!
//! Requests served from the cache and requests that wait for the backend use separate pools. Callers that wait for a
//! slow backend fill only the `waiting` pool, so requests that need no backend are not refused. A request that has to
//! wait for the ledger moves to the `waiting` pool, so a slow ledger does not cause requests with leased units to be refused. Dropping a slot releases it. `upstream` limits the number of upstream requests.

use std::{sync::Arc, time::Duration};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::instruments::{CapacityInstruments, PoolLabel};
use scoregate_base::clock::Clock;

use super::refusal::Refusal;

/// Sizes of the pools and their queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConcurrencyConfig {
    /// Slots for requests whose document is cached.
    pub cached: usize,
    /// Slots for requests that wait for the backend or the ledger.
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
    queue_timeout: Duration,
    instruments: Arc<CapacityInstruments>,
}

/// The slots of a pool and of its queue. Queued requests are served in order, before new ones.
#[derive(Debug)]
struct SlotPool {
    size: usize,
    permits: Semaphore,
    queue: Semaphore,
}

/// A slot, which is released when dropped.
#[derive(Debug)]
pub struct ConcurrencySlot<'c> {
    _permit: SemaphorePermit<'c>,
}

impl ConcurrencyLimit {
    /// Creates empty pools.
    pub fn new(config: ConcurrencyConfig, instruments: Arc<CapacityInstruments>) -> Self {
        instruments.slots(PoolLabel::Cached, config.cached);
        instruments.slots(PoolLabel::Waiting, config.waiting);
        Self {
            cached: SlotPool::new(config.cached, config.queue),
            waiting: SlotPool::new(config.waiting, config.queue),
            queue_timeout: config.queue_timeout,
            instruments,
        }
    }

    /// Takes a slot from the pool for cached or waiting requests. If none is free, waits in the queue for at most the
    /// queue timeout. If the queue is full, refuses immediately.
    pub(super) async fn enter(
        &self,
        cached: bool,
        clock: &Clock,
    ) -> Result<ConcurrencySlot<'_>, Refusal> {
        let (pool, slots) = if cached {
            (PoolLabel::Cached, &self.cached)
        } else {
            (PoolLabel::Waiting, &self.waiting)
        };
        // While requests are queued, released permits go to them, so a new request cannot overtake them here.
        if let Ok(permit) = slots.permits.try_acquire() {
            return Ok(ConcurrencySlot { _permit: permit });
        }
        self.queue(pool, slots, clock).await.ok_or_else(|| {
            self.instruments.overloaded.count(pool);
            tracing::warn!(
                pool = pool.word(),
                slots = slots.size,
                "concurrency limit reached; requests are refused"
            );
            Refusal::Overloaded
        })
    }

    /// Whether the pool for cached or waiting requests has a free slot.
    pub(super) fn has_free(&self, cached: bool) -> bool {
        let slots = if cached { &self.cached } else { &self.waiting };
        slots.permits.available_permits() > 0
    }

    /// Moves a request that is about to wait for the ledger to the `waiting` pool, if it has a free slot.
    pub(super) fn move_to_waiting<'c>(&'c self, slot: &mut ConcurrencySlot<'c>) {
        if let Ok(permit) = self.waiting.permits.try_acquire() {
            *slot = ConcurrencySlot { _permit: permit };
        }
    }

    async fn queue<'c>(
        &'c self,
        pool: PoolLabel,
        slots: &'c SlotPool,
        clock: &Clock,
    ) -> Option<ConcurrencySlot<'c>> {
        // If the queue is full, the request is refused immediately: it would not get a slot in time, and has cost
        // nothing so far.
        let _queued = slots.queue.try_acquire().ok()?;
        self.instruments.queued.count(pool);
        let permit = clock
            .within(self.queue_timeout, slots.permits.acquire())
            .await
            .ok()?;
        Some(ConcurrencySlot {
            _permit: permit.ok()?,
        })
    }

    /// Updates the gauges of slots in use. Called every few seconds: updating them per request would cost as much as
    /// taking the slot.
    pub(super) fn update_gauges(&self) {
        self.instruments
            .slots_in_use(PoolLabel::Cached, self.cached.taken());
        self.instruments
            .slots_in_use(PoolLabel::Waiting, self.waiting.taken());
    }
}

impl SlotPool {
    fn new(size: usize, queue: usize) -> Self {
        // A semaphore with more permits than this panics, and the setting may be larger.
        let most = Semaphore::MAX_PERMITS;
        Self {
            size,
            permits: Semaphore::new(size.min(most)),
            queue: Semaphore::new(queue.min(most)),
        }
    }

    fn taken(&self) -> usize {
        self.size.saturating_sub(self.permits.available_permits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use scoregate_base::clock::Wall;
    use scoregate_observe::telemetry::metrics::MetricsRegistry;

    struct Scene {
        limit: ConcurrencyLimit,
        registry: MetricsRegistry,
        clock: Clock,
    }

    impl Scene {
        /// One slot in each pool, and a queue of this length.
        fn of(queue: usize) -> Self {
            let registry = MetricsRegistry::default();
            let instruments = Arc::new(CapacityInstruments::new(&registry));
            let config = ConcurrencyConfig {
                cached: 1,
                waiting: 1,
                queue,
                queue_timeout: Duration::from_millis(10),
            };
            Self {
                limit: ConcurrencyLimit::new(config, instruments),
                registry,
                clock: Clock::manual(Wall::from_seconds(0)).0,
            }
        }

        /// The immediate result; `None` if the request has to queue.
        fn try_enter(&self) -> Option<Result<ConcurrencySlot<'_>, Refusal>> {
            self.limit.enter(false, &self.clock).now_or_never()
        }

        fn shows(&self, series: &str) {
            self.limit.update_gauges();
            let text = self.registry.scrape().render();
            assert!(
                text.lines().any(|line| line == series),
                "{series} in {text}"
            );
        }
    }

    #[test]
    fn queued_requests_are_served_in_order_and_before_new_ones() {
        let scene = Scene::of(2);
        let slot = scene.try_enter().unwrap().unwrap();
        let mut first = Box::pin(scene.limit.enter(false, &scene.clock));
        let mut second = Box::pin(scene.limit.enter(false, &scene.clock));
        assert!(
            first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none()
        );
        assert_eq!(
            scene.try_enter().unwrap().unwrap_err(),
            Refusal::Overloaded,
            "the queue is full"
        );
        drop(slot);
        assert!(
            scene.try_enter().is_none_or(|new| new.is_err()),
            "the first queued request is served first"
        );
        assert!(second.as_mut().now_or_never().is_none());
        let slot = first.as_mut().now_or_never().unwrap().unwrap();
        drop(slot);
        assert!(second.as_mut().now_or_never().unwrap().is_ok());
        scene.shows("scoregate_overload_queued_total{pool=\"waiting\"} 2");
    }

    #[test]
    fn a_request_that_leaves_the_queue_keeps_no_slot() {
        let scene = Scene::of(1);
        let slot = scene.try_enter().unwrap().unwrap();
        let mut cancelled = Box::pin(scene.limit.enter(false, &scene.clock));
        assert!(cancelled.as_mut().now_or_never().is_none());
        drop(cancelled);
        let mut queued = Box::pin(scene.limit.enter(false, &scene.clock));
        assert!(
            queued.as_mut().now_or_never().is_none(),
            "the queue has a free place again"
        );
        drop(slot);
        // The request was granted a slot, but is dropped before it is polled.
        drop(queued);
        assert!(scene.try_enter().unwrap().is_ok());
        scene.shows("scoregate_concurrency_in_use{pool=\"waiting\"} 0");
    }
}
