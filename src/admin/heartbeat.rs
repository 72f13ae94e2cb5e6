//! Whether the runtime that serves the public port still runs tasks, seen from the side port's own thread.
//!
//! A task on that runtime beats twice a second. When beats stop, every worker is blocked or starved, and no request
//! is answered. Not for: whether the program is starting or stopping (`Side::ready`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metrics::Gauge;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Mono};

/// Time between beats.
const INTERVAL: Duration = Duration::from_millis(500);
/// A heartbeat older than this: not ready.
const READY: Duration = Duration::from_secs(5);
/// A heartbeat older than this: not alive. A supervisor should restart the process.
const ALIVE: Duration = Duration::from_secs(20);

/// When the public runtime last ran its heartbeat task.
#[derive(Debug)]
pub struct Heartbeat {
    clock: Clock,
    last: AtomicU64,
    age: Gauge,
}

impl Heartbeat {
    /// A heartbeat that begins now. `age` is its metric.
    pub fn new(clock: Clock, age: Gauge) -> Self {
        let last = AtomicU64::new(clock.mono().nanos());
        Self { clock, last, age }
    }

    /// Beats until `stop`. To be run as a task of the runtime that is watched.
    pub async fn run(&self, stop: CancellationToken) {
        loop {
            self.last.store(self.clock.mono().nanos(), Ordering::Relaxed);
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.clock.sleep(INTERVAL) => {}
            }
        }
    }

    /// Sets the metric.
    pub(super) fn show(&self) {
        self.age.set(self.age().as_secs_f64());
    }

    fn age(&self) -> Duration {
        self.clock.mono().since(Mono::from_nanos(self.last.load(Ordering::Relaxed)))
    }

    /// Whether the runtime serves requests in time; if not, for how long it has not run.
    pub(super) fn is_ready(&self) -> Result<(), Duration> {
        fresher(self.age(), READY)
    }

    /// Whether the process can be expected to serve again by itself; if not, for how long it has not run.
    pub fn is_alive(&self) -> Result<(), Duration> {
        fresher(self.age(), ALIVE)
    }
}

fn fresher(age: Duration, limit: Duration) -> Result<(), Duration> {
    if age < limit { Ok(()) } else { Err(age) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Wall;

    #[test]
    fn a_heartbeat_of_five_seconds_is_not_ready_and_one_of_twenty_is_not_alive() {
        let (clock, hand) = Clock::hand_driven(Wall::from_seconds(0));
        let heartbeat = Heartbeat::new(clock, Gauge::noop());
        for (later, ready, alive) in
            [(0, true, true), (4_999, true, true), (1, false, true), (14_999, false, true), (1, false, false)]
        {
            hand.advance(Duration::from_millis(later));
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
