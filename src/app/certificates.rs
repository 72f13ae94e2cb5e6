//! Reloads the certificates of the public port and of the backend when their files change. Certificates are validated
//! in `server::certificates`.

use std::sync::Arc;

use anyhow::Context as _;
use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;

use crate::config::{ConfigProblems, read_certificates};
use crate::server::{CertificateFiles, Certificates, TlsTermination};
use scoregate_base::clock::{Clock, Wall};

use super::backend_watch::{BackendInUse, BackendWatch};
use super::watched_files::{CertificateGauges, CertificateUse, WatchedFiles, watch};

/// The certificates in use and their files.
#[derive(Clone)]
pub(super) struct CertificateReloader {
    /// Those of the public port, if TLS is configured.
    public: Option<PublicCertificates>,
    backend: Option<BackendWatch>,
    gauges: CertificateGauges,
}

#[derive(Clone)]
struct PublicCertificates {
    files: Arc<ArcSwap<Vec<CertificateFiles>>>,
    tls: TlsTermination,
    gauges: CertificateGauges,
}

impl CertificateReloader {
    /// Reads the files for the first time.
    pub(super) fn new(
        files: &[CertificateFiles],
        now: Wall,
        gauges: CertificateGauges,
    ) -> anyhow::Result<Self> {
        let found = read_certificates(files, now)?;
        let tls = found
            .map(TlsTermination::new)
            .transpose()
            .context("the public port")?;
        let public = tls.map(|tls| {
            let files = Arc::new(ArcSwap::from_pointee(files.to_vec()));
            PublicCertificates {
                files,
                tls,
                gauges: gauges.clone(),
            }
        });
        public.iter().for_each(PublicCertificates::update_gauges);
        Ok(Self {
            public,
            backend: None,
            gauges,
        })
    }

    /// TLS, if configured.
    pub(super) fn tls(&self) -> Option<TlsTermination> {
        self.public.as_ref().map(|public| public.tls.clone())
    }

    /// The same with the backend.
    pub(super) fn with_backend(self, in_use: Option<BackendInUse>, clock: &Clock) -> Self {
        let backend = in_use.map(|in_use| BackendWatch::new(in_use, clock, self.gauges.clone()));
        Self { backend, ..self }
    }

    /// The files of the backend.
    pub(super) fn backend(&self) -> Option<&BackendWatch> {
        self.backend.as_ref()
    }

    /// Checks all files and the backend until shutdown.
    pub(super) async fn run(self, clock: Clock, stop: CancellationToken) {
        let watch_public = async {
            if let Some(certificates) = self.public {
                watch(certificates, clock, stop.clone()).await;
            }
        };
        let watch_backend = async {
            if let Some(certificates) = self.backend {
                certificates.run(stop.clone()).await;
            }
        };
        tokio::join!(watch_public, watch_backend);
    }

    /// Uses the certificates read by a reload.
    pub(super) fn replace(&self, files: &[CertificateFiles], certificates: Option<Certificates>) {
        let Some(public) = &self.public else { return };
        public.files.store(Arc::new(files.to_vec()));
        if let Some(certificates) = certificates {
            public.renew(certificates);
        }
    }
}

impl PublicCertificates {
    fn update_gauges(&self) {
        self.gauges.set_expiry(
            CertificateUse::PublicPort,
            Some(self.tls.certificates().expires_at),
        );
    }
}

impl WatchedFiles for PublicCertificates {
    type Contents = Certificates;

    fn in_use(&self) -> [u8; 32] {
        self.tls.certificates().fingerprint
    }

    fn on_disk(&self) -> Option<[u8; 32]> {
        Certificates::fingerprint_of(&self.files.load())
    }

    fn read(&self, now: Wall) -> Result<Option<Certificates>, ConfigProblems> {
        read_certificates(&self.files.load(), now)
    }

    /// Replaces the certificates for new connections.
    fn renew(&self, certificates: Certificates) {
        let expires_at = certificates.expires_at;
        self.tls.renew(certificates);
        self.update_gauges();
        tracing::info!(expires_at = expires_at.rfc3339(), "certificates reloaded");
    }

    fn set_rejected(&self, is_rejected: bool) {
        self.gauges
            .set_rejected(CertificateUse::PublicPort, is_rejected);
    }
}
