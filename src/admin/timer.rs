//! The codec's timer, on our clock: so that a test can drive the deadline for heads.
//!
//! Not for: deadlines of our own ([`Clock::within`]).

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use parking_lot::Mutex;

use crate::clock::{Alarm, Clock, Mono};

/// The timer. The codec counts in instants of its own; each corresponds to one instant of the clock's running time.
pub(super) struct ClockTimer {
    clock: Clock,
    epoch: Instant,
    began: Mono,
}

impl ClockTimer {
    #[expect(
        clippy::disallowed_methods,
        reason = "only a zero to count from: the clock says how much later it is"
    )]
    pub(super) fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), epoch: Instant::now(), began: clock.mono() }
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
        self.wait_until(self.began.plus(deadline.saturating_duration_since(self.epoch)))
    }

    fn now(&self) -> Instant {
        self.epoch + self.clock.mono().since(self.began)
    }
}

/// A wait. The lock is never taken: it makes the alarm shareable, as the codec wants it.
struct TimerWait(Mutex<Alarm>);

impl Future for TimerWait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.get_mut().0.get_mut().poll(cx)
    }
}

impl Sleep for TimerWait {}
