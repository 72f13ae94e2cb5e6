//! The clocks of the machine behind one interface, and the manual clock for tests.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

use super::{
    instants::{Boot, ClockReading, Mono, NANOS, Now, START, Wall},
    steps::{ClockEvent, SharedTimeline},
};

/// The time of one of the machine's clocks, in nanoseconds. A plain number is cheap, and each request reads several
/// clocks.
#[expect(
    clippy::disallowed_methods,
    reason = "this function reads the machine's clocks"
)]
fn shown_by(clock: ClockId) -> u64 {
    let shown = clock_gettime(clock);
    let of_seconds = u64::try_from(shown.tv_sec)
        .unwrap_or(0)
        .saturating_mul(NANOS);
    of_seconds.saturating_add(u64::try_from(shown.tv_nsec).unwrap_or(0))
}

/// The deadline passed before the work was completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("deadline exceeded")]
pub struct DeadlineExceeded;

/// A source of time. It is cheap to clone, and all clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock {
    pub(super) source: ClockSource,
    steps: Arc<SharedTimeline>,
}

#[derive(Clone, Debug)]
pub enum ClockSource {
    /// The machine's clocks, and the monotonic clock's value at startup.
    System {
        started: u64,
    },
    Manual(Arc<watch::Sender<ClockReading>>),
}

/// Moves a manual clock.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<watch::Sender<ClockReading>>);

/// Within this time, the wall clock is not read again. Such a small difference does not matter to a request.
const MOMENT: Duration = Duration::from_millis(1);

/// Maximum duration of a reading of all clocks, which are read one after another. If it takes longer, for example
/// because the process was suspended, the clocks are read again.
const TOGETHER: Duration = Duration::from_millis(100);
// This limits the loop on a machine where every reading is slow.
const READINGS: usize = 5;

/// Maximum duration of a reading of a reference clock. A reading that takes longer is too uncertain.
const MAX_REFERENCE_READING: Duration = Duration::from_millis(500);
/// Smaller changes in the difference from a reference clock are ignored.
const REFERENCE_JITTER: Duration = Duration::from_millis(5);

impl ClockSource {
    /// Wall time and monotonic time, which are sufficient for a request.
    fn now(&self) -> Now {
        match self {
            Self::System { started } => Now {
                wall: Wall(shown_by(ClockId::Realtime)),
                mono: mono(*started),
            },
            Self::Manual(sender) => sender.borrow().now(),
        }
    }

    /// All clocks at one time.
    fn reading(&self) -> ClockReading {
        let started = match self {
            Self::System { started } => *started,
            Self::Manual(sender) => return *sender.borrow(),
        };
        let read = || {
            let before = shown_by(ClockId::Boottime);
            let wall = Wall(shown_by(ClockId::Realtime));
            let mono = mono(started);
            let boot = Boot(shown_by(ClockId::Boottime));
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

/// Monotonic time relative to the start.
fn mono(started: u64) -> Mono {
    mono_of(ClockId::Monotonic, started)
}

fn mono_of(clock: ClockId, started: u64) -> Mono {
    Mono(START.0 + shown_by(clock).saturating_sub(started))
}

impl Clock {
    /// The machine's clocks.
    pub fn system() -> Self {
        Self::new(ClockSource::System {
            started: shown_by(ClockId::Monotonic),
        })
    }

    /// A manual clock that shows `start` until it is moved.
    pub fn manual(start: Wall) -> (Self, ManualClock) {
        let shown = ClockReading {
            wall: start,
            mono: START,
            boot: Boot(START.0),
        };
        let sender = Arc::new(watch::Sender::new(shown));
        (
            Self::new(ClockSource::Manual(Arc::clone(&sender))),
            ManualClock(sender),
        )
    }

    fn new(source: ClockSource) -> Self {
        let steps = Arc::new(SharedTimeline::new(source.reading()));
        Self { source, steps }
    }

    /// The current time.
    pub fn now(&self) -> Now {
        let now = self.source.now();
        let now = Now {
            wall: self.steps.corrected(now.wall),
            ..now
        };
        if self.steps.agree(now) {
            now
        } else {
            self.check()
        }
    }

    /// The current time, compared with the boot-time clock. Called about every second, so that steps are detected even
    /// if there are no requests, and small corrections are followed.
    #[cold]
    pub fn check(&self) -> Now {
        self.steps.decide(|| self.source.reading())
    }

    /// Follows a reference clock that showed `reference` at a time between `sent` and now. Wall time is then the time
    /// of the reference. A large change is handled as a step of the wall clock. Returns the difference from the
    /// machine's clock in seconds, or `None` if the reading took too long to be useful.
    pub fn follow(&self, reference: Wall, sent: Mono) -> Option<f64> {
        let now = self.source.now();
        let took = now.mono.since(sent);
        if took > MAX_REFERENCE_READING {
            return None;
        }
        // The reference was read at some time in between. Assuming the middle halves the maximum error.
        let local = now.wall.minus(took / 2);
        let difference = reference
            .0
            .cast_signed()
            .saturating_sub(local.0.cast_signed());
        self.steps.correct(difference, took / 2 + REFERENCE_JITTER);
        let size = Duration::from_nanos(difference.unsigned_abs()).as_secs_f64();
        Some(if difference < 0 { -size } else { size })
    }

    /// Sets the listener for steps of the wall clock, replacing the previous listener. It is called by the thread that
    /// first reads the clock after a step, so it must not block.
    pub fn report_steps_to(&self, listener: impl Fn(ClockEvent) + Send + Sync + 'static) {
        self.steps.report_to(Arc::new(listener));
    }

    /// The current time. Within a millisecond of `earlier`, the wall clock is not read again, and the wall time is
    /// computed from the monotonic time.
    pub fn later_than(&self, earlier: Now) -> Now {
        let mono = self.mono();
        let since = mono.since(earlier.mono);
        if since < MOMENT {
            Now {
                wall: earlier.wall.plus(since),
                mono,
            }
        } else {
            self.now()
        }
    }

    /// Monotonic time only, at half the cost of reading both clocks.
    pub fn mono(&self) -> Mono {
        match &self.source {
            ClockSource::System { started } => mono(*started),
            ClockSource::Manual(sender) => sender.borrow().mono,
        }
    }

    /// Monotonic time of the kernel's last tick, usually at most 10 ms behind [`Self::mono`], at a fraction of the
    /// cost. Used for connections, where the difference does not matter.
    pub fn coarse(&self) -> Mono {
        match &self.source {
            ClockSource::System { started } => mono_of(ClockId::MonotonicCoarse, *started),
            ClockSource::Manual(_) => self.mono(),
        }
    }

    /// Waits until `deadline`.
    ///
    /// The time is read whenever the task is polled. If other work of the task is always ready, it uses up the task's
    /// budget in the runtime, and then no timer of the task is ever ready.
    pub async fn sleep_until(&self, deadline: Mono) {
        let mut timer = pin!(self.timer(deadline));
        poll_fn(|cx| {
            if self.mono() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().poll(cx)
        })
        .await;
    }

    async fn timer(&self, deadline: Mono) {
        match &self.source {
            ClockSource::System { .. } => {
                let left = deadline.since(self.mono());
                #[expect(
                    clippy::disallowed_methods,
                    reason = "waits belong in the clock module"
                )]
                tokio::time::sleep(left).await;
            }
            ClockSource::Manual(sender) => {
                let mut moved = sender.subscribe();
                // The sender is in `self`, so the channel cannot close during the wait.
                moved
                    .wait_for(|shown| shown.mono >= deadline)
                    .await
                    .expect("self holds the sender")
                    .mono
                    .nanos();
            }
        }
    }

    /// Waits for a duration.
    pub async fn sleep(&self, time: Duration) {
        self.sleep_until(self.mono().plus(time)).await;
    }

    /// Runs `work` until `deadline` at the latest. Work that is already completed is never late.
    pub async fn until<F: Future>(
        &self,
        deadline: Mono,
        work: F,
    ) -> Result<F::Output, DeadlineExceeded> {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            done = &mut work => Ok(done),
            () = self.sleep_until(deadline) => Err(DeadlineExceeded),
        }
    }

    /// Runs `work` for at most `time`.
    pub async fn within<F: Future>(
        &self,
        time: Duration,
        work: F,
    ) -> Result<F::Output, DeadlineExceeded> {
        self.until(self.mono().plus(time), work).await
    }
}

impl ManualClock {
    /// Advances all clocks.
    pub fn advance(&self, by: Duration) {
        self.0.send_modify(|shown| *shown = shown.later(by));
    }

    /// Simulates suspend: the wall clock and the boot-time clock advance, but monotonic time does not.
    pub fn suspend(&self, by: Duration) {
        self.0.send_modify(|shown| {
            *shown = ClockReading {
                mono: shown.mono,
                ..shown.later(by)
            }
        });
    }

    /// Sets the wall clock, as an operator or a time server does. Monotonic time does not change.
    pub fn step_to(&self, wall: Wall) {
        self.0.send_modify(|shown| shown.wall = wall);
    }

    /// Number of tasks that wait on this clock. Tests check it before they move the clock.
    pub fn waiters(&self) -> usize {
        self.0.receiver_count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work that is always ready until `end`, so it uses up the budget of its task at each poll.
    async fn busy_until(clock: &Clock, end: Mono) {
        while clock.mono() < end {
            tokio::task::coop::consume_budget().await;
        }
    }

    #[tokio::test]
    async fn a_deadline_and_an_alarm_fire_although_other_work_is_always_ready() {
        let clock = Clock::system();
        for has_deadline in [true, false] {
            let begun = clock.mono();
            let after = |millis| begun.plus(Duration::from_millis(millis));
            let busy = busy_until(&clock, after(2_000));
            if has_deadline {
                let late = clock.until(after(200), busy).await;
                assert_eq!(late, Err(DeadlineExceeded));
            } else {
                let mut alarm = clock.alarm();
                alarm.set_by(after(200));
                tokio::select! {
                    biased;
                    () = busy => panic!("the alarm did not fire"),
                    () = poll_fn(|cx| alarm.poll(cx)) => {}
                }
            }
            let took = clock.mono().since(begun);
            assert!(took < Duration::from_millis(300), "{took:?}");
        }
    }

    #[tokio::test]
    async fn a_manual_clock_wakes_its_waiters_when_it_is_moved() {
        let (clock, sender) = Clock::manual(Wall::from_seconds(0));
        let waiting = clock.within(Duration::from_mins(1), std::future::pending::<()>());
        sender.advance(Duration::ZERO);
        let moved = async { sender.advance(Duration::from_secs(61)) };
        let (late, ()) = tokio::join!(waiting, moved);
        assert_eq!(late, Err(DeadlineExceeded));
    }

    #[test]
    fn coarse_time_is_at_most_a_tick_behind_and_the_same_on_a_manual_clock() {
        let clock = Clock::system();
        let behind = || {
            let before = clock.mono();
            let coarse = clock.coarse();
            let after = clock.mono();
            assert!(coarse <= after, "{coarse:?} {after:?}");
            before.since(coarse)
        };
        // A tick may be late on a busy machine.
        assert!((0..100_000).any(|_| behind() < Duration::from_millis(11)));
        let (clock, sender) = Clock::manual(Wall::from_seconds(0));
        sender.advance(Duration::from_nanos(1));
        assert_eq!(clock.coarse(), clock.mono());
    }

    #[test]
    fn wall_time_follows_a_reference_clock_and_not_the_machine_s() {
        let (clock, sender) = Clock::manual(Wall::from_seconds(1_000_000));
        let at = Wall::from_seconds;
        let sent = clock.mono();
        assert_eq!(clock.follow(at(1_000_030), sent), Some(30.0));
        assert_eq!(clock.now().wall, at(1_000_030));
        sender.advance(Duration::from_secs(10));
        assert_eq!(clock.now().wall, at(1_000_040));
        sender.step_to(at(1_000_000));
        assert_eq!(clock.follow(at(1_000_040), clock.mono()), Some(40.0));
        assert_eq!(clock.now().wall, at(1_000_040));
        let late = clock.follow(at(0), sent);
        assert_eq!(late, None, "the reading took ten seconds");
        assert_eq!(clock.now().wall, at(1_000_040));
    }

    #[test]
    fn a_reference_clock_that_is_set_ahead_is_followed_after_a_minute() {
        let (clock, sender) = Clock::manual(Wall::from_seconds(1_000_000));
        let day_ahead = |seconds: u64| Wall::from_seconds(1_086_400 + seconds);
        clock.follow(day_ahead(0), clock.mono());
        assert_eq!(clock.now().wall.seconds(), 1_000_000);
        sender.advance(Duration::from_secs(59));
        clock.follow(day_ahead(59), clock.mono());
        assert_eq!(clock.now().wall.seconds(), 1_000_059);
        sender.advance(Duration::from_secs(1));
        assert_eq!(clock.now().wall, day_ahead(60));
    }

    #[tokio::test]
    async fn a_step_of_the_wall_clock_changes_no_duration() {
        let (clock, sender) = Clock::manual(Wall::from_seconds(1_000_000));
        let before = clock.now();
        sender.step_to(Wall::from_seconds(10));
        assert_eq!(clock.now().mono, before.mono);
        assert_eq!(clock.now().wall.seconds(), 10);
    }
}
