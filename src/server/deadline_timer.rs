//! Watches a connection: its deadlines, its age, and whether it is to end.
//!
//! One timer for all of them, which moves only when something is due earlier than before: a request that meets its
//! deadlines costs no timer. Deadlines are computed in `deadlines`.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use scoregate_base::clock::{Alarm, Clock, Mono};

use super::activity::ConnectionActivity;
use super::deadlines::{Deadlines, HURRIED_WRITE_TIMEOUT, MissedDeadline};

/// The timer of one connection.
pub(super) struct DeadlineTimer {
    activity: Arc<ConnectionActivity>,
    deadlines: Deadlines,
    clock: Clock,
    alarm: Alarm,
    max_age_at: Mono,
    has_signalled_retire: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionSignal {
    /// Close in order: after the next response, or soon.
    Retire,
    /// A deadline was missed.
    Overdue(MissedDeadline),
    /// Close now: the slot is needed.
    Cut,
}

impl DeadlineTimer {
    pub(super) fn new(activity: Arc<ConnectionActivity>, deadlines: Deadlines, clock: &Clock) -> Self {
        let (alarm, max_age_at) = (clock.alarm(), clock.mono().plus(deadlines.age));
        Self { activity, deadlines, clock: clock.clone(), alarm, max_age_at, has_signalled_retire: false }
    }

    /// Waits for `work`, or for a signal that ends it. With [`ConnectionSignal::Retire`] the work continues.
    pub(super) async fn run<T>(&mut self, work: impl Future<Output = T>) -> Result<T, ConnectionSignal> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = work.as_mut() => return Ok(done),
                signal = self.signal() => if signal != ConnectionSignal::Retire { return Err(signal) },
            }
        }
    }

    /// Waits for a signal. `Retire` is sent once.
    pub(super) async fn signal(&mut self) -> ConnectionSignal {
        let activity = Arc::clone(&self.activity);
        loop {
            let mut changed = pin!(activity.changed());
            let signal = poll_fn(|cx| match self.poll_signal(cx) {
                Poll::Pending => changed.as_mut().poll(cx).map(|()| None),
                signal @ Poll::Ready(_) => signal,
            });
            if let Some(signal) = signal.await {
                return signal;
            }
        }
    }

    /// Ready with a signal, or with `None` if the timer fired for something that has been done since. Called for
    /// every request, so the clock is read only after the timer fired.
    fn poll_signal(&mut self, cx: &mut Context<'_>) -> Poll<Option<ConnectionSignal>> {
        let snapshot = self.activity.snapshot(&self.deadlines);
        if snapshot.is_cut {
            return Poll::Ready(Some(ConnectionSignal::Cut));
        }
        if snapshot.is_retiring && !self.has_signalled_retire {
            self.has_signalled_retire = true;
            return Poll::Ready(Some(ConnectionSignal::Retire));
        }
        let end = if snapshot.is_retiring { snapshot.end } else { snapshot.end.min(self.max_age_at) };
        // Other connections can move the end closer without notice.
        self.alarm.set_by(if snapshot.may_be_hurried {
            end.min(self.clock.mono().plus(HURRIED_WRITE_TIMEOUT))
        } else {
            end
        });
        ready!(self.alarm.poll(cx));
        let now = self.clock.mono();
        if now >= self.max_age_at && !snapshot.is_retiring {
            self.activity.retire();
            return Poll::Ready(None);
        }
        Poll::Ready((snapshot.end <= now).then_some(ConnectionSignal::Overdue(snapshot.overdue)))
    }
}
