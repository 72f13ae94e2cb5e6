//! Watches over a connection while it is served: its deadlines, its age, and whether it is to end.
//!
//! One alarm for all of them, which is moved only when something is due earlier than before: a request in time costs no
//! timer. Not for: deciding what is due when (`pulse`).

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio_util::sync::CancellationToken;

use crate::clock::{Alarm, Clock, Mono};

use super::pulse::{Deadlines, Overdue, Pulse};

/// The watch over one connection.
pub(super) struct Watch {
    pulse: Arc<Pulse>,
    deadlines: Deadlines,
    clock: Clock,
    alarm: Alarm,
    aged: Mono,
    stop: CancellationToken,
    told_to_retire: bool,
}

/// What a connection has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It is to end in order: with the next answer, or soon.
    Retire,
    /// Something was not done in time.
    Overdue(Overdue),
    /// Its place is needed.
    Cut,
}

impl Watch {
    /// Begins to watch. `stop` asks every connection to end in order.
    pub(super) fn new(
        pulse: Arc<Pulse>,
        deadlines: Deadlines,
        clock: &Clock,
        stop: CancellationToken,
    ) -> Self {
        let (alarm, aged) = (clock.alarm(), clock.mono().plus(deadlines.age));
        Self { pulse, deadlines, clock: clock.clone(), alarm, aged, stop, told_to_retire: false }
    }

    /// Waits for `work`, or for what ends it. A connection that is to end in order goes on until its work is done.
    pub(super) async fn over<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Told> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = work.as_mut() => return Ok(done),
                told = self.told() => if told != Told::Retire { return Err(told) },
            }
        }
    }

    /// Waits until the connection has to know something. It is told once to retire.
    pub(super) async fn told(&mut self) -> Told {
        loop {
            let (pulse, stop) = (Arc::clone(&self.pulse), self.stop.clone());
            let (mut nudged, mut stopped) = (pin!(pulse.nudged()), pin!(stop.cancelled()));
            let told = poll_fn(|cx| {
                if pulse.is_cut() {
                    return Poll::Ready(Some(Told::Cut));
                }
                if !self.told_to_retire {
                    if stopped.as_mut().poll(cx).is_ready() || self.clock.mono() >= self.aged {
                        pulse.retire();
                    }
                    if pulse.is_retiring() {
                        self.told_to_retire = true;
                        return Poll::Ready(Some(Told::Retire));
                    }
                }
                if let Poll::Ready(overdue) = self.poll_overdue(cx) {
                    return Poll::Ready(overdue.map(Told::Overdue));
                }
                nudged.as_mut().poll(cx).map(|()| None)
            });
            if let Some(told) = told.await {
                return told;
            }
        }
    }

    /// Ready when the alarm rings: with what is overdue, or with nothing, if it rang for something that was done
    /// meanwhile.
    fn poll_overdue(&mut self, cx: &mut Context<'_>) -> Poll<Option<Overdue>> {
        let (end, _) = self.pulse.next(&self.deadlines);
        self.alarm.set_by(if self.pulse.is_retiring() { end } else { end.min(self.aged) });
        std::task::ready!(self.alarm.poll(cx));
        let (end, overdue) = self.pulse.next(&self.deadlines);
        Poll::Ready((end <= self.clock.mono()).then_some(overdue))
    }
}
