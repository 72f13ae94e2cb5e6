//! Metrics of the data directory: free space of its file system, and the last backup.
//!
//! Measurements run in the background, so that a disk that hangs delays neither requests nor scrapes.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use metrics::Gauge;
use rustix::fs::statvfs;

use scoregate_observe::telemetry::metrics::number_value;
use scoregate_store::maintenance::last_backup;

use super::start_context::StartContext;

struct BackupGauges {
    at: Gauge,
    bytes: Gauge,
}

/// The gauges, and the directory that they describe.
pub struct StorageGauges {
    directory: PathBuf,
    free: Gauge,
    size: Gauge,
    /// `None` for a database, because other tools make its backups.
    last_backup: Option<BackupGauges>,
    /// Whether the last measurement failed.
    is_failing: AtomicBool,
}

impl StorageGauges {
    /// Creates the gauges with their first measurement.
    pub fn new(context: &StartContext, directory: &Path) -> Self {
        let registry = &context.registry;
        let backups = context.config.database.is_none().then(|| BackupGauges {
            at: registry.gauge("scoregate_last_backup_timestamp_seconds"),
            bytes: registry.gauge("scoregate_last_backup_size_bytes"),
        });
        let storage = Self {
            directory: directory.to_owned(),
            free: registry.gauge("scoregate_data_dir_free_bytes"),
            size: registry.gauge("scoregate_data_dir_size_bytes"),
            last_backup: backups,
            is_failing: AtomicBool::new(false),
        };
        storage.measure_or_report();
        storage
    }

    /// Measures on another thread. Only the first of several consecutive failures is logged.
    pub async fn refresh(self: &Arc<Self>) {
        let storage = Arc::clone(self);
        if tokio::task::spawn_blocking(move || storage.measure_or_report())
            .await
            .is_err()
        {
            tracing::error!("measuring the data directory panicked");
        }
    }

    fn measure_or_report(&self) {
        let measured = self.measure();
        let was_failing = self.is_failing.swap(measured.is_err(), Ordering::Relaxed);
        if let Err(error) = measured
            && !was_failing
        {
            let directory = self.directory.display();
            tracing::warn!(%error, %directory, "data directory cannot be measured; its metrics keep their last values");
        }
    }

    fn measure(&self) -> io::Result<()> {
        let file_system = statvfs(&self.directory)?;
        let block = file_system.f_frsize;
        let free = file_system.f_bavail.saturating_mul(block);
        let size = file_system.f_blocks.saturating_mul(block);
        self.free.set(number_value(free));
        self.size.set(number_value(size));
        if let Some(gauges) = &self.last_backup {
            let (at, bytes) = last_backup(&self.directory)?
                .map_or((0, 0), |last| (last.at.seconds(), last.bytes));
            gauges.bytes.set(number_value(bytes));
            gauges.at.set(number_value(at));
        }
        Ok(())
    }
}
