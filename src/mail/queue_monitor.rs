//! Measures the queue for the metrics.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::instruments::{Instruments, StoreWork};
use crate::store::Store;

/// Time after which the store counts as unreachable.
const STORE_TIMEOUT: Duration = Duration::from_secs(10);

/// Measures the queue.
pub struct QueueMonitor {
    store: Arc<dyn Store>,
    clock: Clock,
    instruments: Arc<Instruments>,
}

impl QueueMonitor {
    /// A monitor of the queue in `store`.
    pub fn new(store: Arc<dyn Store>, clock: Clock, instruments: Arc<Instruments>) -> Self {
        Self { store, clock, instruments }
    }

    /// Sets the gauges. While the queue cannot be read they keep their values.
    pub async fn measure(&self) {
        let Ok(Ok(backlog)) = self.clock.within(STORE_TIMEOUT, self.store.mail_backlog()).await else {
            self.instruments.store_failed(StoreWork::Mail);
            return;
        };
        let now = self.clock.now().wall;
        let age = backlog.oldest.map_or(Duration::ZERO, |oldest| now.since(oldest));
        self.instruments.mail().queue(backlog.mails, age);
    }
}
