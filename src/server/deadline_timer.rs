//! Watches a connection: its deadlines, its age, and whether it has to be closed. All deadlines share one timer, which
//! is changed only when an earlier deadline appears. A request that meets its deadlines needs neither a timer nor a
//! computation of deadlines, which is in `deadlines`.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker, ready},
};

use scoregate_base::clock::{Alarm, Clock, Mono};

use super::{
    activity::ConnectionActivity,
    deadlines::{Deadlines, HURRIED_WRITE_TIMEOUT, MissedDeadline},
};

/// The timer of one connection.
pub struct DeadlineTimer {
    activity: Arc<ConnectionActivity>,
    deadlines: Deadlines,
    clock: Clock,
    alarm: Alarm,
    /// Kinds of deadlines, as bits. If a bit is set, the alarm fires no later than the deadline of that kind.
    set_for: u8,
    max_age_at: Mono,
    has_signalled_retire: bool,
}

/// Wakes a connection, and records that the signal has to be polled again because the alarm has fired or the state has
/// changed.
struct SignalWaker {
    connection: Waker,
    has_woken: AtomicBool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionSignal {
    /// Close gracefully: after the next response, or after a short wait if there is no request.
    Retire,
    /// A deadline was missed.
    Overdue(MissedDeadline),
    /// Close immediately, because the slot is needed.
    Cut,
}

impl DeadlineTimer {
    pub fn new(activity: Arc<ConnectionActivity>, deadlines: Deadlines, clock: &Clock) -> Self {
        let alarm = clock.alarm();
        let max_age_at = clock.mono().plus(deadlines.age);
        Self {
            activity,
            deadlines,
            clock: clock.clone(),
            alarm,
            set_for: 0,
            max_age_at,
            has_signalled_retire: false,
        }
    }

    /// Waits for `work`, or for a signal that ends it. The work continues after [`ConnectionSignal::Retire`].
    pub async fn run<T>(&mut self, work: impl Future<Output = T>) -> Result<T, ConnectionSignal> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                // The work is polled first, because its progress may move the deadline that is checked next.
                done = work.as_mut() => return Ok(done),
                signal = self.signal() => if signal != ConnectionSignal::Retire { return Err(signal) },
            }
        }
    }

    /// Waits for a signal. `Retire` is sent once.
    pub async fn signal(&mut self) -> ConnectionSignal {
        let activity = Arc::clone(&self.activity);
        loop {
            let mut changed = pin!(activity.changed());
            let mut registered: Option<Arc<SignalWaker>> = None;
            let signal = poll_fn(|cx| {
                registered.take_if(|waker| !waker.is_quiet(cx));
                if registered.is_some() && self.is_set() {
                    return Poll::Pending;
                }
                let waker = Arc::clone(registered.get_or_insert_with(|| SignalWaker::new(cx)));
                let waker = Waker::from(waker);
                let cx = &mut Context::from_waker(&waker);
                match self.poll_signal(cx) {
                    Poll::Pending => changed.as_mut().poll(cx).map(|()| None),
                    signal @ Poll::Ready(_) => signal,
                }
            });
            if let Some(signal) = signal.await {
                return signal;
            }
        }
    }

    /// Whether the alarm is early enough for the next deadline. A signal from another task is either seen here, under
    /// the lock of the state, or wakes the connection afterwards.
    fn is_set(&self) -> bool {
        self.activity
            .sole_deadline()
            .is_some_and(|kind| self.set_for & bit(kind) != 0)
    }

    /// Ready with a signal, or with `None` if the timer fired for a deadline that has been met.
    fn poll_signal(&mut self, cx: &mut Context<'_>) -> Poll<Option<ConnectionSignal>> {
        let snapshot = self.activity.snapshot(&self.deadlines);
        if snapshot.is_cut {
            return Poll::Ready(Some(ConnectionSignal::Cut));
        }
        if snapshot.is_retiring && !self.has_signalled_retire {
            self.has_signalled_retire = true;
            return Poll::Ready(Some(ConnectionSignal::Retire));
        }
        let end = if snapshot.is_retiring {
            snapshot.end
        } else {
            snapshot.end.min(self.max_age_at)
        };
        // Other connections can move the deadline closer without waking this connection.
        self.alarm.set_by(if snapshot.may_be_hurried {
            end.min(self.clock.mono().plus(HURRIED_WRITE_TIMEOUT))
        } else {
            end
        });
        self.set_for |= snapshot.sole_deadline.map_or(0, bit);
        ready!(self.alarm.poll(cx));
        self.set_for = 0;
        let now = self.clock.mono();
        if now >= self.max_age_at && !snapshot.is_retiring {
            self.activity.retire();
            return Poll::Ready(None);
        }
        Poll::Ready((snapshot.end <= now).then_some(ConnectionSignal::Overdue(snapshot.overdue)))
    }
}

impl SignalWaker {
    fn new(cx: &Context<'_>) -> Arc<Self> {
        Arc::new(Self {
            connection: cx.waker().clone(),
            has_woken: AtomicBool::new(false),
        })
    }

    /// Whether the waker has not woken any task yet and would wake this one.
    fn is_quiet(&self, cx: &Context<'_>) -> bool {
        !self.has_woken.load(Ordering::Acquire) && self.connection.will_wake(cx.waker())
    }
}

impl Wake for SignalWaker {
    fn wake(self: Arc<Self>) {
        // The flag is stored before the task is woken, so that its next poll sees that the signal has to be polled
        // again.
        self.has_woken.store(true, Ordering::Release);
        self.connection.wake_by_ref();
    }
}

fn bit(kind: MissedDeadline) -> u8 {
    1 << kind as u8
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::time::Duration;

    use scoregate_base::clock::{ManualClock, Wall};

    use super::*;

    /// The request timeout is longer than the idle timeout.
    const DEADLINES: Deadlines = Deadlines {
        head: Duration::from_secs(10),
        idle: Duration::from_mins(1),
        request: Duration::from_mins(5),
        write: Duration::from_secs(20),
        age: Duration::from_hours(1),
    };

    /// Whether a task has been woken since it was last polled.
    #[derive(Default)]
    struct WokenTask(AtomicBool);

    impl Wake for WokenTask {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    impl WokenTask {
        fn is_woken(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }

        /// The signal of a connection that is polled now.
        fn poll(
            self: &Arc<Self>,
            signal: Pin<&mut impl Future<Output = ConnectionSignal>>,
        ) -> Poll<ConnectionSignal> {
            self.0.store(false, Ordering::Relaxed);
            signal.poll(&mut Context::from_waker(&Waker::from(Arc::clone(self))))
        }

        /// Polls a connection's signal as long as it is woken. Returns the signal if it is ready.
        fn run(
            self: &Arc<Self>,
            mut signal: Pin<&mut impl Future<Output = ConnectionSignal>>,
        ) -> Option<ConnectionSignal> {
            while self.is_woken() {
                if let Poll::Ready(signal) = self.poll(signal.as_mut()) {
                    return Some(signal);
                }
            }
            None
        }
    }

    fn timer() -> (Arc<ConnectionActivity>, DeadlineTimer, ManualClock) {
        let (clock, manual) = Clock::manual(Wall::from_seconds(0));
        let activity = Arc::new(ConnectionActivity::new(
            clock.clone(),
            Arc::default(),
            Arc::default(),
        ));
        (
            Arc::clone(&activity),
            DeadlineTimer::new(activity, DEADLINES, &clock),
            manual,
        )
    }

    fn respond(activity: &ConnectionActivity) {
        activity.received(1);
        activity.request_started();
        activity.response_complete();
        activity.flushed(1);
    }

    #[test]
    fn an_earlier_deadline_of_another_kind_is_met() {
        let (activity, mut timer, hand) = timer();
        let task = Arc::new(WokenTask::default());
        let mut signal = pin!(timer.signal());
        activity.request_started();
        assert!(task.poll(signal.as_mut()).is_pending());
        hand.advance(Duration::from_secs(11));
        assert_eq!(task.run(signal.as_mut()), None);
        activity.response_complete();
        activity.flushed(1);
        assert!(task.poll(signal.as_mut()).is_pending());
        hand.advance(DEADLINES.idle);
        assert_eq!(
            task.run(signal),
            Some(ConnectionSignal::Overdue(MissedDeadline::Idle))
        );
    }

    #[test]
    fn a_deadline_moves_away_with_each_request_until_the_next_one_does_not_come() {
        let (activity, mut timer, hand) = timer();
        let task = Arc::new(WokenTask::default());
        let mut signal = pin!(timer.signal());
        for _ in 0..9 {
            respond(&activity);
            assert!(task.poll(signal.as_mut()).is_pending());
            hand.advance(Duration::from_secs(31));
            assert_eq!(task.run(signal.as_mut()), None);
        }
        hand.advance(Duration::from_secs(28));
        assert_eq!(task.run(signal.as_mut()), None);
        hand.advance(Duration::from_secs(1));
        assert_eq!(
            task.run(signal),
            Some(ConnectionSignal::Overdue(MissedDeadline::Idle))
        );
    }

    #[test]
    fn a_signal_of_another_task_wakes_a_connection_that_only_waits() {
        let (activity, mut timer, _hand) = timer();
        let task = Arc::new(WokenTask::default());
        let mut signal = Box::pin(timer.signal());
        for _ in 0..3 {
            respond(&activity);
            assert!(task.poll(signal.as_mut()).is_pending());
        }
        assert!(!task.is_woken());
        activity.trust().record_admission();
        assert!(
            task.is_woken() && task.run(signal.as_mut()).is_none(),
            "woken for something else"
        );
        activity.retire();
        assert_eq!(task.run(signal.as_mut()), Some(ConnectionSignal::Retire));
        respond(&activity);
        drop(signal);
        let mut signal = Box::pin(timer.signal());
        assert!(task.poll(signal.as_mut()).is_pending());
        activity.cut();
        assert_eq!(task.run(signal.as_mut()), Some(ConnectionSignal::Cut));
    }
}
