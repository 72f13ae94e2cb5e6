//! Why a TLS handshake with the backend failed, and the setting that corrects it.

use std::error::Error;
use std::io;

use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, InvalidMessage, PeerIncompatible};

use scoregate_base::clock::Wall;

use super::tls::{BackendTlsSettings, TlsVersion};

/// More names of a certificate are not listed.
const MAX_NAMES: usize = 5;

/// Alerts that reject the client certificate, or the lack of one.
const CLIENT_REJECTED: [AlertDescription; 8] = [
    AlertDescription::CertificateRequired,
    AlertDescription::BadCertificate,
    AlertDescription::UnsupportedCertificate,
    AlertDescription::CertificateRevoked,
    AlertDescription::CertificateExpired,
    AlertDescription::CertificateUnknown,
    AlertDescription::UnknownCA,
    AlertDescription::AccessDenied,
];

/// A problem of a handshake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TlsProblem {
    #[error(
        "no public authority issued the backend's certificate; set upstream.ca_file to the certificate of the authority that did"
    )]
    NotPublic,
    #[error(
        "no authority in upstream.ca_file issued the backend's certificate; add the one that did, or let the backend send its intermediate certificates"
    )]
    UnknownAuthority,
    #[error(
        "the backend's certificate expired at {0}; renew it at the backend, or check the clock"
    )]
    Expired(String),
    #[error(
        "the backend's certificate is not valid yet; check the clock, or install another at the backend"
    )]
    NotYetValid,
    #[error("the backend's certificate is not for {expected}, but for {}; set upstream.server_name to one of its names", .presented.join(", "))]
    WrongName {
        expected: String,
        presented: Vec<String>,
    },
    #[error("the backend's certificate is rejected: {0}")]
    BadCertificate(String),
    #[error(
        "the backend does not support TLS 1.3; enable it there, or set upstream.min_tls_version = \"1.2\""
    )]
    OnlyOldVersions,
    #[error("the backend supports neither TLS 1.2 nor TLS 1.3; enable one of them there")]
    OnlyOutdatedVersions,
    #[error(
        "the backend requires a client certificate; set upstream.client_certificate and upstream.client_key"
    )]
    ClientCertificateMissing,
    #[error("the backend rejects the certificate in upstream.client_certificate: {0}")]
    ClientCertificateRejected(String),
    #[error("the backend has no certificate for the requested name; set upstream.server_name")]
    UnknownName,
    #[error(
        "the backend does not respond in TLS; write http:// in upstream.url if it speaks plain HTTP"
    )]
    NotTls,
    #[error("TLS handshake with the backend failed: {0}{1}")]
    Other(String, &'static str),
}

impl TlsProblem {
    /// The problem behind an error; `None` if the cause is not TLS.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the library's errors may grow; their text is shown"
    )]
    pub(super) fn of(error: &(dyn Error + 'static), settings: &BackendTlsSettings) -> Option<Self> {
        let error = tls_error(error)?;
        Some(match error {
            rustls::Error::InvalidCertificate(found) => Self::of_certificate(found, settings),
            rustls::Error::AlertReceived(alert) => Self::of_alert(*alert, settings),
            rustls::Error::PeerIncompatible(
                PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
                | PeerIncompatible::ServerDoesNotSupportTls12Or13,
            ) => Self::of_version(settings),
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => Self::NotTls,
            other => Self::Other(other.to_string(), ""),
        })
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the library's errors may grow; their text is shown"
    )]
    fn of_certificate(error: &CertificateError, settings: &BackendTlsSettings) -> Self {
        match error {
            // The second is an authority of the same name with another key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature
                if settings.ca_file.is_some() =>
            {
                Self::UnknownAuthority
            }
            CertificateError::UnknownIssuer => Self::NotPublic,
            CertificateError::ExpiredContext { not_after, .. } => {
                Self::Expired(instant(*not_after))
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Self::NotYetValid
            }
            CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => {
                Self::BadCertificate("it contains no name (subjectAltName)".into())
            }
            CertificateError::NotValidForNameContext {
                expected,
                presented,
            } => Self::WrongName {
                expected: expected.to_str().into_owned(),
                presented: presented
                    .iter()
                    .take(MAX_NAMES)
                    .map(|name| plain_name(name))
                    .collect(),
            },
            other => Self::BadCertificate(other.to_string()),
        }
    }

    fn of_alert(alert: AlertDescription, settings: &BackendTlsSettings) -> Self {
        let has_certificate = settings.client_certificate.is_some();
        if alert == AlertDescription::ProtocolVersion {
            Self::of_version(settings)
        } else if alert == AlertDescription::UnrecognisedName {
            Self::UnknownName
        } else if has_certificate
            && (CLIENT_REJECTED.contains(&alert) || alert == AlertDescription::DecryptError)
        {
            Self::ClientCertificateRejected(format!("alert {alert:?}"))
        } else if CLIENT_REJECTED.contains(&alert) {
            Self::ClientCertificateMissing
        } else {
            // Some backends report a missing client certificate like this.
            let hint = "; if it requires a client certificate, set upstream.client_certificate and upstream.client_key";
            let is_unclear = alert == AlertDescription::HandshakeFailure && !has_certificate;
            Self::Other(
                format!("alert {alert:?}"),
                if is_unclear { hint } else { "" },
            )
        }
    }

    fn of_version(settings: &BackendTlsSettings) -> Self {
        match settings.min_version {
            TlsVersion::V12 => Self::OnlyOutdatedVersions,
            TlsVersion::V13 => Self::OnlyOldVersions,
        }
    }
}

/// The error of TLS among the causes. An I/O error does not report its content as its source.
fn tls_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let cause = |&error: &&'e (dyn Error + 'static)| {
        let content = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        content
            .map(|content| content as _)
            .or_else(|| error.source())
    };
    std::iter::successors(Some(error), cause).find_map(|error| error.downcast_ref())
}

fn instant(time: UnixTime) -> String {
    Wall::from_seconds(time.as_secs()).rfc3339()
}

/// `DnsName("a.example")` as `a.example`.
fn plain_name(name: &str) -> String {
    name.split('"').nth(1).unwrap_or(name).to_owned()
}
