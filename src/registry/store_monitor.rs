//! Reads the state of the store for its metrics, and logs when its file is missing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;

use crate::instruments::StoreInstruments;
use scoregate_base::clock::{Clock, Mono};
use scoregate_store::{Store, StoreResult};

/// Minimum interval between log lines while the store file is missing or replaced.
// The check runs every few seconds, and a log line for each check would hide other errors.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// Watches the store.
pub struct StoreMonitor {
    store: Store,
    clock: Clock,
    instruments: Arc<StoreInstruments>,
    /// Time of the last log line about a missing or replaced store file.
    misplaced_logged_at: ArcSwapOption<Mono>,
    /// Whether the last measurement failed.
    is_failing: AtomicBool,
}

impl StoreMonitor {
    /// Watches a store.
    pub fn new(store: Store, clock: Clock, instruments: Arc<StoreInstruments>) -> Self {
        Self {
            store,
            clock,
            instruments,
            misplaced_logged_at: ArcSwapOption::empty(),
            is_failing: AtomicBool::new(false),
        }
    }

    /// Sets the damage metric if the store was found damaged. Called periodically.
    pub fn check_damage(&self) {
        self.instruments.is_damaged(self.store.damage().is_some());
    }

    /// Sets the metric for a missing or replaced store file. The condition is logged when it begins, every minute while
    /// it lasts, and when it ends. Called every few seconds.
    pub async fn check_file(&self) {
        let store = self.store.clone();
        // Runs on a separate thread, because a disk that hangs must not block a serving thread.
        let Ok(found) = tokio::task::spawn_blocking(move || store.missing_or_replaced()).await
        else {
            return;
        };
        self.instruments.file_invalid(found.is_some());
        let now = self.clock.now().mono;
        let before = self.misplaced_logged_at.load();
        match (found, before.as_deref()) {
            (Some(reason), before)
                if before.is_none_or(|logged| now.since(*logged) >= LOG_INTERVAL) =>
            {
                self.misplaced_logged_at.store(Some(Arc::new(now)));
                tracing::error!(
                    %reason,
                    "store file missing or replaced; key changes are refused and no units are leased. Move the same file \
                     back; or stop the server, run `scoregate store restore BACKUP`, and start it again"
                );
            }
            (None, Some(_)) => {
                self.misplaced_logged_at.store(None);
                tracing::info!("store file found again");
            }
            (Some(_) | None, _) => {}
        }
    }

    /// Sets the metrics of a shared store. If the state of the store cannot be read, the metrics keep their values.
    /// Only the first of several consecutive failures is logged. Called every few seconds.
    pub async fn measure(&self) {
        let measured = self.try_measure().await;
        let was_failing = self.is_failing.swap(measured.is_err(), Ordering::Relaxed);
        if let Err(error) = measured
            && !was_failing
        {
            tracing::warn!(%error, "state of the database cannot be read; its metrics keep their last values");
        }
    }

    async fn try_measure(&self) -> StoreResult<()> {
        let metrics = &self.instruments.shared;
        metrics.exchanges(self.store.exchange_counts());
        if let Some(status) = self.store.database_status().await? {
            metrics.status(&status);
        }
        Ok(())
    }
}
