//! A timer whose deadline can be moved, for deadlines that change often. For a simple wait, use [`Clock::sleep`].

use std::{
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll},
};

use tokio::task::coop::unconstrained;

use super::{Clock, ClockSource, Mono};

/// A timer whose deadline can be moved.
pub struct Alarm {
    clock: Clock,
    end: Option<Mono>,
    timer: Option<AlarmState>,
}

enum AlarmState {
    System(Pin<Box<tokio::time::Sleep>>),
    Manual(Pin<Box<dyn Future<Output = ()> + Send>>),
}

impl Clock {
    /// Creates a timer without a deadline.
    pub fn alarm(&self) -> Alarm {
        Alarm {
            clock: self.clone(),
            end: None,
            timer: None,
        }
    }
}

impl Alarm {
    /// Moves the deadline to `end` if that is earlier. To move the deadline to a later time, the owner waits until the
    /// alarm fires at the old time, checks the time, and sets the alarm again.
    pub fn set_by(&mut self, end: Mono) {
        if self.end.is_some_and(|set| set <= end) {
            return;
        }
        self.end = Some(end);
        match (&mut self.timer, &self.clock.source) {
            (Some(AlarmState::System(sleep)), ClockSource::System { .. }) => {
                let left = end.since(self.clock.mono());
                sleep.as_mut().reset(tokio::time::Instant::now() + left);
            }
            (_, ClockSource::System { .. }) => {
                let left = end.since(self.clock.mono());
                #[expect(
                    clippy::disallowed_methods,
                    reason = "waits belong in the clock module"
                )]
                let sleep = tokio::time::sleep(left);
                self.timer = Some(AlarmState::System(Box::pin(sleep)));
            }
            (_, ClockSource::Manual(_)) => {
                let clock = self.clock.clone();
                self.timer = Some(AlarmState::Manual(Box::pin(async move {
                    clock.sleep_until(end).await;
                })));
            }
        }
    }

    /// Ready at the deadline, which is then cleared.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let fired = match &mut self.timer {
            Some(_) if self.end.is_none() => Poll::Pending,
            // Other work of the task may have used up the task's budget in the runtime.
            Some(AlarmState::System(sleep)) => pin!(unconstrained(sleep.as_mut())).poll(cx),
            Some(AlarmState::Manual(wait)) => wait.as_mut().poll(cx),
            None => Poll::Pending,
        };
        if fired.is_ready() {
            self.end = None;
        }
        fired
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::clock::Wall;

    use super::*;

    #[tokio::test]
    async fn a_timer_fires_at_its_earliest_deadline_and_can_be_set_again() {
        let (clock, sender) = Clock::manual(Wall::from_seconds(0));
        let begun = clock.mono();
        let at = |seconds| begun.plus(Duration::from_secs(seconds));
        let mut alarm = clock.alarm();
        let mut fires =
            async || std::future::poll_fn(|cx| Poll::Ready(alarm.poll(cx).is_ready())).await;
        assert!(!fires().await);
        for (first, second, fired) in [(10, 20, 10), (40, 30, 30)] {
            let mut alarm = clock.alarm();
            alarm.set_by(at(first));
            alarm.set_by(at(second));
            let mut fires =
                async || std::future::poll_fn(|cx| Poll::Ready(alarm.poll(cx).is_ready())).await;
            sender.advance(
                at(fired)
                    .since(clock.mono())
                    .checked_sub(Duration::from_nanos(1))
                    .unwrap(),
            );
            assert!(!fires().await);
            sender.advance(Duration::from_nanos(1));
            assert!(fires().await);
            assert!(!fires().await, "it is no longer set");
        }
    }
}
