//! Heartbeat of the runtime that serves the public port, checked from the thread of the side port.
//!
//! A task on that runtime beats twice a second. If the beats stop, all workers are blocked or starved, and no request
//! is answered. `readiness` covers start and shutdown.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use metrics::Gauge;
use scoregate_base::clock::{Clock, Mono};

/// Age of the last beat at which `/readyz` starts to fail.
const READY_LIMIT: Duration = Duration::from_secs(5);
/// Age of the last beat at which `/healthz` starts to fail and a supervisor should restart the process.
const ALIVE_LIMIT: Duration = Duration::from_secs(20);

/// Time of the last beat of the public runtime.
#[derive(Debug)]
pub struct Heartbeat {
    clock: Clock,
    last: AtomicU64,
    age: Gauge,
}

impl Heartbeat {
    /// Creates a heartbeat that starts now. `age` is the metric.
    pub fn new(clock: Clock, age: Gauge) -> Self {
        let last = AtomicU64::new(clock.mono().nanos());
        Self { clock, last, age }
    }

    /// Records a beat. Called by a task of the monitored runtime.
    pub fn beat(&self) {
        self.last
            .store(self.clock.mono().nanos(), Ordering::Relaxed);
    }

    pub(super) fn update_metric(&self) {
        self.age.set(self.age().as_secs_f64());
    }

    fn age(&self) -> Duration {
        self.clock
            .mono()
            .since(Mono::from_nanos(self.last.load(Ordering::Relaxed)))
    }

    /// Fails with the age of the last beat if requests are not served in time.
    pub(super) fn is_ready(&self) -> Result<(), Duration> {
        younger_than(self.age(), READY_LIMIT)
    }

    /// Fails with the age of the last beat if the process is unlikely to recover without a restart.
    pub fn is_alive(&self) -> Result<(), Duration> {
        younger_than(self.age(), ALIVE_LIMIT)
    }
}

fn younger_than(age: Duration, limit: Duration) -> Result<(), Duration> {
    if age < limit { Ok(()) } else { Err(age) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scoregate_base::clock::Wall;

    #[test]
    fn without_a_heartbeat_a_server_is_not_ready_after_five_seconds_and_not_alive_after_twenty() {
        let (clock, manual) = Clock::manual(Wall::from_seconds(0));
        let heartbeat = Heartbeat::new(clock, Gauge::noop());
        for (elapsed, ready, alive) in [
            (0, true, true),
            (4_999, true, true),
            (1, false, true),
            (14_999, false, true),
            (1, false, false),
        ] {
            manual.advance(Duration::from_millis(elapsed));
            assert_eq!(
                (heartbeat.is_ready().is_ok(), heartbeat.is_alive().is_ok()),
                (ready, alive),
                "{:?}",
                heartbeat.age()
            );
        }
        assert_eq!(heartbeat.is_alive(), Err(Duration::from_secs(20)));
    }
}
