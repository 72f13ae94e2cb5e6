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
    ends: Gauge,
    refused: Gauge,
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
        let keeper = Self {
            files: Arc::new(ArcSwap::from_pointee(files.to_vec())),
            tls,
            ends: registry.gauge("scoregate_certificate_expiry_timestamp_seconds"),
            refused: registry.gauge("scoregate_certificates_rejected"),
        };
        keeper.tell();
        Ok(keeper)
    }

    /// TLS, if configured.
    pub(super) fn tls(&self) -> Option<TlsTermination> {
        self.tls.clone()
    }

    /// Checks the files until shutdown.
    pub(super) async fn run(self, clock: Clock, stop: CancellationToken) {
        let Some(tls) = self.tls.clone() else { return };
        let mut refused = None;
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock.sleep(CHECK_INTERVAL) => {}
            }
            let (keeper, now, in_use) = (self.clone(), clock.now().wall, tls.certificates().fingerprint);
            // Files may be on a slow disk.
            let looked = tokio::task::spawn_blocking(move || keeper.check(in_use, refused, now)).await;
            match looked {
                Ok(CertificateCheck::Same) => {}
                Ok(CertificateCheck::New(certificates)) => {
                    refused = None;
                    self.renew(*certificates);
                }
                Ok(CertificateCheck::Bad(fingerprint, problems)) => {
                    refused = fingerprint;
                    self.refused.set(1.0);
                    tracing::error!(%problems, "changed certificates rejected; the previous ones stay in use");
                }
                Err(_) => tracing::error!("checking certificate files panicked"),
            }
        }
    }

    fn check(&self, in_use: [u8; 32], refused: Option<[u8; 32]>, now: Wall) -> CertificateCheck {
        let files = self.files.load_full();
        let fingerprint = Certificates::fingerprint_of(&files);
        if fingerprint == Some(in_use) {
            self.refused.set(0.0);
            return CertificateCheck::Same;
        }
        // A rejected file is logged once, and read again when it changes.
        if fingerprint.is_some() && fingerprint == refused {
            return CertificateCheck::Same;
        }
        match read_certificates(&files, now) {
            Ok(Some(certificates)) => CertificateCheck::New(Box::new(certificates)),
            Ok(None) => CertificateCheck::Same,
            Err(problems) => CertificateCheck::Bad(fingerprint, problems),
        }
    }

    /// Uses the certificates read by a reload.
    pub(super) fn take(&self, files: &[CertificateFiles], certificates: Option<Certificates>) {
        self.files.store(Arc::new(files.to_vec()));
        if let Some(certificates) = certificates {
            self.renew(certificates);
        }
    }

    /// Replaces the certificates for new connections.
    fn renew(&self, certificates: Certificates) {
        let ends = certificates.ends;
        if let Some(tls) = &self.tls {
            tls.renew(certificates);
        }
        self.tell();
        tracing::info!(expires_at = ends.rfc3339(), "certificates reloaded");
    }

    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 are far below 2^52")]
    fn tell(&self) {
        let ends = self.tls.as_ref().map_or(0, |tls| tls.certificates().ends.seconds());
        self.ends.set(ends as f64);
        self.refused.set(0.0);
    }
}

/// The result of a check.
enum CertificateCheck {
    Same,
    New(Box<Certificates>),
    Bad(Option<[u8; 32]>, ConfigProblems),
}
