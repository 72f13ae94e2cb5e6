//! Measures the mail queue for the metrics.

use std::{sync::Arc, time::Duration};

use crate::instruments::{MailInstruments, StoreWork};
use scoregate_base::clock::Clock;
use scoregate_store::Store;

/// Time after which the store counts as unreachable.
const STORE_TIMEOUT: Duration = Duration::from_secs(10);

/// Measures the mail queue.
pub struct QueueMonitor {
    queue: Store,
    clock: Clock,
    instruments: Arc<MailInstruments>,
}

impl QueueMonitor {
    /// A monitor of `queue`.
    pub fn new(queue: Store, clock: Clock, instruments: Arc<MailInstruments>) -> Self {
        Self {
            queue,
            clock,
            instruments,
        }
    }

    /// Sets the gauges. They keep their values while the queue cannot be read.
    pub async fn measure(&self) {
        let Ok(Ok(backlog)) = self
            .clock
            .within(STORE_TIMEOUT, self.queue.mail_backlog())
            .await
        else {
            self.instruments.store.failures.count(StoreWork::Mail);
            return;
        };
        let now = self.clock.now().wall;
        let age = backlog
            .oldest
            .map_or(Duration::ZERO, |oldest| now.since(oldest));
        self.instruments.queue(backlog.mails, age);
    }
}
