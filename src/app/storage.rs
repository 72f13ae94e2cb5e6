//! Metrics of the data directory: free space of its file system, and the last backup.
//!
//! Measured in the background: a disk that hangs delays neither requests nor scrapes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use metrics::Gauge;
use rustix::fs::statvfs;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use scoregate_base::clock::Clock;
use scoregate_observe::telemetry::metrics::MetricsRegistry;
use scoregate_store::maintenance::last_backup;

const MEASURE_EVERY: Duration = Duration::from_secs(15);

struct BackupGauges {
    at: Gauge,
    bytes: Gauge,
}

/// The gauges and the directory.
pub(super) struct StorageGauges {
    directory: PathBuf,
    free: Gauge,
    size: Gauge,
    /// `None` with a database, whose backups are made by other tools.
    last_backup: Option<BackupGauges>,
}

impl StorageGauges {
    /// Measures for the first time.
    pub(super) fn new(directory: &Path, config: &Config, registry: &MetricsRegistry) -> Self {
        let last_backup = || BackupGauges {
            at: registry.gauge("scoregate_last_backup_timestamp_seconds"),
            bytes: registry.gauge("scoregate_last_backup_size_bytes"),
        };
        let storage = Self {
            directory: directory.to_owned(),
            free: registry.gauge("scoregate_data_dir_free_bytes"),
            size: registry.gauge("scoregate_data_dir_size_bytes"),
            last_backup: config.database.is_none().then(last_backup),
        };
        if let Err(error) = storage.measure() {
            storage.report(&error);
        }
        storage
    }

    /// Measures until shutdown. A failure is logged when it begins.
    pub(super) async fn run(self, clock: Clock, stop: CancellationToken) {
        let storage = Arc::new(self);
        let mut is_failing = false;
        while stop
            .run_until_cancelled(clock.sleep(MEASURE_EVERY))
            .await
            .is_some()
        {
            let measured = Arc::clone(&storage);
            match tokio::task::spawn_blocking(move || measured.measure()).await {
                Ok(Ok(())) => is_failing = false,
                Ok(Err(error)) => {
                    if !std::mem::replace(&mut is_failing, true) {
                        storage.report(&error);
                    }
                }
                Err(_) => tracing::error!("measuring the data directory panicked"),
            }
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a gauge is a float; sizes and instants are far below 2^53"
    )]
    fn measure(&self) -> io::Result<()> {
        let file_system = statvfs(&self.directory)?;
        self.free
            .set(file_system.f_bavail.saturating_mul(file_system.f_frsize) as f64);
        self.size
            .set(file_system.f_blocks.saturating_mul(file_system.f_frsize) as f64);
        if let Some(gauges) = &self.last_backup {
            let (at, bytes) = last_backup(&self.directory)?
                .map_or((0, 0), |last| (last.at.seconds(), last.bytes));
            gauges.bytes.set(bytes as f64);
            gauges.at.set(at as f64);
        }
        Ok(())
    }

    fn report(&self, error: &io::Error) {
        let directory = self.directory.display();
        tracing::warn!(%error, %directory, "data directory cannot be measured; its metrics keep their last values");
    }
}
