//! Watches a backend over the network: the names of its addresses, and the files of its authorities and of the client
//! certificate, which are reloaded when they change. They are validated in `upstream`.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::config::{ConfigProblems, read_backend_tls};
use crate::upstream::{BackendTls, BackendTlsSettings, HttpUpstream, NameWatcher};
use scoregate_base::clock::{Clock, Wall};

use super::watched_files::{CertificateGauges, CertificateUse, WatchedFiles, watch};

/// The TLS settings of the backend, and the contents of their files that are in use.
#[derive(Clone)]
pub(super) struct BackendWatch {
    addresses: Vec<Arc<HttpUpstream>>,
    watcher: Arc<NameWatcher>,
    settings: BackendTlsSettings,
    fingerprint: Arc<Mutex<[u8; 32]>>,
    clock: Clock,
    gauges: CertificateGauges,
}

/// The backend as it was started.
pub(super) struct BackendInUse {
    pub(super) addresses: Vec<Arc<HttpUpstream>>,
    pub(super) watcher: NameWatcher,
    pub(super) settings: BackendTlsSettings,
    /// The contents of the files.
    pub(super) tls: BackendTls,
}

impl BackendWatch {
    pub(super) fn new(in_use: BackendInUse, clock: &Clock, gauges: CertificateGauges) -> Self {
        let BackendInUse {
            addresses,
            watcher,
            settings,
            tls,
        } = in_use;
        gauges.set_expiry(CertificateUse::Backend, tls.client_expires_at);
        let fingerprint = Arc::new(Mutex::new(tls.fingerprint));
        let watcher = Arc::new(watcher);
        let clock = clock.clone();
        Self {
            addresses,
            watcher,
            settings,
            fingerprint,
            clock,
            gauges,
        }
    }

    /// Watches names and files until shutdown.
    pub(super) async fn run(self, stop: CancellationToken) {
        let watcher = Arc::clone(&self.watcher);
        let clock = self.clock.clone();
        let stop_files = stop.clone();
        let watch_files = async {
            if self.settings.has_files() {
                watch(self, clock, stop_files).await;
            }
        };
        tokio::join!(watcher.run(stop), watch_files);
    }

    /// Reads the files for a reload.
    pub(super) fn read_again(&self) -> Result<BackendTls, ConfigProblems> {
        read_backend_tls(&self.settings, &self.clock)
    }
}

impl WatchedFiles for BackendWatch {
    type Contents = BackendTls;

    fn in_use(&self) -> [u8; 32] {
        *self.fingerprint.lock()
    }

    fn on_disk(&self) -> Option<[u8; 32]> {
        self.settings.fingerprint()
    }

    fn read(&self, _now: Wall) -> Result<Option<BackendTls>, ConfigProblems> {
        self.read_again().map(Some)
    }

    /// Connections of the old contents are closed, unless nothing has changed.
    fn renew(&self, tls: BackendTls) {
        let is_new =
            // Compared and replaced in one step: the watch and a reload may read the same files.
            std::mem::replace(&mut *self.fingerprint.lock(), tls.fingerprint) != tls.fingerprint;
        if is_new {
            self.addresses
                .iter()
                .for_each(|address| address.renew_tls(&tls));
            tracing::info!("certificates for the backend reloaded");
        }
        self.gauges
            .set_expiry(CertificateUse::Backend, tls.client_expires_at);
    }

    fn set_rejected(&self, is_rejected: bool) {
        self.gauges
            .set_rejected(CertificateUse::Backend, is_rejected);
    }
}
