//! The reason why a TLS handshake with the backend failed, and the setting that may correct it.

use std::{error::Error, io};

use rustls::{AlertDescription, CertificateError};

/// Maximum length of the TLS error in a message. A certificate may have any number of names.
const MAX_CHARACTERS: usize = 400;

/// Describes the TLS problem that caused an error. `None` if the cause is not TLS.
pub fn tls_problem(error: &(dyn Error + 'static)) -> Option<String> {
    let error = tls_error(error)?;
    let text: String = error.to_string().chars().take(MAX_CHARACTERS).collect();
    Some(format!("TLS handshake failed: {text}; {}", remedy(error)))
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library may add errors; their text is shown"
)]
fn remedy(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::InvalidCertificate(
            // `BadSignature` means that an authority has the same name but a different key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => "set upstream.ca_file to the authority that issued it",
        rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. }) => {
            "set upstream.server_name to one of its names"
        }
        rustls::Error::InvalidCertificate(_) => {
            "install another certificate at the backend, or check the clock"
        }
        rustls::Error::PeerIncompatible(_)
        | rustls::Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            "see upstream.min_tls_version"
        }
        rustls::Error::AlertReceived(AlertDescription::UnrecognisedName) => {
            "set upstream.server_name"
        }
        // In most cases the backend rejects the client certificate, or requires one.
        rustls::Error::AlertReceived(_) => {
            "see upstream.client_certificate, and the log of the backend"
        }
        rustls::Error::InvalidMessage(_) => {
            "write http:// in upstream.url if the backend has no TLS"
        }
        _ => "see the log of the backend",
    }
}

/// Finds the TLS error among the causes. The `source` of an I/O error skips the error that it wraps.
fn tls_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    std::iter::successors(Some(error), |&error: &&'e (dyn Error + 'static)| {
        let content = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        content
            .map(|content| content as _)
            .or_else(|| error.source())
    })
    .find_map(|error| error.downcast_ref())
}
