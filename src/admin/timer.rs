//! hyper's timer on our clock, so that a test can drive the timeout for request heads.
//!
//! Does not serve our own timeouts; see [`Clock::within`].

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use parking_lot::Mutex;

use scoregate_base::clock::{Alarm, Clock, Mono};

/// A timer that maps the `Instant`s of hyper to the monotonic time of the clock.
pub(super) struct ClockTimer {
    clock: Clock,
    epoch: Instant,
    started: Mono,
}

impl ClockTimer {
    #[expect(
        clippy::disallowed_methods,
        reason = "only an origin: the elapsed time is from the clock"
    )]
    pub(super) fn new(clock: &Clock) -> Self {
        Self {
            clock: clock.clone(),
            epoch: Instant::now(),
            started: clock.mono(),
        }
    }

    fn wait_until(&self, end: Mono) -> Pin<Box<dyn Sleep>> {
        let mut alarm = self.clock.alarm();
        alarm.set_by(end);
        Box::pin(TimerWait(Mutex::new(alarm)))
    }
}

impl Timer for ClockTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.wait_until(self.clock.mono().plus(duration))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.wait_until(
            self.started
                .plus(deadline.saturating_duration_since(self.epoch)),
        )
    }

    fn now(&self) -> Instant {
        self.epoch + self.clock.mono().since(self.started)
    }
}

/// A sleep. The lock is never taken: it makes the alarm `Sync`, as hyper requires.
struct TimerWait(Mutex<Alarm>);

impl Future for TimerWait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().0.get_mut().poll(cx)
    }
}

impl Sleep for TimerWait {}
