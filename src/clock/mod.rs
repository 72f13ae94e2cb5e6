//! The only source of time, with a hand-driven twin for tests.
//!
//! Everything that decides takes a [`Now`] as an argument; everything that waits, waits here. That is what lets a
//! test walk the whole gateway an hour ahead in a millisecond. A wall clock that is set is looked into by `steps`. Not for: formatting in answers (see [`Wall::rfc3339`]
//! for the one spelling we use) and not for scheduling, which belongs to the engines.

mod alarm;
mod instants;
mod steps;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

pub use alarm::Alarm;
use instants::{Boot, ClockReading, NANOS, START};
pub use instants::{Day, Mono, Now, Wall};
use steps::SharedTimeline;
pub use steps::{ClockEvent, StepDirection};

/// Nanoseconds of one of the machine's clocks: read as a number, since each request reads some of them.
#[expect(clippy::disallowed_methods, reason = "this is the one place where time enters")]
fn shown_by(clock: ClockId) -> u64 {
    let shown = clock_gettime(clock);
    let of_seconds = u64::try_from(shown.tv_sec).unwrap_or(0).saturating_mul(NANOS);
    of_seconds.saturating_add(u64::try_from(shown.tv_nsec).unwrap_or(0))
}

/// The deadline passed before the work was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("deadline exceeded")]
pub struct DeadlineExceeded;

/// Where time comes from. Cheap to clone; all clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock {
    source: ClockSource,
    steps: Arc<SharedTimeline>,
}

#[derive(Clone, Debug)]
enum ClockSource {
    /// The machine's clocks, and what the one that only runs forward showed at the start.
    System {
        started: u64,
    },
    Hand(Arc<watch::Sender<ClockReading>>),
}

/// The hand that moves a hand-driven clock.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<watch::Sender<ClockReading>>);

/// In so short a time no clock is set that would matter to one request.
const MOMENT: Duration = Duration::from_millis(1);

/// The clocks are read one after the other. Where that took longer, as in a process that was stopped meanwhile, their
/// difference says nothing, and they are read again.
const TOGETHER: Duration = Duration::from_millis(100);
const READINGS: usize = 5;

impl ClockSource {
    /// What two of the clocks show: all that a request needs.
    fn now(&self) -> Now {
        match self {
            Self::System { started } => Now { wall: Wall(shown_by(ClockId::Realtime)), mono: mono(*started) },
            Self::Hand(hand) => hand.borrow().now(),
        }
    }

    /// What all of them show at one instant.
    fn reading(&self) -> ClockReading {
        let started = match self {
            Self::System { started } => *started,
            Self::Hand(hand) => return *hand.borrow(),
        };
        let read = || {
            let before = shown_by(ClockId::Boottime);
            let wall = Wall(shown_by(ClockId::Realtime));
            let (mono, boot) = (mono(started), Boot(shown_by(ClockId::Boottime)));
            (ClockReading { wall, mono, boot }, boot.since(Boot(before)))
        };
        let mut best = read();
        for _ in 1..READINGS {
            if best.1 <= TOGETHER {
                break;
            }
            best = read();
        }
        best.0
    }
}

/// The running time of the machine, from what it showed at the start.
fn mono(started: u64) -> Mono {
    Mono(START.0 + shown_by(ClockId::Monotonic).saturating_sub(started))
}

impl Clock {
    /// The machine's clocks.
    pub fn system() -> Self {
        Self::new(ClockSource::System { started: shown_by(ClockId::Monotonic) })
    }

    /// A clock that stands still at `start` until its hand is moved.
    pub fn hand_driven(start: Wall) -> (Self, ManualClock) {
        let shown = ClockReading { wall: start, mono: START, boot: Boot(START.0) };
        let hand = Arc::new(watch::Sender::new(shown));
        (Self::new(ClockSource::Hand(Arc::clone(&hand))), ManualClock(hand))
    }

    fn new(source: ClockSource) -> Self {
        let steps = Arc::new(SharedTimeline::new(source.reading()));
        Self { source, steps }
    }

    /// Both times, read now.
    pub fn now(&self) -> Now {
        let now = self.source.now();
        if self.steps.agree(now) { now } else { self.check() }
    }

    /// Both times, read now and compared with the boot-time clock. To be called every second or so, so that steps are
    /// noticed without requests, and small corrections are followed.
    #[cold]
    pub fn check(&self) -> Now {
        self.steps.decide(|| self.source.reading())
    }

    /// Where steps of the wall clock are reported, in place of where they were before. Called by whoever reads the clock
    /// first after a step, so it must not wait.
    pub fn report_steps_to(&self, listener: impl Fn(ClockEvent) + Send + Sync + 'static) {
        self.steps.report_to(Arc::new(listener));
    }

    /// Both times, read now. Within a moment of `earlier` the wall clock is not asked again: it is as much later as the
    /// running time is.
    pub fn later_than(&self, earlier: Now) -> Now {
        let mono = self.mono();
        let since = mono.since(earlier.mono);
        if since < MOMENT { Now { wall: earlier.wall.plus(since), mono } } else { self.now() }
    }

    /// The running time alone, which costs half of both.
    pub fn mono(&self) -> Mono {
        match &self.source {
            ClockSource::System { started } => mono(*started),
            ClockSource::Hand(hand) => hand.borrow().mono,
        }
    }

    /// Waits until the running time reaches `deadline`.
    pub async fn sleep_until(&self, deadline: Mono) {
        match &self.source {
            ClockSource::System { .. } => {
                let left = deadline.since(self.mono());
                #[expect(clippy::disallowed_methods, reason = "this is the one place that waits")]
                tokio::time::sleep(left).await;
            }
            ClockSource::Hand(hand) => {
                let mut moved = hand.subscribe();
                // The sender lives in `self`, so the channel cannot close while we wait.
                moved
                    .wait_for(|shown| shown.mono >= deadline)
                    .await
                    .expect("self holds the sender")
                    .mono
                    .nanos();
            }
        }
    }

    /// Waits that long.
    pub async fn sleep(&self, time: Duration) {
        self.sleep_until(self.mono().plus(time)).await;
    }

    /// Runs `work` until `deadline` at the latest. Work that is already done is never late.
    pub async fn until<F: Future>(&self, deadline: Mono, work: F) -> Result<F::Output, DeadlineExceeded> {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            done = &mut work => Ok(done),
            () = self.sleep_until(deadline) => Err(DeadlineExceeded),
        }
    }

    /// Runs `work` for that long at the most.
    pub async fn within<F: Future>(&self, time: Duration, work: F) -> Result<F::Output, DeadlineExceeded> {
        self.until(self.mono().plus(time), work).await
    }
}

impl ManualClock {
    /// Lets that much time pass, on all clocks.
    pub fn advance(&self, by: Duration) {
        self.0.send_modify(|shown| *shown = shown.later(by));
    }

    /// Suspends the machine for that long: the wall clock and the boot-time clock go on, running time does not.
    pub fn suspend(&self, by: Duration) {
        self.0.send_modify(|shown| *shown = ClockReading { mono: shown.mono, ..shown.later(by) });
    }

    /// Steps the wall clock, as an operator or a time server does. Running time does not move.
    pub fn step_to(&self, wall: Wall) {
        self.0.send_modify(|shown| shown.wall = wall);
    }

    /// How many are waiting on this clock: what a test asks before it moves the hand.
    pub fn sleepers(&self) -> usize {
        self.0.receiver_count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hand_driven_clock_wakes_its_sleepers_when_it_is_moved() {
        let (clock, hand) = Clock::hand_driven(Wall::from_seconds(0));
        let waiting = clock.within(Duration::from_mins(1), std::future::pending::<()>());
        hand.advance(Duration::ZERO);
        let moved = async { hand.advance(Duration::from_secs(61)) };
        let (late, ()) = tokio::join!(waiting, moved);
        assert_eq!(late, Err(DeadlineExceeded));
    }

    #[tokio::test]
    async fn a_step_of_the_wall_moves_no_duration() {
        let (clock, hand) = Clock::hand_driven(Wall::from_seconds(1_000_000));
        let before = clock.now();
        hand.step_to(Wall::from_seconds(10));
        assert_eq!(clock.now().mono, before.mono);
        assert_eq!(clock.now().wall.seconds(), 10);
    }
}
