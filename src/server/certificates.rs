//! Certificates and their keys, from files: which one stands for which name, and when the first of them ends.
//!
//! Everything that is wrong with the files is said at once, with the file and what would do. Not for: watching the files
//! (`app`), nor for TLS itself (`tls`).

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use crate::clock::Wall;

/// Where a certificate and its key lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// What the settings call it; `default` stands for every name that no other has.
    pub name: String,
    /// The certificate and those that it builds on, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
}

/// Something that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadCertificate {
    /// What the settings call the certificate.
    pub name: String,
    /// The file.
    pub file: PathBuf,
    /// What is wrong, and what would do.
    pub reason: String,
}

/// Certificates that are good to use.
pub struct Certificates {
    by_name: HashMap<String, Arc<CertifiedKey>>,
    default: Arc<CertifiedKey>,
    /// When the first of them ends.
    pub ends: Wall,
    /// What tells these files from others.
    pub fingerprint: [u8; 32],
}

/// A certificate as read.
struct LoadedCertificate {
    certified: Arc<CertifiedKey>,
    names: Vec<String>,
    ends: Wall,
}

impl Certificates {
    /// Reads all of them, or says everything that is wrong. `None` if there are none.
    pub fn load(files: &[CertificateFiles], now: Wall) -> Result<Option<Self>, Vec<BadCertificate>> {
        let (mut problems, mut by_name, mut all) = (Vec::new(), HashMap::new(), Vec::new());
        let mut digest = Sha256::new();
        for one in files {
            match load(one, now, &mut digest) {
                Ok(loaded) => {
                    for name in &loaded.names {
                        if by_name.insert(name.clone(), Arc::clone(&loaded.certified)).is_some() {
                            problems.push(one.bad(
                                &one.certificate,
                                format!("another certificate is for {name} too: keep one of them"),
                            ));
                        }
                    }
                    all.push((one.name == "default", loaded));
                }
                Err(found) => problems.extend(found),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let ends = all.iter().map(|(_, loaded)| loaded.ends).min();
        let default = all.iter().find(|(is_default, _)| *is_default).or(all.first());
        Ok(default.zip(ends).map(|((_, default), ends)| Self {
            default: Arc::clone(&default.certified),
            by_name,
            ends,
            fingerprint: digest.finalize().into(),
        }))
    }

    /// What tells the files as they are now from others. `None` if one cannot be read.
    pub fn fingerprint_of(files: &[CertificateFiles]) -> Option<[u8; 32]> {
        let mut digest = Sha256::new();
        for one in files {
            digest.update(std::fs::read(&one.certificate).ok()?);
            digest.update(std::fs::read(&one.key).ok()?);
        }
        Some(digest.finalize().into())
    }

    /// The one for a name: its own, one for all names of its domain, or the default.
    pub(super) fn of(&self, name: Option<&str>) -> Arc<CertifiedKey> {
        let named = name.and_then(|name| {
            let domain = || name.split_once('.').map(|(_, domain)| format!("*.{domain}"));
            self.by_name.get(name).or_else(|| self.by_name.get(&domain()?))
        });
        Arc::clone(named.unwrap_or(&self.default))
    }
}

impl CertificateFiles {
    fn bad(&self, file: &Path, reason: impl Into<String>) -> BadCertificate {
        BadCertificate { name: self.name.clone(), file: file.to_owned(), reason: reason.into() }
    }
}

fn load(
    files: &CertificateFiles,
    now: Wall,
    digest: &mut Sha256,
) -> Result<LoadedCertificate, Vec<BadCertificate>> {
    let chain = chain(files, digest);
    let key = key(files, digest);
    let (chain, key) = match (chain, key) {
        (Ok(chain), Ok(key)) => (chain, key),
        (chain, key) => return Err([chain.err(), key.err()].into_iter().flatten().collect()),
    };
    let one = |reason: String| vec![files.bad(&files.certificate, reason)];
    let leaf = chain.first().ok_or_else(|| one("it holds no certificate".into()))?;
    let (_, parsed) = X509Certificate::from_der(leaf)
        .map_err(|error| one(format!("its first certificate cannot be read: {error}")))?;
    let instant =
        |time: x509_parser::time::ASN1Time| Wall::from_seconds(u64::try_from(time.timestamp()).unwrap_or(0));
    let (begins, ends) = (instant(parsed.validity().not_before), instant(parsed.validity().not_after));
    if ends <= now {
        return Err(one(format!("it ended at {}: put a new one in its place", ends.rfc3339())));
    }
    if begins > now {
        return Err(one(format!(
            "it begins at {} only: look at the clock, or take another",
            begins.rfc3339()
        )));
    }
    let names = names(&parsed);
    if names.is_empty() {
        return Err(one(
            "it is for no DNS name and no address (subjectAltName): clients would refuse it".into()
        ));
    }
    let certified = CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| {
        vec![files.bad(&files.key, format!("it does not fit {}: {error}", files.certificate.display()))]
    })?;
    Ok(LoadedCertificate { certified: Arc::new(certified), names, ends })
}

/// The names that it is for, in lower case. Addresses count, though no client names them: a certificate may be for those
/// alone.
fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let alternatives = certificate.subject_alternative_name().ok().flatten();
    let general = alternatives.map(|extension| extension.value.general_names.as_slice()).unwrap_or_default();
    let name = |general: &GeneralName<'_>| {
        if let GeneralName::DNSName(name) = general {
            return Some(name.to_ascii_lowercase());
        }
        if let GeneralName::IPAddress(bytes) = general {
            return Some(format!("address {bytes:?}"));
        }
        None
    };
    general.iter().filter_map(name).collect()
}

fn chain(
    files: &CertificateFiles,
    digest: &mut Sha256,
) -> Result<Vec<CertificateDer<'static>>, BadCertificate> {
    let bytes = read(files, &files.certificate, digest)?;
    CertificateDer::pem_slice_iter(&bytes)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| files.bad(&files.certificate, format!("it is no PEM file of certificates: {error}")))
}

fn key(files: &CertificateFiles, digest: &mut Sha256) -> Result<PrivateKeyDer<'static>, BadCertificate> {
    let bytes = zeroize::Zeroizing::new(read(files, &files.key, digest)?);
    PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|_| files.bad(&files.key, "it is no PEM file of a private key (PKCS #8, PKCS #1 or SEC 1)"))
}

fn read(files: &CertificateFiles, path: &Path, digest: &mut Sha256) -> Result<Vec<u8>, BadCertificate> {
    let bytes = std::fs::read(path);
    let bytes = bytes.map_err(|error| files.bad(path, format!("it cannot be read: {error}")))?;
    digest.update(&bytes);
    Ok(bytes)
}

impl fmt::Display for BadCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tls.{}: {}: {}", self.name, self.file.display(), self.reason)
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.by_name.keys().collect();
        f.debug_struct("Certificates")
            .field("names", &names)
            .field("ends", &self.ends.rfc3339())
            .finish_non_exhaustive()
    }
}
