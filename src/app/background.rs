//! The tasks that run next to the public port.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use scoregate_base::clock::Clock;

/// The owner of background tasks, with the objects that all of them need.
pub(super) struct Background {
    pub(super) clock: Clock,
    /// Stops the side port and all tasks.
    pub(super) stop: CancellationToken,
    tasks: TaskTracker,
}

impl Background {
    /// Without tasks.
    pub(super) fn new(clock: &Clock) -> Self {
        Self {
            clock: clock.clone(),
            stop: CancellationToken::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// Starts a task, which ends by itself.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.tasks.spawn(work)
    }

    /// Starts a task that is cancelled at the stop.
    pub(super) fn until_stopped(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.spawn(async move { stop.run_until_cancelled(work).await });
    }

    /// Starts a task that does `work` with `of` at this interval.
    pub(super) fn repeat<T, R>(
        &self,
        every: Duration,
        of: &T,
        work: impl Fn(T) -> R + Send + 'static,
    ) where
        T: Clone + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.spawn(self.repeated(every, of, work));
    }

    /// Does `work` with `of` at this interval, until the stop. A run that has begun is finished.
    pub(super) fn repeated<T: Clone, R: Future<Output = ()>, W: Fn(T) -> R>(
        &self,
        every: Duration,
        of: &T,
        work: W,
    ) -> impl Future<Output = ()> + use<T, R, W> {
        let clock = self.clock.clone();
        let stop = self.stop.clone();
        let of = of.clone();
        async move {
            while stop.run_until_cancelled(clock.sleep(every)).await.is_some() {
                work(of.clone()).await;
            }
        }
    }
}
