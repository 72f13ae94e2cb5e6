//! Notifications of changes and of shared documents, on a separate connection. Each is only a hint to read the store immediately.

use std::{sync::Arc, time::Duration};

use tokio::sync::{Notify, watch};
use tokio_postgres::Config;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::postgres::connection::{
    database_connection::{DatabaseConfig, DatabaseConnection, NotificationSink},
    hosts::DatabaseHosts,
};
use scoregate_base::clock::Clock;

/// Delay before a lost connection is reopened. Meanwhile, the feed is read at its usual interval.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Listens until it is dropped.
pub struct ChangeListener {
    _task: AbortOnDropHandle<()>,
    hints: Arc<ListenerHints>,
}

struct ListenerHints {
    /// Wakes the only reader of the feed.
    changed: Notify,
    /// Wakes all callers that wait for a document.
    documents: watch::Sender<()>,
}

impl ChangeListener {
    pub(crate) fn start(config: &DatabaseConfig, clock: Clock) -> Self {
        let hints = Arc::new(ListenerHints {
            changed: Notify::new(),
            documents: watch::Sender::new(()),
        });
        let listening = listen(config.clone(), clock, Arc::clone(&hints));
        let task = AbortOnDropHandle::new(TaskTracker::new().spawn(listening));
        Self { _task: task, hints }
    }

    /// Waits for the next notification of a change.
    pub(crate) async fn changed(&self) {
        self.hints.changed.notified().await;
    }

    /// Waits for the first document hint that arrives after this call.
    pub(crate) fn documents_changed(&self) -> impl Future<Output = ()> + use<> {
        let mut hints = self.hints.documents.subscribe();
        async move {
            if hints.changed().await.is_err() {
                // The store is being dropped, so no hint will follow.
                std::future::pending::<()>().await;
            }
        }
    }
}

impl ListenerHints {
    /// If the schema has a long name, the names of its channels are truncated and may be equal.
    fn notified(&self, channel: &str) {
        let is_change = channel.ends_with("_changes");
        let is_document = channel.ends_with("_documents");
        if is_change || !is_document {
            self.changed.notify_one();
        }
        if is_document || !is_change {
            self.documents.send_replace(());
        }
    }
}

async fn listen(config: DatabaseConfig, clock: Clock, hints: Arc<ListenerHints>) {
    let mut hosts = DatabaseHosts::new(&config.listen_servers);
    let notified = Arc::clone(&hints);
    let sink: NotificationSink = Arc::new(move |channel| notified.notified(channel));
    let config = &config;
    let sink = &sink;
    let open = |server: Config| DatabaseConnection::listening(config, server, sink);
    loop {
        match Box::pin(hosts.connect(&clock, config.timeout, &open)).await {
            Ok(connection) => {
                // No notifications were sent for changes before this point.
                hints.changed.notify_one();
                hints.documents.send_replace(());
                connection.closed().await;
            }
            Err(error) => tracing::debug!(%error, "cannot listen for changes"),
        }
        clock.sleep(RETRY_DELAY).await;
    }
}
