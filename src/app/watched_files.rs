//! Certificate files that are read again when they change, and the gauges about them.
//!
//! Compared by content, not by date, so replacing a symbolic link is noticed too. Files are read in `certificates`
//! (public port) and `backend_certificates`.

use std::sync::Arc;
use std::time::Duration;

use metrics::Gauge;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::config::ConfigProblems;
use scoregate_base::clock::{Clock, Wall};
use scoregate_observe::telemetry::metrics::MetricsRegistry;

/// Interval between checks of the files.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Files that belong together.
pub(super) trait WatchedFiles: Clone + Send + 'static {
    /// Their contents.
    type Contents: Send + 'static;
    /// Identifies the contents in use.
    fn in_use(&self) -> [u8; 32];
    /// Identifies the contents on disk. `None` if a file cannot be read.
    fn on_disk(&self) -> Option<[u8; 32]>;
    /// Reads and validates them. `None` if there are none.
    fn read(&self, now: Wall) -> Result<Option<Self::Contents>, ConfigProblems>;
    /// Uses other contents.
    fn renew(&self, contents: Self::Contents);
    /// Reports whether the files are rejected.
    fn set_rejected(&self, is_rejected: bool);
}

/// The use of certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CertificateUse {
    PublicPort,
    Backend,
}

/// The gauges of all certificates together.
#[derive(Clone)]
pub(super) struct CertificateGauges {
    expires_at: Gauge,
    rejected: Gauge,
    states: Arc<Mutex<[CertificateState; 2]>>,
}

#[derive(Clone, Copy, Default)]
struct CertificateState {
    expires_at: Option<Wall>,
    is_rejected: bool,
}

impl CertificateGauges {
    pub(super) fn new(registry: &MetricsRegistry) -> Self {
        let gauges = Self {
            expires_at: registry.gauge("scoregate_certificate_expiry_timestamp_seconds"),
            rejected: registry.gauge("scoregate_certificates_rejected"),
            states: Arc::default(),
        };
        gauges.change(CertificateUse::PublicPort, |_| {});
        gauges
    }

    /// Certificates are in use; `None` if they contain none that expires.
    pub(super) fn set_expiry(&self, of: CertificateUse, expires_at: Option<Wall>) {
        self.change(of, |state| {
            *state = CertificateState {
                expires_at,
                is_rejected: false,
            }
        });
    }

    pub(super) fn set_rejected(&self, of: CertificateUse, is_rejected: bool) {
        self.change(of, |state| state.is_rejected = is_rejected);
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "seconds since 1970 are far below 2^52"
    )]
    fn change(&self, of: CertificateUse, change: impl FnOnce(&mut CertificateState)) {
        // Held until the gauges are set, since they are computed from both states.
        let mut states = self.states.lock();
        let [public, backend] = &mut *states;
        change(match of {
            CertificateUse::PublicPort => public,
            CertificateUse::Backend => backend,
        });
        let first = states.iter().filter_map(|state| state.expires_at).min();
        self.expires_at.set(first.map_or(0, Wall::seconds) as f64);
        self.rejected.set(f64::from(u8::from(
            states.iter().any(|state| state.is_rejected),
        )));
    }
}

/// The result of a check.
enum FileCheck<T> {
    Same,
    New(T),
    Bad(Option<[u8; 32]>, ConfigProblems),
}

/// Checks the files until shutdown.
pub(super) async fn watch<F: WatchedFiles>(files: F, clock: Clock, stop: CancellationToken) {
    let mut rejected = None;
    while stop
        .run_until_cancelled(clock.sleep(CHECK_INTERVAL))
        .await
        .is_some()
    {
        let checked = files.clone();
        let now = clock.now().wall;
        // Files may be on a slow disk.
        let checked = tokio::task::spawn_blocking(move || check(&checked, rejected, now)).await;
        match checked {
            Ok(FileCheck::Same) => {}
            Ok(FileCheck::New(contents)) => {
                rejected = None;
                files.renew(contents);
            }
            Ok(FileCheck::Bad(fingerprint, problems)) => {
                rejected = fingerprint;
                files.set_rejected(true);
                tracing::error!(%problems, "changed certificates rejected; the previous certificates stay in use");
            }
            Err(_) => tracing::error!("checking certificate files panicked"),
        }
    }
}

fn check<F: WatchedFiles>(
    files: &F,
    rejected: Option<[u8; 32]>,
    now: Wall,
) -> FileCheck<F::Contents> {
    let fingerprint = files.on_disk();
    if fingerprint == Some(files.in_use()) {
        files.set_rejected(false);
        return FileCheck::Same;
    }
    // A rejected file is logged once, and read again when it changes.
    if fingerprint.is_some() && fingerprint == rejected {
        return FileCheck::Same;
    }
    match files.read(now) {
        Ok(Some(contents)) => FileCheck::New(contents),
        Ok(None) => FileCheck::Same,
        Err(problems) => FileCheck::Bad(fingerprint, problems),
    }
}
