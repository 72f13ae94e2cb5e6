//! TLS 1.2 and 1.3 on the public port: certificate by server name, session resumption.
//!
//! Certificates can be replaced at run time; new connections use the new ones. Files are read in `certificates`.

use std::fmt;
use std::io;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::certificates::Certificates;

const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// Accepts TLS connections.
#[derive(Clone)]
pub struct TlsTermination {
    acceptor: TlsAcceptor,
    current: Arc<CurrentTls>,
}

#[derive(Debug)]
struct CurrentTls(ArcSwap<Certificates>);

/// TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("TLS cannot be set up: {0}")]
pub struct TlsError(#[from] rustls::Error);

impl TlsTermination {
    /// With these certificates.
    pub fn new(certificates: Certificates) -> Result<Self, TlsError> {
        let current = Arc::new(CurrentTls(ArcSwap::from_pointee(certificates)));
        let resolver = Arc::clone(&current) as Arc<dyn ResolvesServerCert>;
        let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&versions)?
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        // Stateless tickets: resumption uses no memory here. Their key rotates every few hours.
        config.ticketer = ring::Ticketer::new()?;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), current })
    }

    /// Replaces the certificates for new connections.
    pub fn renew(&self, certificates: Certificates) {
        self.current.0.store(Arc::new(certificates));
    }

    /// The current certificates.
    pub fn certificates(&self) -> Arc<Certificates> {
        self.current.0.load_full()
    }

    /// Performs the handshake.
    pub(super) async fn open<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.acceptor.accept(stream).await
    }
}

impl ResolvesServerCert for CurrentTls {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load().of(hello.server_name()))
    }
}

impl fmt::Debug for TlsTermination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(&self.current).finish()
    }
}
