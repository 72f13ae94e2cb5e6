//! A backend behind TLS: a real TLS server in front of the scripted backend, and the authority that issues its
//! certificates.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::backend::Backend;

static BOTH: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS13, &rustls::version::TLS12];

/// An authority with its certificates in a directory.
pub struct BackendAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

/// What the server requires of a handshake.
pub struct Handshake {
    versions: &'static [&'static SupportedProtocolVersion],
    client_authority: Option<RootCertStore>,
}

/// The TLS server. Its connections to the backend are in the clear.
pub struct TlsBackend {
    pub address: SocketAddr,
    acceptor: Arc<Mutex<TlsAcceptor>>,
    seen: watch::Sender<Vec<SeenHandshake>>,
}

/// A finished handshake.
#[derive(Clone, Debug)]
pub struct SeenHandshake {
    pub server_name: Option<String>,
    pub client_certificate: Option<Vec<u8>>,
}

impl BackendAuthority {
    pub fn new() -> Self {
        Self::named("Authority of the backends")
    }

    pub fn named(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = date_time_ymd(2020, 1, 1);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let authority = Self { issuer, directory: TempDir::new().unwrap() };
        std::fs::write(authority.ca_file(), authority.issuer.pem()).unwrap();
        authority
    }

    pub fn ca_file(&self) -> PathBuf {
        self.path("authority.pem")
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    /// Writes a certificate for these names, and its key, as the files of `name`.
    pub fn certify(&self, name: &str, names: &[&str], last_year: i32) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(last_year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(&format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    /// The settings of a client certificate.
    pub fn client_settings(&self, name: &str) -> String {
        let [pem, key] =
            ["pem", "key"].map(|what| self.path(&format!("{name}.{what}")).display().to_string());
        format!("client_certificate = \"{pem}\"\nclient_key = \"{key}\"\n")
    }

    /// The setting that makes this authority trusted.
    pub fn ca_setting(&self) -> String {
        format!("ca_file = \"{}\"\n", self.ca_file().display())
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.issuer.der().to_vec())).unwrap();
        roots
    }

    fn acceptor(&self, name: &str, handshake: Handshake) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(handshake.versions)
            .unwrap();
        let builder = match handshake.client_authority {
            Some(roots) => builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap(),
            ),
            None => builder.with_no_client_auth(),
        };
        let chain = vec![CertificateDer::from_pem_file(self.path(&format!("{name}.pem"))).unwrap()];
        let key = PrivateKeyDer::from_pem_file(self.path(&format!("{name}.key"))).unwrap();
        TlsAcceptor::from(Arc::new(builder.with_single_cert(chain, key).unwrap()))
    }
}

impl Handshake {
    /// Both versions, without a client certificate.
    pub fn usual() -> Self {
        Self { versions: &BOTH, client_authority: None }
    }

    /// TLS 1.2 only.
    pub fn of_version_1_2() -> Self {
        Self { versions: &BOTH[1..], client_authority: None }
    }

    /// This version only, with a client certificate of this authority.
    pub fn with_client(authority: &BackendAuthority, is_version_1_3: bool) -> Self {
        let versions = if is_version_1_3 { &BOTH[..1] } else { &BOTH[1..] };
        Self { versions, client_authority: Some(authority.roots()) }
    }
}

impl TlsBackend {
    /// Accepts connections with the certificate of `name`.
    pub async fn start(
        backend: &Backend,
        authority: &BackendAuthority,
        name: &str,
        handshake: Handshake,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = Arc::new(Mutex::new(authority.acceptor(name, handshake)));
        let (current, seen, target) =
            (Arc::clone(&acceptor), watch::Sender::new(Vec::new()), backend.address);
        let sender = seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = current.lock().unwrap().clone();
                tokio::spawn(serve(stream, acceptor, target, sender.clone()));
            }
        });
        Self { address, acceptor, seen }
    }

    /// The base URL by this host name.
    pub fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/api/v1", self.address.port())
    }

    /// Presents another certificate in new handshakes.
    pub fn present(&self, authority: &BackendAuthority, name: &str) {
        *self.acceptor.lock().unwrap() = authority.acceptor(name, Handshake::usual());
    }

    /// The finished handshakes.
    pub fn handshakes(&self) -> Vec<SeenHandshake> {
        self.seen.borrow().clone()
    }
}

async fn serve(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    target: SocketAddr,
    seen: watch::Sender<Vec<SeenHandshake>>,
) {
    let accepting = acceptor.accept(stream).into_fallible().await;
    let mut tls = match accepting {
        Ok(tls) => tls,
        Err((_, mut stream)) => {
            // Unread bytes would reset the connection, and the peer would not see the alert.
            drop(stream.shutdown().await);
            let mut rest = [0; 4096];
            while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
            return;
        }
    };
    let session = tls.get_ref().1;
    let client = session.peer_certificates().and_then(<[_]>::first).map(|der| der.to_vec());
    let server_name = session.server_name().map(str::to_owned);
    seen.send_modify(|all| all.push(SeenHandshake { server_name, client_certificate: client }));
    let mut plain = TcpStream::connect(target).await.unwrap();
    drop(tokio::io::copy_bidirectional(&mut tls, &mut plain).await);
}
