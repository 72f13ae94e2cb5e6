//! Steps of the wall clock. This module decides which wall time applies after the machine's clock was set.
//!
//! The wall clock is compared with the boot-time clock, which continues during suspend and cannot be set. A step
//! forward of more than a minute is followed once it has lasted for a minute. Until then, the time is extrapolated from
//! before the step, so a shorter step opens no day and expires no key. A step backward is followed immediately.
//!
//! [`Timeline`] makes the decision and is pure. [`SharedTimeline`] shares it among the clones of a clock. The
//! consequences for quotas are in `limits`.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    Now, Wall,
    instants::{Boot, ClockReading, NANOS},
};

/// Minimum size of a step. A smaller change is an ordinary correction and is followed immediately.
const NOTICED: u64 = 60 * NANOS;

/// Time for which a step forward must last before it is followed.
const HELD: Duration = Duration::from_mins(1);

/// Means that there is no offset, so that `decide` handles every reading. No real offset is near this value.
const UNDECIDED: u64 = 1 << 63;

/// The direction of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepDirection {
    /// The clock was set forward.
    Forward,
    /// The clock was set back.
    Backward,
}

/// An event of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockEvent {
    /// The clock was set.
    Stepped {
        /// The direction.
        direction: StepDirection,
        /// The time as it would be without the step.
        from: Wall,
        /// The time after the step.
        to: Wall,
        /// The time that applies from now on.
        applies: Wall,
    },
    /// A step forward has lasted for a minute, so the clock's time is adopted.
    Followed {
        /// The time that applied before.
        from: Wall,
        /// The clock's time.
        to: Wall,
    },
}

/// Decides which wall time applies.
#[derive(Clone, Copy, Debug)]
pub struct Timeline {
    /// The offset in force: wall clock minus boot-time clock.
    offset: i128,
    /// A step forward that is not followed yet.
    ahead: Option<PendingStep>,
}

#[derive(Clone, Copy, Debug)]
struct PendingStep {
    offset: i128,
    since: Boot,
}

/// How the clock's offset differs from the offset in force. Times are what the clock would show without the step.
enum OffsetChange {
    /// An ordinary correction.
    Small,
    /// The clock was set back, or returned from a step.
    Back(Wall),
    /// The clock is ahead because of a new step.
    Ahead(StepDirection, Wall),
    /// The clock is still ahead because of the step that occurred at this time.
    StillAhead(Boot),
    /// The clock is ahead because of a step that has lasted for a minute.
    Lasted,
}

impl Timeline {
    /// A timeline that begins with these times.
    pub fn new(wall: Wall, boot: Boot) -> Self {
        Self {
            offset: offset(wall, boot),
            ahead: None,
        }
    }

    /// The next timeline, the wall time that applies, and the event since the last reading.
    pub fn read(self, wall: Wall, boot: Boot) -> (Self, Wall, Option<ClockEvent>) {
        let shown = offset(wall, boot);
        let extrapolated = at(self.offset, boot);
        let stepped = |direction, from, applies| ClockEvent::Stepped {
            direction,
            from,
            to: wall,
            applies,
        };
        let (event, ahead_since) = match self.change(shown, boot) {
            OffsetChange::Small => (None, None),
            OffsetChange::Back(from) => (Some(stepped(StepDirection::Backward, from, wall)), None),
            OffsetChange::Ahead(direction, from) => {
                (Some(stepped(direction, from, extrapolated)), Some(boot))
            }
            OffsetChange::StillAhead(since) => (None, Some(since)),
            OffsetChange::Lasted => {
                let from = extrapolated;
                (Some(ClockEvent::Followed { from, to: wall }), None)
            }
        };
        let Some(since) = ahead_since else {
            let followed = Self {
                offset: shown,
                ahead: None,
            };
            return (followed, wall, event);
        };
        let ahead = Some(PendingStep {
            offset: shown,
            since,
        });
        (Self { ahead, ..self }, extrapolated, event)
    }

    /// Compares an offset with the offset in force and with the offset of a step that is not followed yet.
    fn change(&self, shown: i128, boot: Boot) -> OffsetChange {
        let noticed = i128::from(NOTICED);
        let difference = shown - self.offset;
        let Some(ahead) = self.ahead else {
            let extrapolated = at(self.offset, boot);
            return if difference > noticed {
                OffsetChange::Ahead(StepDirection::Forward, extrapolated)
            } else if difference < -noticed {
                OffsetChange::Back(extrapolated)
            } else {
                OffsetChange::Small
            };
        };
        // If the clock is set again while it is ahead, the minute starts again, so that only a steady clock is
        // followed.
        let further = shown - ahead.offset;
        let from = at(ahead.offset, boot);
        if difference <= noticed {
            OffsetChange::Back(from)
        } else if further > noticed {
            OffsetChange::Ahead(StepDirection::Forward, from)
        } else if further < -noticed {
            OffsetChange::Ahead(StepDirection::Backward, from)
        } else if boot.since(ahead.since) >= HELD {
            OffsetChange::Lasted
        } else {
            OffsetChange::StillAhead(ahead.since)
        }
    }
}

fn offset(wall: Wall, boot: Boot) -> i128 {
    i128::from(wall.0) - i128::from(boot.0)
}

fn at(offset: i128, boot: Boot) -> Wall {
    Wall(u64::try_from(i128::from(boot.0) + offset).unwrap_or_default())
}

/// Receives events of the wall clock.
type Listener = Arc<dyn Fn(ClockEvent) + Send + Sync>;

/// The timeline that the clones of a clock share.
pub struct SharedTimeline {
    /// Wall clock minus monotonic time while no step is pending, otherwise [`UNDECIDED`]. If it is decided, requests do
    /// not need the lock.
    agreed: AtomicU64,
    /// Nanoseconds that are added to the machine's wall clock to get the time of a reference clock.
    correction: AtomicI64,
    timeline: Mutex<Timeline>,
    listener: Mutex<Option<Listener>>,
}

impl SharedTimeline {
    pub fn new(shown: ClockReading) -> Self {
        Self {
            agreed: AtomicU64::new(apart(shown.now())),
            correction: AtomicI64::new(0),
            timeline: Mutex::new(Timeline::new(shown.wall, shown.boot)),
            listener: Mutex::default(),
        }
    }

    /// The wall time of the reference clock when the machine's clock shows `wall`.
    pub fn corrected(&self, wall: Wall) -> Wall {
        Wall(
            wall.0
                .saturating_add_signed(self.correction.load(Ordering::Relaxed)),
        )
    }

    /// Follows a reference clock that differs by `difference` nanoseconds, if this changes the correction by more than
    /// `uncertainty`.
    pub fn correct(&self, difference: i64, uncertainty: Duration) {
        let change = self.correction.load(Ordering::Relaxed).abs_diff(difference);
        if u128::from(change) > uncertainty.as_nanos() {
            self.correction.store(difference, Ordering::Relaxed);
        }
    }

    /// Whether a reading needs no decision, because both clocks advanced equally.
    pub fn agree(&self, now: Now) -> bool {
        // Relaxed, because an older value only leads to `decide`, which decides under the lock.
        let difference = apart(now).wrapping_sub(self.agreed.load(Ordering::Relaxed));
        difference.wrapping_add(NOTICED) <= 2 * NOTICED
    }

    /// Decides the time of a reading. The clocks are read under the lock, so that readings are processed in order.
    pub fn decide(&self, read: impl FnOnce() -> ClockReading) -> Now {
        let mut timeline = self.timeline.lock();
        let shown = read();
        let (next, wall, event) = timeline.read(self.corrected(shown.wall), shown.boot);
        *timeline = next;
        let now = Now {
            wall,
            mono: shown.mono,
        };
        let agreed = if next.ahead.is_some() {
            UNDECIDED
        } else {
            apart(now)
        };
        // The value is stored under the lock, so that decisions are published in order.
        self.agreed.store(agreed, Ordering::Relaxed);
        drop(timeline);
        // The lock is released first, because the listener takes time and requests may need the lock.
        if let Some(event) = event {
            let listener = self.listener.lock().clone();
            if let Some(listener) = listener {
                listener(event);
            }
        }
        now
    }

    pub fn report_to(&self, listener: Listener) {
        *self.listener.lock() = Some(listener);
    }
}

impl fmt::Debug for SharedTimeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps")
            .field("timeline", &self.timeline)
            .finish_non_exhaustive()
    }
}

/// Wall clock minus monotonic time.
const fn apart(now: Now) -> u64 {
    now.wall.0.wrapping_sub(now.mono.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 3_600;
    const DAY: i64 = 24 * HOUR;

    fn noon() -> Wall {
        Wall::parse_rfc3339("2026-11-21T12:00:00Z").unwrap()
    }

    /// A machine whose wall clock is off by some seconds, and a timeline that reads its clocks.
    struct Machine {
        timeline: Timeline,
        boot: Boot,
        off: i64,
    }

    impl Machine {
        fn new() -> Self {
            let boot = Boot(1_000_000_000);
            Self {
                timeline: Timeline::new(noon(), boot),
                boot,
                off: 0,
            }
        }

        /// The wall clock without steps.
        fn unset(&self) -> Wall {
            noon().plus(self.boot.since(Boot(1_000_000_000)))
        }

        fn shown(&self) -> Wall {
            let by = Duration::from_secs(self.off.unsigned_abs());
            if self.off < 0 {
                self.unset().minus(by)
            } else {
                self.unset().plus(by)
            }
        }

        fn read(&mut self) -> (Wall, Option<ClockEvent>) {
            let (next, wall, event) = self.timeline.read(self.shown(), self.boot);
            self.timeline = next;
            (wall, event)
        }

        fn after(&mut self, seconds: u64) -> (Wall, Option<ClockEvent>) {
            self.boot = Boot(self.boot.0 + seconds * NANOS);
            self.read()
        }

        fn set(&mut self, off: i64) -> (Wall, Option<ClockEvent>) {
            self.off = off;
            self.read()
        }
    }

    fn direction(event: Option<ClockEvent>) -> Option<StepDirection> {
        match event {
            Some(ClockEvent::Stepped { direction, .. }) => Some(direction),
            Some(ClockEvent::Followed { .. }) | None => None,
        }
    }

    #[test]
    fn forward_step_applies_after_one_minute() {
        let mut machine = Machine::new();
        let (applies, event) = machine.set(DAY);
        let from = noon();
        let to = machine.shown();
        let stepped = ClockEvent::Stepped {
            direction: StepDirection::Forward,
            from,
            to,
            applies: from,
        };
        assert_eq!((applies, event), (noon(), Some(stepped)));
        assert_eq!(machine.after(30), (machine.unset(), None));
        assert_eq!(machine.after(29), (machine.unset(), None));
        let (applies, event) = machine.after(1);
        let followed = ClockEvent::Followed {
            from: machine.unset(),
            to: machine.shown(),
        };
        assert_eq!((applies, event), (machine.shown(), Some(followed)));
        assert_eq!(machine.after(1), (machine.shown(), None));
    }

    #[test]
    fn a_step_backward_applies_at_once_and_one_of_a_minute_is_a_correction() {
        for (off, noticed) in [
            (-DAY, Some(StepDirection::Backward)),
            (-61, Some(StepDirection::Backward)),
            (-60, None),
            (-1, None),
            (1, None),
            (60, None),
        ] {
            let mut machine = Machine::new();
            let (applies, event) = machine.set(off);
            assert_eq!(
                (applies, direction(event)),
                (machine.shown(), noticed),
                "{off}"
            );
        }
        let (applies, event) = Machine::new().set(61);
        assert_eq!(
            (applies, direction(event)),
            (noon(), Some(StepDirection::Forward))
        );
    }

    #[test]
    fn midnight_and_suspend_are_not_steps() {
        let mut machine = Machine::new();
        for seconds in [12 * 3_600 - 1, 1, 5 * 86_400] {
            assert_eq!(machine.after(seconds), (machine.unset(), None));
        }
    }

    proptest! {
        /// If the clock is set forward and then back within a minute, the wrong time never applies, however often and
        /// however far the clock is set forward.
        #[test]
        fn an_excursion_shorter_than_a_minute_never_applies(
            excursions in prop::collection::vec((1u64..300, 1u64..60, 61i64..40 * DAY), 1..20),
        ) {
            let mut machine = Machine::new();
            for (pause, stay, ahead) in excursions {
                prop_assert_eq!(machine.set(0).0, machine.unset());
                for _ in 0..pause {
                    prop_assert_eq!(machine.after(1), (machine.unset(), None));
                }
                prop_assert_eq!(machine.set(ahead).0, machine.unset());
                for _ in 0..stay {
                    prop_assert_eq!(machine.after(1), (machine.unset(), None));
                }
            }
        }

        /// A time more than a minute ahead applies only after the clock has shown it for a whole minute.
        /// Any time that the clock keeps showing applies after a minute at the latest.
        #[test]
        fn applied_time_was_stable_for_a_minute_or_is_extrapolated(
            stays in prop::collection::vec((1u64..150, -3 * DAY..3 * DAY), 1..30),
        ) {
            let mut machine = Machine::new();
            let mut shown_for = 0u64;
            let mut last = 0i64;
            let mut applied = 0i64;
            for (stay, off) in stays {
                machine.set(off);
                shown_for = if (off - last).abs() <= 60 { shown_for } else { 0 };
                last = off;
                for _ in 0..stay {
                    let (applies, _) = machine.after(1);
                    shown_for += 1;
                    let apart = offset(applies, machine.boot) - offset(machine.unset(), machine.boot);
                    let now = i64::try_from(apart / 1_000_000_000).unwrap();
                    prop_assert!(now == off || now == applied, "{now} is neither shown nor in force");
                    if now > applied + 60 {
                        prop_assert!(shown_for >= 60, "{now} applies after {shown_for} s");
                    }
                    prop_assert!(now == off || shown_for < 60, "{off} does not apply after {shown_for} s");
                    applied = now;
                }
            }
        }
    }
}
