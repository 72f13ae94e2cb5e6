//! Reloads the authorities and the client certificate for the backend when their files change. They are validated in
//! `upstream`.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Wall};
use crate::config::{ConfigProblems, read_backend_tls};
use crate::upstream::{BackendTls, BackendTlsSettings, HttpUpstream};

use super::watched_files::{CertificateGauges, CertificateUse, WatchedFiles, watch};

/// The TLS settings of the backend, and the contents of their files that are in use.
#[derive(Clone)]
pub(super) struct BackendCertificates {
    backend: Arc<HttpUpstream>,
    settings: BackendTlsSettings,
    fingerprint: Arc<Mutex<[u8; 32]>>,
    clock: Clock,
    gauges: CertificateGauges,
}

/// TLS towards the backend as it was started.
pub(super) struct BackendTlsInUse {
    pub(super) backend: Arc<HttpUpstream>,
    pub(super) settings: BackendTlsSettings,
    /// The contents of the files.
    pub(super) tls: BackendTls,
}

impl BackendCertificates {
    pub(super) fn new(in_use: BackendTlsInUse, clock: &Clock, gauges: CertificateGauges) -> Self {
        let BackendTlsInUse { backend, settings, tls } = in_use;
        gauges.set_expiry(CertificateUse::Backend, tls.client_expires_at);
        let fingerprint = Arc::new(Mutex::new(tls.fingerprint));
        Self { backend, settings, fingerprint, clock: clock.clone(), gauges }
    }

    /// Checks the files until shutdown.
    pub(super) async fn run(self, stop: CancellationToken) {
        if self.settings.has_files() {
            let clock = self.clock.clone();
            watch(self, clock, stop).await;
        }
    }

    /// Reads the files for a reload.
    pub(super) fn read_again(&self) -> Result<BackendTls, ConfigProblems> {
        read_backend_tls(&self.settings, &self.clock)
    }
}

impl WatchedFiles for BackendCertificates {
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
        let is_new = std::mem::replace(&mut *self.fingerprint.lock(), tls.fingerprint) != tls.fingerprint;
        if is_new {
            self.backend.renew_tls(&tls);
            tracing::info!("certificates for the backend reloaded");
        }
        self.gauges.set_expiry(CertificateUse::Backend, tls.client_expires_at);
    }

    fn set_rejected(&self, is_rejected: bool) {
        self.gauges.set_rejected(CertificateUse::Backend, is_rejected);
    }
}
