//! TLS for the database. A configured authority must have issued the server certificate for the name in the URL.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};

use scoregate_base::secret::SecretSetting;

use crate::{
    postgres::connection::{address::DatabaseAddress, database_connection::DatabaseConfig},
    statements::SchemaName,
};

/// The database settings, before their files are read.
#[derive(Clone, Debug)]
pub struct DatabaseSettings {
    /// The address of the database.
    pub address: DatabaseAddress,
    /// The address for change notifications; `None` if they use `address` too.
    pub listen_address: Option<DatabaseAddress>,
    /// The password of the user.
    pub password: Option<SecretSetting>,
    /// PEM file with the certificates of the authorities that may issue the server certificate; `None` for plaintext.
    pub ca_file: Option<PathBuf>,
    /// The certificate that this program presents.
    pub client_certificate: Option<ClientCertificateFiles>,
    /// The schema of the tables.
    pub schema: SchemaName,
    /// Maximum time for which a starting gateway tries to reach the database.
    pub start_timeout: Duration,
    /// Deadline for connecting and for each transaction.
    pub timeout: Duration,
}

/// The files of a client certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificateFiles {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
}

/// A file named in the settings is unusable.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", .file.display())]
pub struct BadDatabaseFile {
    /// The file.
    pub file: PathBuf,
    /// The problem.
    pub reason: String,
}

impl DatabaseSettings {
    /// Reads the files.
    pub fn read_files(&self) -> Result<DatabaseConfig, BadDatabaseFile> {
        let tls = self
            .ca_file
            .as_deref()
            .map(|file| self.tls(file))
            .transpose()?;
        let has_tls = tls.is_some();
        let listen_address = self.listen_address.as_ref().unwrap_or(&self.address);
        Ok(DatabaseConfig {
            servers: self.address.servers(has_tls, self.timeout),
            listen_servers: listen_address.servers(has_tls, self.timeout),
            password: self.password.clone(),
            tls: tls.map(Arc::new),
            schema: self.schema.clone(),
            timeout: self.timeout,
        })
    }

    fn tls(&self, ca_file: &Path) -> Result<ClientConfig, BadDatabaseFile> {
        let mut authorities = RootCertStore::empty();
        for certificate in certificates(ca_file)? {
            authorities
                .add(certificate)
                .map_err(|error| bad(ca_file, &error))?;
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| bad(ca_file, &error))?
            .with_root_certificates(authorities);
        let Some(files) = &self.client_certificate else {
            return Ok(builder.with_no_client_auth());
        };
        let key =
            PrivateKeyDer::from_pem_file(&files.key).map_err(|error| bad(&files.key, &error))?;
        let chain = certificates(&files.certificate)?;
        builder
            .with_client_auth_cert(chain, key)
            .map_err(|error| bad(&files.certificate, &error))
    }
}

/// The certificates in a PEM file; an error if there are none.
fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, BadDatabaseFile> {
    let found =
        CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = found.map_err(|error| bad(file, &error))?;
    if found.is_empty() {
        return Err(bad(file, &"the file contains no certificate in PEM"));
    }
    Ok(found)
}

fn bad(file: &Path, reason: &dyn std::fmt::Display) -> BadDatabaseFile {
    BadDatabaseFile {
        file: file.to_owned(),
        reason: reason.to_string(),
    }
}
