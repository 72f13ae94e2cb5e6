//! Loads certificates and private keys from files, and reads the names of each certificate and the earliest expiry.
//!
//! All problems of the files are reported together, each with the file and the remedy. `app` watches the files; `tls`
//! uses the certificates.

use std::{
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};
use sha2::{Digest as _, Sha256};
use x509_cert::{
    Certificate,
    der::Decode as _,
    ext::pkix::{SubjectAltName, name::GeneralName},
    time::Time,
};

use scoregate_base::clock::Wall;

/// The files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The name of the certificate in the settings. `default` is used for every host name without a separate
    /// certificate.
    pub name: String,
    /// The certificate chain in PEM.
    pub certificate: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
}

/// A problem with a certificate file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCertificate {
    /// The name of the certificate in the settings.
    pub name: String,
    /// The file.
    pub file: PathBuf,
    /// The problem and the remedy.
    pub reason: String,
}

/// Valid certificates.
pub struct Certificates {
    by_name: HashMap<String, Arc<CertifiedKey>>,
    default: Arc<CertifiedKey>,
    /// The earliest expiry.
    pub expires_at: Wall,
    /// Identifies the contents of the files.
    pub fingerprint: [u8; 32],
}

/// A loaded certificate.
struct LoadedCertificate {
    certified: Arc<CertifiedKey>,
    names: Vec<String>,
    expires_at: Wall,
}

impl Certificates {
    /// Loads all certificates, or reports all problems. Returns `None` if there are no files.
    pub fn load(
        files: &[CertificateFiles],
        now: Wall,
    ) -> Result<Option<Self>, Vec<BadCertificate>> {
        let mut problems = Vec::new();
        let mut by_name = HashMap::new();
        let mut all = Vec::new();
        let mut digest = Sha256::new();
        for one in files {
            match load(one, now, &mut digest) {
                Ok(loaded) => {
                    for name in &loaded.names {
                        if by_name
                            .insert(name.clone(), Arc::clone(&loaded.certified))
                            .is_some()
                        {
                            problems.push(one.bad(
                                &one.certificate,
                                format!(
                                    "another certificate also covers {name}: keep only one of them"
                                ),
                            ));
                        }
                    }
                    all.push((one.name == "default", loaded));
                }
                Err(found) => problems.extend(found),
            }
        }
        // The problems of all files are collected first, so that an operator can correct them together.
        if !problems.is_empty() {
            return Err(problems);
        }
        let expires_at = all.iter().map(|(_, loaded)| loaded.expires_at).min();
        let default = all
            .iter()
            .find(|(is_default, _)| *is_default)
            .or(all.first());
        Ok(default
            .zip(expires_at)
            .map(|((_, default), expires_at)| Self {
                default: Arc::clone(&default.certified),
                by_name,
                expires_at,
                fingerprint: digest.finalize().into(),
            }))
    }

    /// The certificate for a host name: an exact match, a wildcard, or the default.
    pub(super) fn of(&self, name: Option<&str>) -> Arc<CertifiedKey> {
        let named = name.and_then(|name| {
            self.by_name.get(name).or_else(|| {
                let (_, domain) = name.split_once('.')?;
                self.by_name.get(&format!("*.{domain}"))
            })
        });
        Arc::clone(named.unwrap_or(&self.default))
    }
}

impl CertificateFiles {
    fn bad(&self, file: &Path, reason: impl Into<String>) -> BadCertificate {
        BadCertificate {
            name: self.name.clone(),
            file: file.to_owned(),
            reason: reason.into(),
        }
    }
}

fn load(
    files: &CertificateFiles,
    now: Wall,
    digest: &mut Sha256,
) -> Result<LoadedCertificate, Vec<BadCertificate>> {
    // Both files are read before an error is returned, so that the problems of both are reported.
    let chain = chain(files, digest);
    let key = key(files, digest);
    let (chain, key) = match (chain, key) {
        (Ok(chain), Ok(key)) => (chain, key),
        (chain, key) => return Err([chain.err(), key.err()].into_iter().flatten().collect()),
    };
    let bad_certificate = |reason| vec![files.bad(&files.certificate, reason)];
    let parsed = parsed(&chain).map_err(bad_certificate)?;
    let expires_at = expiry(&parsed, now).map_err(bad_certificate)?;
    let names = names(&parsed);
    if names.is_empty() {
        let reason =
            "it contains no DNS name and no IP address (subjectAltName): clients would reject it";
        return Err(bad_certificate(reason.into()));
    }
    let certified = CertifiedKey::from_der(chain, key, &ring::default_provider());
    let certified = certified.map_err(|error| {
        let shown = files.certificate.display();
        vec![files.bad(&files.key, format!("it does not match {shown}: {error}"))]
    })?;
    Ok(LoadedCertificate {
        certified: Arc::new(certified),
        names,
        expires_at,
    })
}

/// The first certificate of a chain, or its problem.
fn parsed(chain: &[CertificateDer<'_>]) -> Result<Certificate, String> {
    let leaf = chain.first().ok_or("the file contains no certificate")?;
    Certificate::from_der(leaf)
        .map_err(|error| format!("its first certificate cannot be read: {error}"))
}

/// The expiry of a certificate, or the reason why it is not valid now.
fn expiry(certificate: &Certificate, now: Wall) -> Result<Wall, String> {
    let validity = &certificate.tbs_certificate.validity;
    let valid_from = instant(validity.not_before);
    let expires_at = instant(validity.not_after);
    if expires_at <= now {
        let at = expires_at.rfc3339();
        return Err(format!("it expired at {at}; install a new one"));
    }
    if valid_from > now {
        let from = valid_from.rfc3339();
        return Err(format!(
            "it is valid from {from} on; check the clock, or install another"
        ));
    }
    Ok(expires_at)
}

fn instant(time: Time) -> Wall {
    Wall::from_seconds(time.to_unix_duration().as_secs())
}

/// The names in a certificate, in lower case. IP addresses are included although clients never send them as a server
/// name, because a certificate may contain only addresses.
fn names(certificate: &Certificate) -> Vec<String> {
    let alternatives = certificate
        .tbs_certificate
        .get::<SubjectAltName>()
        .ok()
        .flatten();
    alternatives
        .into_iter()
        .flat_map(|(_, names)| names.0)
        .filter_map(|general| {
            if let GeneralName::DnsName(name) = general {
                return Some(name.as_str().to_ascii_lowercase());
            }
            if let GeneralName::IpAddress(address) = general {
                return Some(format!("address {:?}", address.as_bytes()));
            }
            None
        })
        .collect()
}

fn chain(
    files: &CertificateFiles,
    digest: &mut Sha256,
) -> Result<Vec<CertificateDer<'static>>, BadCertificate> {
    let bytes = read(files, &files.certificate, digest)?;
    CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| {
            files.bad(
                &files.certificate,
                format!("not a PEM file of certificates: {error}"),
            )
        })
}

fn key(
    files: &CertificateFiles,
    digest: &mut Sha256,
) -> Result<PrivateKeyDer<'static>, BadCertificate> {
    let bytes = zeroize::Zeroizing::new(read(files, &files.key, digest)?);
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| {
        files.bad(
            &files.key,
            "not a PEM file of a private key (PKCS #8, PKCS #1 or SEC 1)",
        )
    })
}

fn read(
    files: &CertificateFiles,
    path: &Path,
    digest: &mut Sha256,
) -> Result<Vec<u8>, BadCertificate> {
    let bytes = std::fs::read(path);
    let bytes = bytes.map_err(|error| files.bad(path, format!("it cannot be read: {error}")))?;
    digest.update(&bytes);
    Ok(bytes)
}

impl fmt::Display for BadCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "tls.{}: {}: {}",
            self.name,
            self.file.display(),
            self.reason
        )
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.by_name.keys().collect();
        f.debug_struct("Certificates")
            .field("names", &names)
            .field("expires_at", &self.expires_at.rfc3339())
            .finish_non_exhaustive()
    }
}
