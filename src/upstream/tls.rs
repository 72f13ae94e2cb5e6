//! TLS to the backend: trusted authorities, client certificate, expected name, minimum version. `app` watches the
//! files. `tls_problem` explains a failed handshake.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
    time_provider::TimeProvider,
};
use sha2::{Digest as _, Sha256};
use x509_cert::{Certificate, der::Decode as _};

use scoregate_base::{
    clock::{Clock, Wall},
    words,
};

/// The settings that authenticate the backend to this program and this program to the backend. Their files have
/// not been read yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendTlsSettings {
    /// Authorities that may issue the backend's certificate, in PEM. `None` for the public authorities.
    pub ca_file: Option<PathBuf>,
    /// The certificate that this program presents.
    pub client_certificate: Option<BackendClientFiles>,
    /// The name in the backend's certificate. `None` for the host of the URL.
    pub server_name: Option<ServerName<'static>>,
    /// The oldest accepted TLS version.
    pub min_version: TlsVersion,
}

/// The files of the client certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendClientFiles {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

static SINCE_12: [&SupportedProtocolVersion; 2] =
    [&rustls::version::TLS13, &rustls::version::TLS12];
static SINCE_13: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS13];

words! {
    /// A version of TLS.
    #[derive(Default)]
    pub enum TlsVersion: as_str {
        /// TLS 1.2.
        #[default]
        V12 = "1.2",
        /// TLS 1.3.
        V13 = "1.3",
    }
}

words! {
    /// The setting that names a file.
    pub enum BackendTlsFile: setting {
        /// The authorities.
        Authorities = "upstream.ca_file",
        /// The client certificate.
        ClientCertificate = "upstream.client_certificate",
        /// The private key of the client certificate.
        ClientKey = "upstream.client_key",
    }
}

/// The error for an unusable file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", .path.display())]
pub struct BadBackendTls {
    /// The setting that names the file.
    pub file: BackendTlsFile,
    /// The path of the file.
    pub path: PathBuf,
    /// The problem and the remedy.
    pub reason: String,
}

/// TLS settings whose files have been read.
#[derive(Clone, Debug)]
pub struct BackendTls {
    pub(super) config: Arc<ClientConfig>,
    pub(super) settings: BackendTlsSettings,
    /// Identifies the contents of the files.
    pub fingerprint: [u8; 32],
    /// When the client certificate expires.
    pub client_expires_at: Option<Wall>,
}

/// Validates certificates against the program's clock, which may follow the clock of a shared store.
#[derive(Debug)]
struct CertificateTime(Clock);

impl TlsVersion {
    fn and_newer(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::V12 => &SINCE_12,
            Self::V13 => &SINCE_13,
        }
    }
}

impl BackendTls {
    /// The configuration of connections.
    pub fn client_config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }
}

impl BackendTlsSettings {
    /// Whether these settings name files.
    pub fn has_files(&self) -> bool {
        self.ca_file.is_some() || self.client_certificate.is_some()
    }

    /// Reads the files that the settings name.
    pub fn load(&self, clock: &Clock) -> Result<BackendTls, BadBackendTls> {
        let mut digest = Sha256::new();
        let authorities = self
            .ca_file
            .as_deref()
            .map(|path| authorities(path, &mut digest))
            .transpose()?;
        let builder = ClientConfig::builder_with_details(
            Arc::new(ring::default_provider()),
            Arc::new(CertificateTime(clock.clone())),
        )
        .with_protocol_versions(self.min_version.and_newer())
        .map_err(|error| bad(BackendTlsFile::Authorities, Path::new(""), &error))?;
        let builder =
            builder.with_root_certificates(authorities.unwrap_or_else(public_authorities));
        let (config, client_expires_at) = match &self.client_certificate {
            None => (builder.with_no_client_auth(), None),
            Some(files) => {
                let chain = certificates(
                    BackendTlsFile::ClientCertificate,
                    &files.certificate,
                    &mut digest,
                )?;
                let key = private_key(&files.key, &mut digest)?;
                let expires_at = chain.first().and_then(expiry);
                let config = builder.with_client_auth_cert(chain, key).map_err(|error| {
                    let what =
                        format!("it does not match {}: {error}", files.certificate.display());
                    bad(BackendTlsFile::ClientKey, &files.key, &what)
                })?;
                (config, expires_at)
            }
        };
        let fingerprint = digest.finalize().into();
        Ok(BackendTls {
            config: Arc::new(config),
            settings: self.clone(),
            fingerprint,
            client_expires_at,
        })
    }
}

impl TimeProvider for CertificateTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(
            self.0.now().wall.seconds(),
        )))
    }
}

/// The authorities that browsers trust, as compiled into the program.
fn public_authorities() -> RootCertStore {
    webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect()
}

fn authorities(path: &Path, digest: &mut Sha256) -> Result<RootCertStore, BadBackendTls> {
    let mut authorities = RootCertStore::empty();
    for certificate in certificates(BackendTlsFile::Authorities, path, digest)? {
        authorities
            .add(certificate)
            .map_err(|error| bad(BackendTlsFile::Authorities, path, &error))?;
    }
    Ok(authorities)
}

/// The certificates in a PEM file, which must contain at least one.
fn certificates(
    file: BackendTlsFile,
    path: &Path,
    digest: &mut Sha256,
) -> Result<Vec<CertificateDer<'static>>, BadBackendTls> {
    let bytes = read(file, path, digest)?;
    let found = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| {
        bad(
            file,
            path,
            &format!("not a PEM file of certificates: {error}"),
        )
    })?;
    if found.is_empty() {
        return Err(bad(file, path, &"the file contains no certificate in PEM"));
    }
    Ok(found)
}

fn private_key(path: &Path, digest: &mut Sha256) -> Result<PrivateKeyDer<'static>, BadBackendTls> {
    let bytes = zeroize::Zeroizing::new(read(BackendTlsFile::ClientKey, path, digest)?);
    let not_a_key = "not a PEM file of a private key (PKCS #8, PKCS #1 or SEC 1)";
    PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|_| bad(BackendTlsFile::ClientKey, path, &not_a_key))
}

fn read(file: BackendTlsFile, path: &Path, digest: &mut Sha256) -> Result<Vec<u8>, BadBackendTls> {
    let bytes = std::fs::read(path);
    let bytes = bytes.map_err(|error| bad(file, path, &format!("it cannot be read: {error}")))?;
    digest.update(&bytes);
    Ok(bytes)
}

fn expiry(certificate: &CertificateDer<'_>) -> Option<Wall> {
    let parsed = Certificate::from_der(certificate).ok()?;
    Some(Wall::from_seconds(
        parsed
            .tbs_certificate
            .validity
            .not_after
            .to_unix_duration()
            .as_secs(),
    ))
}

fn bad(file: BackendTlsFile, path: &Path, reason: &dyn std::fmt::Display) -> BadBackendTls {
    BadBackendTls {
        file,
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}
