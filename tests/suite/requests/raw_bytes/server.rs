//! The server under test: a complete gateway, with or without TLS, in front of a recording backend, with keys of two
//! customers.

use std::{io, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName},
};
use scoregate::{
    app::{self, RunningServer},
    config::{read_text, resolve},
    registry::NewApplication,
};
use scoregate_base::{
    clock::{Clock, ManualClock, Wall},
    limits::{LimitSetting, OwnLimits},
    routes::Selection,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::row::KeyRing;
use crate::{
    backend::Backend,
    client::{Connection, Rules},
    optional_headers::OptionalHeaders,
    world::{NOON, good},
};

/// A plain or TLS stream.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A plain or TLS connection.
pub type Wire = Connection<Box<dyn Stream>>;

pub struct TestServer {
    pub backend: Backend,
    pub keys: KeyRing,
    pub rules: Arc<Rules>,
    running: RunningServer,
    tls: Option<TlsConnector>,
    _clock: ManualClock,
    _directory: TempDir,
}

/// No limit is reached by these tests.
const SETTINGS: &str = "listen = \"127.0.0.1:0\"\nadmin.listen = \"127.0.0.1:0\"\nguard.per_minute = 1000000\n\
                        freshness.probe = false\n";

impl TestServer {
    pub async fn plain() -> Self {
        Self::start("", TempDir::new().unwrap(), None).await
    }

    /// Starts one with TLS and a self-signed certificate.
    pub async fn secure() -> Self {
        let directory = TempDir::new().unwrap();
        let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let certificate = directory.path().join("a.pem");
        let key = directory.path().join("a.key");
        std::fs::write(&certificate, issued.cert.pem()).unwrap();
        std::fs::write(&key, issued.signing_key.serialize_pem()).unwrap();
        let settings = format!(
            "[tls.default]\ncertificate = \"{}\"\nkey = \"{}\"\n",
            certificate.display(),
            key.display()
        );
        let tls = connector(issued.cert.der().clone()).unwrap();
        Self::start(&settings, directory, Some(tls)).await
    }

    async fn start(settings: &str, directory: TempDir, tls: Option<TlsConnector>) -> Self {
        let backend = Backend::start(good).await;
        let (clock, manual_clock) = Clock::manual(Wall::parse_rfc3339(NOON).unwrap());
        let state = directory.path().join("state");
        let url = backend.url();
        let text = format!(
            "{SETTINGS}data_dir = \"{}\"\n[upstream]\nurl = \"{url}\"\n{settings}",
            state.display()
        );
        let config =
            resolve(&read_text(&text).unwrap()).unwrap_or_else(|problems| panic!("{problems}"));
        let running = app::start(config, clock).await.unwrap();
        let keys = KeyRing {
            key: key(&running).await,
            other: key(&running).await,
        };
        let mut connection = open(&running, tls.as_ref()).await.unwrap();
        connection
            .write(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .await;
        let rules = Rules::of(
            &connection.read(false).await.unwrap().body,
            OptionalHeaders::default(),
        );
        Self {
            backend,
            keys,
            rules,
            running,
            tls,
            _clock: manual_clock,
            _directory: directory,
        }
    }

    /// A new connection.
    pub async fn open(&self) -> Wire {
        open(&self.running, self.tls.as_ref()).await.unwrap()
    }

    /// Removes every document, so that each valid request reaches the backend.
    pub async fn clear_cache(&self) {
        self.running
            .gateway()
            .engine
            .purge(&Selection::All, true)
            .await;
    }

    /// Number of stored documents.
    pub fn documents(&self) -> u64 {
        self.running.gateway().engine.documents.count()
    }
}

/// Creates a customer with enough requests for all rows, and returns the key.
async fn key(running: &RunningServer) -> String {
    let new = NewApplication {
        name: "raw".into(),
        tier: "pro".into(),
        own: OwnLimits::NONE
            .with(LimitSetting::Minute, 1_000_000)
            .with(LimitSetting::Day, 1_000_000),
        ..NewApplication::default()
    };
    running
        .registrar
        .create("test", new)
        .await
        .unwrap()
        .key
        .expose()
        .to_owned()
}

async fn open(running: &RunningServer, tls: Option<&TlsConnector>) -> io::Result<Wire> {
    let stream = TcpStream::connect(running.public).await?;
    stream.set_nodelay(true)?;
    let Some(tls) = tls else {
        return Ok(Connection::over(Box::new(stream)));
    };
    let name = ServerName::try_from("localhost").unwrap();
    Ok(Connection::over(Box::new(tls.connect(name, stream).await?)))
}

/// An HTTP/1.1 client that trusts only this certificate.
fn connector(certificate: CertificateDer<'static>) -> Result<TlsConnector, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}
