//! Background tasks, which run alongside the public port.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use scoregate_base::clock::Clock;

/// The owner of background tasks, with the objects that all of them need.
pub struct Background {
    pub clock: Clock,
    /// Stops the side port and all tasks.
    pub stop: CancellationToken,
    tasks: TaskTracker,
}

/// A task that finishes its work at shutdown.
pub struct FinishingTask {
    stop: CancellationToken,
    /// `None` if there is nothing to do.
    running: Option<JoinHandle<()>>,
}

/// One run of a periodic task.
type TaskRun<P> = fn(Arc<P>) -> BoxFuture<'static, ()>;

/// A task that is repeated until shutdown. A run in progress is completed first.
pub struct PeriodicTask<P> {
    pub name: &'static str,
    pub every: Duration,
    /// Whether the first run is at startup instead of after one period.
    pub is_immediate: bool,
    pub run: TaskRun<P>,
}

impl Background {
    /// Creates an owner without tasks.
    pub fn new(clock: &Clock) -> Self {
        Self {
            clock: clock.clone(),
            stop: CancellationToken::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// Starts a task that ends on its own.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.tasks.spawn(work)
    }

    /// Starts a task that finishes its work after the token is cancelled.
    pub fn finishing<W: Future<Output = ()> + Send + 'static>(
        &self,
        work: Option<impl FnOnce(CancellationToken) -> W>,
    ) -> FinishingTask {
        let stop = self.stop.child_token();
        let running = work.map(|work| self.spawn(work(stop.clone())));
        FinishingTask { stop, running }
    }

    /// Starts a task that is cancelled at shutdown.
    pub fn until_stopped(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.spawn(async move { stop.run_until_cancelled(work).await });
    }

    /// Starts periodic tasks.
    pub fn repeat<P: Send + Sync + 'static>(
        &self,
        tasks: &'static [PeriodicTask<P>],
        parts: &Arc<P>,
    ) {
        for task in tasks {
            let parts = Arc::clone(parts);
            let clock = self.clock.clone();
            let stop = self.stop.clone();
            self.spawn(async move {
                if task.is_immediate {
                    task.run_once(&parts).await;
                }
                while stop
                    .run_until_cancelled(clock.sleep(task.every))
                    .await
                    .is_some()
                {
                    task.run_once(&parts).await;
                }
            });
        }
    }
}

impl FinishingTask {
    /// Waits until the task ends. After `time` it is aborted, and `late` is logged.
    pub async fn finish(self, clock: &Clock, time: Duration, late: &str) {
        self.stop.cancel();
        let Some(mut running) = self.running else {
            return;
        };
        tracing::debug!("no more work begins");
        if clock.within(time, &mut running).await.is_err() {
            running.abort();
            tracing::warn!("{late}");
        }
    }
}

impl<P> PeriodicTask<P> {
    /// Runs the task once. A panic does not prevent later runs.
    async fn run_once(&self, parts: &Arc<P>) {
        let run = AssertUnwindSafe((self.run)(Arc::clone(parts)));
        if run.catch_unwind().await.is_err() {
            tracing::error!(task = self.name, "a periodic task panicked");
        }
    }
}
