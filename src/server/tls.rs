//! TLS 1.2 and 1.3 on the public port, with certificates selected by server name, and session resumption. Certificates
//! for new connections can be replaced at run time. `certificates` reads the files. `handshake_threads` runs the
//! expensive part of a handshake.

use std::{fmt, io, net::IpAddr, sync::Arc};

use arc_swap::ArcSwap;
use bytes::BytesMut;
use rustls::{
    ProtocolVersion, ServerConfig, ServerConnection,
    crypto::ring,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{
    certificates::Certificates,
    handshake_threads::{HandshakeThreads, StepNotDone},
    stream::{FilteredIo, ReadAhead, TimedIo},
};

const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";
/// Bytes read in one call during a handshake. Most client messages are shorter.
const READ: usize = 4_096;

/// The stream below TLS.
pub type TlsInput = FilteredIo<TimedIo, ReadAhead>;

/// Accepts TLS connections.
#[derive(Clone)]
pub struct TlsTermination {
    acceptor: TlsAcceptor,
    threads: Arc<HandshakeThreads>,
    current: Arc<CurrentTls>,
}

#[derive(Debug)]
struct CurrentTls(ArcSwap<Certificates>);

/// The error if TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[error("TLS cannot be set up: {0}")]
pub enum TlsError {
    /// An error of the TLS library.
    Library(#[from] rustls::Error),
    /// No handshake thread can be started.
    Thread(#[from] io::Error),
}

/// The error of a handshake.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeFailure {
    #[error("too many handshakes from this network are waiting")]
    TooManyWaiting,
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl TlsTermination {
    /// Sets up TLS with these certificates.
    pub fn new(certificates: Certificates) -> Result<Self, TlsError> {
        let current = Arc::new(CurrentTls(ArcSwap::from_pointee(certificates)));
        let resolver = Arc::clone(&current) as Arc<dyn ResolvesServerCert>;
        let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&versions)?
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        // Tickets are stateless, so resumption uses no memory on the server. The ticket key rotates every few hours.
        config.ticketer = ring::Ticketer::new()?;
        let threads = Arc::new(HandshakeThreads::start()?);
        Ok(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            threads,
            current,
        })
    }

    /// Replaces the certificates for new connections. Returns whether they differ from the previous ones.
    pub fn renew(&self, certificates: Certificates) -> bool {
        let fingerprint = certificates.fingerprint;
        let before = self.current.0.swap(Arc::new(certificates));
        before.fingerprint != fingerprint
    }

    /// The current certificates.
    pub fn certificates(&self) -> Arc<Certificates> {
        self.current.0.load_full()
    }

    /// Performs the handshake with a client of this network, which may have `max_waiting` waiting handshakes. Ends
    /// early if the client disconnects before the signature is made. The stream is boxed, because each future that it
    /// passes through reserves space for it, even without TLS.
    pub(super) async fn open(
        &self,
        mut stream: TlsInput,
        network: IpAddr,
        max_waiting: usize,
    ) -> Result<Box<TlsStream<TlsInput>>, HandshakeFailure> {
        let session = ServerConnection::new(Arc::clone(self.acceptor.config()));
        let mut session = session.map_err(invalid)?;
        while session.is_handshaking() {
            let mut received = BytesMut::with_capacity(READ);
            if stream.read_buf(&mut received).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            let is_signed = is_signed(&session);
            let step = self.threads.run(network, max_waiting, move || {
                let advanced = advance(&mut session, &received);
                (session, advanced)
            });
            let done = tokio::select! {
                biased;
                () = stream.stream().closed(), if !is_signed => {
                    return Err(io::Error::from(io::ErrorKind::ConnectionAborted).into());
                }
                done = step => done,
            };
            let (advanced, result) = done.map_err(|not_done| match not_done {
                StepNotDone::TooManyWaiting => HandshakeFailure::TooManyWaiting,
                StepNotDone::Panicked => io::Error::other("the handshake panicked").into(),
            })?;
            session = advanced;
            // After an error, the session contains an alert for the client.
            let sent = send(&mut session, &mut stream).await;
            result?;
            sent?;
        }
        let accepted = self.acceptor.accept_with(stream, |fresh| *fresh = session);
        Ok(Box::new(accepted.await?))
    }
}

/// Whether the step that handled the client's last `ClientHello` made the signature. With TLS 1.3, the answer to the
/// first `ClientHello` may be a request for another one.
fn is_signed(session: &ServerConnection) -> bool {
    match session.protocol_version() {
        Some(ProtocolVersion::TLSv1_3) => session.negotiated_key_exchange_group().is_some(),
        version => version.is_some(),
    }
}

/// Handles received bytes.
fn advance(session: &mut ServerConnection, mut received: &[u8]) -> io::Result<()> {
    while !received.is_empty() {
        session.read_tls(&mut received)?;
        session.process_new_packets().map_err(invalid)?;
    }
    Ok(())
}

/// Sends the bytes that the session has for the client.
async fn send(session: &mut ServerConnection, stream: &mut TlsInput) -> io::Result<()> {
    let mut bytes = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut bytes)?;
    }
    stream.write_all(&bytes).await?;
    stream.flush().await
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use bytes::Bytes;
    use futures_util::FutureExt as _;
    use parking_lot::Mutex;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::server::activity::ConnectionActivity;
    use crate::server::certificates::CertificateFiles;
    use scoregate_base::clock::{Clock, Wall};

    const X25519: [u8; 2] = [0, 29];
    const UNKNOWN: [u8; 2] = [0x7f, 1];

    /// TLS with a certificate for `localhost`.
    fn termination() -> TlsTermination {
        let directory = tempfile::tempdir().unwrap();
        let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let certificate = directory.path().join("a.pem");
        let key = directory.path().join("a.key");
        std::fs::write(&certificate, issued.cert.pem()).unwrap();
        std::fs::write(&key, issued.signing_key.serialize_pem()).unwrap();
        let files = CertificateFiles {
            name: "default".into(),
            certificate,
            key,
        };
        let now = Wall::parse_rfc3339("2026-01-01T00:00:00Z").unwrap();
        TlsTermination::new(Certificates::load(&[files], now).unwrap().unwrap()).unwrap()
    }

    /// A `ClientHello` for TLS 1.3 with a key share of this group.
    fn hello(group: [u8; 2]) -> Vec<u8> {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let name = "localhost".try_into().unwrap();
        let mut hello = Vec::new();
        ClientConnection::new(Arc::new(config), name)
            .unwrap()
            .write_tls(&mut hello)
            .unwrap();
        // The extension `key_share`, its length, and the length of its list, which has one share.
        let begin = [[0, 51, 0, 38, 0, 36], [X25519[0], X25519[1], 0, 32, 0, 0]].concat();
        let at = hello
            .windows(10)
            .position(|bytes| bytes == &begin[..10])
            .unwrap();
        hello[at + 6..at + 8].copy_from_slice(&group);
        hello
    }

    #[tokio::test]
    async fn a_client_that_leaves_after_a_hello_retry_request_does_not_wait_for_a_signature() {
        let tls = termination();
        let clock = Clock::system();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (accepted, peer) = listener.accept().await.unwrap();
        let activity = Arc::new(ConnectionActivity::new(
            clock.clone(),
            Arc::default(),
            Arc::default(),
        ));
        let stream = ReadAhead::put_back(Bytes::new(), TimedIo::new(accepted, activity));
        let mut opened = pin!(tls.open(stream, peer.ip(), 9));
        client.write_all(&hello(UNKNOWN)).await.unwrap();
        let mut retry = [0; 1_024];
        tokio::select! {
            ended = opened.as_mut() => panic!("{:?}", ended.err()),
            read = client.read(&mut retry) => assert!(read.unwrap() > 0),
        }
        // All threads are busy with steps that end when the sender is dropped.
        let (release, released) = channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let steps = (0..256).map(|_| {
            let released = Arc::clone(&released);
            let wait = move || released.lock().recv().is_err();
            let mut step = Box::pin(tls.threads.run([192, 0, 2, 1].into(), usize::MAX, wait));
            assert!(step.as_mut().now_or_never().is_none());
            step
        });
        let steps: Vec<_> = steps.collect();
        client.write_all(&hello(X25519)).await.unwrap();
        drop(client);
        let ended = clock.within(Duration::from_secs(9), opened).await;
        drop((release, steps));
        let Some(Err(HandshakeFailure::Io(error))) = ended.ok() else {
            panic!("it waits")
        };
        assert_eq!(error.kind(), io::ErrorKind::ConnectionAborted);
    }
}
