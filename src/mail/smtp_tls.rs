//! TLS settings for an SMTP server, prepared at startup.

use std::{path::Path, sync::Arc};

use lettre::transport::smtp::client::{
    Certificate, CertificateStore, TlsParameters, TlsParametersBuilder, TlsVersion,
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio_rustls::TlsConnector;

use super::{
    failure::UnusableTransport,
    settings::{SmtpServer, SmtpTls},
};

/// The encryption of connections.
pub enum MailTls {
    Off,
    StartTls(TlsParameters),
    /// TLS from the beginning, with the expected name in the certificate.
    Implicit(TlsConnector, ServerName<'static>),
}

impl MailTls {
    /// Reads the CA certificates.
    pub fn with(server: &SmtpServer) -> Result<Self, UnusableTransport> {
        if server.tls == SmtpTls::Off {
            return Ok(Self::Off);
        }
        let authorities = server.ca_file.as_deref().map(authorities).transpose()?;
        if server.tls == SmtpTls::StartTls {
            return parameters(&server.host, authorities).map(Self::StartTls);
        }
        let name = ServerName::try_from(server.host.clone());
        let name = name.map_err(|error| UnusableTransport::Tls(error.to_string()))?;
        Ok(Self::Implicit(connector(authorities)?, name))
    }
}

/// Uses the public CAs if none are given.
fn parameters(
    host: &str,
    authorities: Option<Vec<CertificateDer<'static>>>,
) -> Result<TlsParameters, UnusableTransport> {
    let builder = TlsParameters::builder(host.to_owned()).set_min_tls_version(TlsVersion::Tlsv12);
    let builder = match authorities {
        None => builder.certificate_store(CertificateStore::WebpkiRoots),
        Some(authorities) => {
            // If CAs are configured, a certificate from a public CA must not be accepted.
            let builder = builder.certificate_store(CertificateStore::None);
            let certificates = authorities
                .iter()
                .map(|der| Certificate::from_der(der.to_vec()));
            certificates
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| UnusableTransport::Tls(error.to_string()))?
                .into_iter()
                .fold(builder, TlsParametersBuilder::add_root_certificate)
        }
    };
    builder
        .build()
        .map_err(|error| UnusableTransport::Tls(error.to_string()))
}

/// Uses the public CAs if none are given.
fn connector(
    authorities: Option<Vec<CertificateDer<'static>>>,
) -> Result<TlsConnector, UnusableTransport> {
    let roots = match authorities {
        None => webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect(),
        Some(authorities) => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(authorities);
            roots
        }
    };
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| UnusableTransport::Tls(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config).into())
}

/// The certificates in a PEM file. Returns an error if there are none.
fn authorities(file: &Path) -> Result<Vec<CertificateDer<'static>>, UnusableTransport> {
    let unusable = |reason| UnusableTransport::Authorities {
        file: file.to_owned(),
        reason,
    };
    let found =
        CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = found.map_err(|error| unusable(error.to_string()))?;
    if found.is_empty() {
        return Err(unusable("the file contains no certificate in PEM".into()));
    }
    for certificate in &found {
        RootCertStore::empty()
            .add(certificate.clone())
            .map_err(|error| unusable(error.to_string()))?;
    }
    Ok(found)
}
