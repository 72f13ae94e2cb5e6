//! Reloads the certificates of the public port when their files change.
//!
//! Compared by content, not by date, so replacing a symbolic link is noticed too. Certificates are validated in
//! `server::certificates`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use metrics::Gauge;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Wall};
use crate::config::{ConfigProblems, read_certificates};
use crate::server::{CertificateFiles, Certificates, TlsTermination};
use crate::telemetry::metrics::MetricsRegistry;

/// Interval between checks of the files.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The certificates in use and their files.
#[derive(Clone)]
pub(super) struct CertificateReloader {
    files: Arc<ArcSwap<Vec<CertificateFiles>>>,
    tls: Option<TlsTermination>,
    expires_at: Gauge,
    rejected: Gauge,
}

impl CertificateReloader {
    /// Reads the files for the first time.
    pub(super) fn new(
        files: &[CertificateFiles],
        now: Wall,
        registry: &MetricsRegistry,
    ) -> anyhow::Result<Self> {
        let found = read_certificates(files, now)?;
        let tls = found.map(TlsTermination::new).transpose().context("the public port")?;
        let reloader = Self {
            files: Arc::new(ArcSwap::from_pointee(files.to_vec())),
            tls,
            expires_at: registry.gauge("scoregate_certificate_expiry_timestamp_seconds"),
            rejected: registry.gauge("scoregate_certificates_rejected"),
        };
        reloader.update_gauges();
        Ok(reloader)
    }

    /// TLS, if configured.
    pub(super) fn tls(&self) -> Option<TlsTermination> {
        self.tls.clone()
    }

    /// Checks the files until shutdown.
    pub(super) async fn run(self, clock: Clock, stop: CancellationToken) {
        let Some(tls) = self.tls.clone() else { return };
        let mut rejected = None;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock.sleep(CHECK_INTERVAL) => {}
            }
            let (reloader, now, in_use) = (self.clone(), clock.now().wall, tls.certificates().fingerprint);
            // Files may be on a slow disk.
            let checked = tokio::task::spawn_blocking(move || reloader.check(in_use, rejected, now)).await;
            match checked {
                Ok(CertificateCheck::Same) => {}
                Ok(CertificateCheck::New(certificates)) => {
                    rejected = None;
                    self.renew(*certificates);
                }
                Ok(CertificateCheck::Bad(fingerprint, problems)) => {
                    rejected = fingerprint;
                    self.rejected.set(1.0);
                    tracing::error!(%problems, "changed certificates rejected; the previous ones stay in use");
                }
                Err(_) => tracing::error!("checking certificate files panicked"),
            }
        }
    }

    fn check(&self, in_use: [u8; 32], rejected: Option<[u8; 32]>, now: Wall) -> CertificateCheck {
        let files = self.files.load_full();
        let fingerprint = Certificates::fingerprint_of(&files);
        if fingerprint == Some(in_use) {
            self.rejected.set(0.0);
            return CertificateCheck::Same;
        }
        // A rejected file is logged once, and read again when it changes.
        if fingerprint.is_some() && fingerprint == rejected {
            return CertificateCheck::Same;
        }
        match read_certificates(&files, now) {
            Ok(Some(certificates)) => CertificateCheck::New(Box::new(certificates)),
            Ok(None) => CertificateCheck::Same,
            Err(problems) => CertificateCheck::Bad(fingerprint, problems),
        }
    }

    /// Uses the certificates read by a reload.
    pub(super) fn replace(&self, files: &[CertificateFiles], certificates: Option<Certificates>) {
        self.files.store(Arc::new(files.to_vec()));
        if let Some(certificates) = certificates {
            self.renew(certificates);
        }
    }

    /// Replaces the certificates for new connections.
    fn renew(&self, certificates: Certificates) {
        let expires_at = certificates.expires_at;
        if let Some(tls) = &self.tls {
            tls.renew(certificates);
        }
        self.update_gauges();
        tracing::info!(expires_at = expires_at.rfc3339(), "certificates reloaded");
    }

    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are far below 2^52")]
    fn update_gauges(&self) {
        let expires_at = self.tls.as_ref().map_or(0, |tls| tls.certificates().expires_at.seconds());
        self.expires_at.set(expires_at as f64);
        self.rejected.set(0.0);
    }
}

/// The result of a check.
enum CertificateCheck {
    Same,
    New(Box<Certificates>),
    Bad(Option<[u8; 32]>, ConfigProblems),
}
