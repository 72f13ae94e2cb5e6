//! Watches over a connection while it is served: its deadlines, its age, and whether it is to end.
//!
//! One alarm for all of them, which is moved only when something is due earlier than before: a request in time costs no
//! timer. Not for: deciding what is due when (`pulse`).

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::clock::{Alarm, Clock, Mono};

use super::connection_activity::ConnectionActivity;
use super::deadlines::{Deadlines, HURRIED, MissedDeadline};

/// The watch over one connection.
pub(super) struct DeadlineTimer {
    pulse: Arc<ConnectionActivity>,
    deadlines: Deadlines,
    clock: Clock,
    alarm: Alarm,
    aged: Mono,
    told_to_retire: bool,
}

/// What a connection has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionSignal {
    /// It is to end in order: with the next answer, or soon.
    Retire,
    /// Something was not done in time.
    Overdue(MissedDeadline),
    /// Its place is needed.
    Cut,
}

impl DeadlineTimer {
    /// Begins to watch.
    pub(super) fn new(pulse: Arc<ConnectionActivity>, deadlines: Deadlines, clock: &Clock) -> Self {
        let (alarm, aged) = (clock.alarm(), clock.mono().plus(deadlines.age));
        Self { pulse, deadlines, clock: clock.clone(), alarm, aged, told_to_retire: false }
    }

    /// Waits for `work`, or for what ends it. A connection that is to end in order goes on until its work is done.
    pub(super) async fn over<T>(&mut self, work: impl Future<Output = T>) -> Result<T, ConnectionSignal> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = work.as_mut() => return Ok(done),
                told = self.told() => if told != ConnectionSignal::Retire { return Err(told) },
            }
        }
    }

    /// Waits until the connection has to know something. It is told once to retire.
    pub(super) async fn told(&mut self) -> ConnectionSignal {
        let pulse = Arc::clone(&self.pulse);
        loop {
            let mut nudged = pin!(pulse.nudged());
            let told = poll_fn(|cx| match self.look(cx) {
                Poll::Pending => nudged.as_mut().poll(cx).map(|()| None),
                told @ Poll::Ready(_) => told,
            });
            if let Some(told) = told.await {
                return told;
            }
        }
    }

    /// Ready with what there is to know, or with nothing, if the alarm rang for something that was done meanwhile. Every
    /// request comes by here, so the clock is read only when the alarm has rung.
    fn look(&mut self, cx: &mut Context<'_>) -> Poll<Option<ConnectionSignal>> {
        let seen = self.pulse.glance(&self.deadlines);
        if seen.is_cut {
            return Poll::Ready(Some(ConnectionSignal::Cut));
        }
        if seen.is_retiring && !self.told_to_retire {
            self.told_to_retire = true;
            return Poll::Ready(Some(ConnectionSignal::Retire));
        }
        let end = if seen.is_retiring { seen.end } else { seen.end.min(self.aged) };
        // Other connections can bring the end nearer, and tell nobody.
        self.alarm.set_by(if seen.may_hurry { end.min(self.clock.mono().plus(HURRIED)) } else { end });
        ready!(self.alarm.poll(cx));
        let now = self.clock.mono();
        if now >= self.aged && !seen.is_retiring {
            self.pulse.retire();
            return Poll::Ready(None);
        }
        Poll::Ready((seen.end <= now).then_some(ConnectionSignal::Overdue(seen.overdue)))
    }
}
