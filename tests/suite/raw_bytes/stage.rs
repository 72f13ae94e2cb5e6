//! What the rows are played on: a whole gateway, with or without TLS, before a backend that records, with keys of two
//! customers. Not for: what the rows expect (`mod`).

use std::io;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use scoregate::accounts::NewApplication;
use scoregate::app::{self, RunningServer};
use scoregate::clock::{Clock, ManualClock, Wall};
use scoregate::config::{read_text, resolve};
use scoregate::routes::Selection;
use scoregate::store::OwnLimits;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::row::KeyRing;
use crate::backend::Backend;
use crate::client::{Connection, OptionalHeaders, Rules};
use crate::world::{NOON, good};

/// A stream of either kind.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// A connection of either kind.
pub type Wire = Connection<Box<dyn Stream>>;

/// The stage.
pub struct Stage {
    pub backend: Backend,
    pub keys: KeyRing,
    pub rules: Arc<Rules>,
    running: RunningServer,
    tls: Option<TlsConnector>,
    _hand: ManualClock,
    _directory: TempDir,
}

/// Nothing that these tests are about is limited.
const SETTINGS: &str = "listen = \"127.0.0.1:0\"\nadmin.listen = \"127.0.0.1:0\"\nguard.per_minute = 1000000\n\
                        freshness.probe = false\n";

impl Stage {
    /// Without TLS.
    pub async fn plain() -> Self {
        Self::set("", TempDir::new().unwrap(), None).await
    }

    /// With TLS, by a certificate of its own making.
    pub async fn secure() -> Self {
        let directory = TempDir::new().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (certificate, key) = (directory.path().join("a.pem"), directory.path().join("a.key"));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let settings = format!(
            "[tls.default]\ncertificate = \"{}\"\nkey = \"{}\"\n",
            certificate.display(),
            key.display()
        );
        let tls = connector(made.cert.der().clone()).unwrap();
        Self::set(&settings, directory, Some(tls)).await
    }

    async fn set(settings: &str, directory: TempDir, tls: Option<TlsConnector>) -> Self {
        let backend = Backend::start(good).await;
        let (clock, hand) = Clock::manual(Wall::parse_rfc3339(NOON).unwrap());
        let (state, url) = (directory.path().join("state"), backend.url());
        let text =
            format!("{SETTINGS}data_dir = \"{}\"\n[upstream]\nurl = \"{url}\"\n{settings}", state.display());
        let config = resolve(&read_text(&text).unwrap()).unwrap_or_else(|problems| panic!("{problems}"));
        let running = app::start(config, clock).await.unwrap();
        let keys = KeyRing { key: key(&running).await, other: key(&running).await };
        let mut wire = open(&running, tls.as_ref()).await.unwrap();
        wire.write(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        let rules = Rules::of(&wire.read(false).await.unwrap().body, OptionalHeaders::default());
        Self { backend, keys, rules, running, tls, _hand: hand, _directory: directory }
    }

    /// A new connection.
    pub async fn open(&self) -> Wire {
        open(&self.running, self.tls.as_ref()).await.unwrap()
    }

    /// Forgets every document, so that each good request is heard by the backend.
    pub async fn forget(&self) {
        self.running.gateway().engine.purge(&Selection::All, true).await;
    }

    /// How many documents are stored.
    pub fn documents(&self) -> u64 {
        self.running.gateway().engine.documents.count()
    }
}

/// A customer's key, who may ask as often as there are rows.
async fn key(running: &RunningServer) -> String {
    let new = NewApplication {
        name: "raw".into(),
        tier: "pro".into(),
        own: OwnLimits { minute: Some(1_000_000), day: Some(1_000_000) },
        contact: None,
        note: None,
        expires_at: None,
    };
    running.registrar.create("test", new).await.unwrap().key.expose().to_owned()
}

async fn open(running: &RunningServer, tls: Option<&TlsConnector>) -> io::Result<Wire> {
    let stream = TcpStream::connect(running.public).await?;
    stream.set_nodelay(true)?;
    let Some(tls) = tls else { return Ok(Connection::over(Box::new(stream))) };
    let name = ServerName::try_from("localhost").unwrap();
    Ok(Connection::over(Box::new(tls.connect(name, stream).await?)))
}

/// A client that trusts this certificate alone and speaks HTTP/1.1.
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
