//! Notifications of changes, on a connection of their own. They are only a hint to read the change feed at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio_postgres::Config;
use tokio_util::task::TaskTracker;

use super::connection::{DatabaseConfig, DatabaseConnection};
use super::hosts::DatabaseHosts;
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
        let listening = listen(config.clone(), clock, Arc::clone(&changed));
        let task = TaskTracker::new().spawn(listening).abort_handle();
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
    let mut hosts = DatabaseHosts::new(config.listen_server.as_ref().unwrap_or(&config.server));
    let (tls, notified, statement) = (config.tls.as_deref(), &changed, &statement);
    let open = |server: Config| async move {
        DatabaseConnection::listening(&server, tls, notified, statement).await
    };
    loop {
        match Box::pin(hosts.connect(&clock, config.timeout, &open)).await {
            Ok(connection) => {
                // Changes before it are not notified.
                changed.notify_one();
                connection.closed().await;
            }
            Err(error) => tracing::debug!(%error, "cannot listen for changes"),
        }
        clock.sleep(RETRY_DELAY).await;
    }
}
