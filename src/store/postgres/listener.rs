//! Notifications of changes, on a connection of their own. They are only a hint to read the change feed at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio_util::task::TaskTracker;

use super::connection::{DatabaseConfig, DatabaseConnection};
use crate::clock::Clock;

/// Delay before a lost connection is replaced. Meanwhile the feed is read at its usual interval.
const RETRY_DELAY: Duration = Duration::from_secs(1);

const LISTEN: &str = "LISTEN {schema}_changes";

/// Listens until it is dropped.
pub(super) struct ChangeListener {
    changed: Arc<Notify>,
    task: AbortHandle,
}

impl ChangeListener {
    pub(super) fn start(config: &DatabaseConfig, clock: Clock) -> Self {
        let changed = Arc::new(Notify::new());
        let mut config = config.clone();
        if let Some(server) = config.listen_server.take() {
            config.server = server;
        }
        let task = TaskTracker::new().spawn(listen(config, clock, Arc::clone(&changed))).abort_handle();
        Self { changed, task }
    }

    /// Waits for the next notification.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Drop for ChangeListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(config: DatabaseConfig, clock: Clock, changed: Arc<Notify>) {
    let statement = config.schema.statement(LISTEN);
    loop {
        let opening = Box::pin(DatabaseConnection::listening(&config, &changed, &statement));
        match clock.within(config.timeout, opening).await {
            Ok(Ok(connection)) => {
                // Changes before it are not notified.
                changed.notify_one();
                connection.closed().await;
            }
            Ok(Err(error)) => tracing::debug!(%error, "cannot listen for changes"),
            Err(_) => tracing::debug!("cannot listen for changes: the database did not answer in time"),
        }
        clock.sleep(RETRY_DELAY).await;
    }
}
