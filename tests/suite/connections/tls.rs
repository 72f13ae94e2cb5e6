//! TLS on the public port: versions, names, negotiated protocols, sessions, changed certificates, and unusable
//! certificates.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::{
    ClientConfig, ProtocolVersion, RootCertStore, SupportedProtocolVersion,
    pki_types::{CertificateDer, ServerName},
};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{
    client::Connection,
    program::run,
    world::{World, good},
};

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// A certificate authority that clients trust.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self {
            issuer,
            directory: TempDir::new().unwrap(),
        }
    }

    fn path(&self, name: &str, what: &str) -> PathBuf {
        self.directory.path().join(format!("{name}.{what}"))
    }

    /// Writes a certificate for these names, and its key, as the files of `name`.
    fn certify(&self, name: &str, names: &[&str], last_year: i32) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(last_year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(name, "pem"), certificate.pem()).unwrap();
        std::fs::write(self.path(name, "key"), key.serialize_pem()).unwrap();
    }

    fn settings(&self, names: &[&str]) -> String {
        let table = |name: &&str| {
            let [pem, key] = ["pem", "key"].map(|what| self.path(name, what).display().to_string());
            format!("[tls.{name}]\ncertificate = \"{pem}\"\nkey = \"{key}\"\n")
        };
        names.iter().map(table).collect()
    }

    fn client(&self, version: &'static SupportedProtocolVersion, protocols: &[&str]) -> Client {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from(self.issuer.der().to_vec()))
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap();
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        Client(TlsConnector::from(Arc::new(config)))
    }

    /// A client with current TLS versions.
    fn modern(&self) -> Client {
        self.client(&rustls::version::TLS13, &["http/1.1"])
    }
}

struct Client(TlsConnector);

impl Client {
    async fn handshake(
        &self,
        address: SocketAddr,
        name: &str,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        self.0
            .connect(name, TcpStream::connect(address).await?)
            .await
    }

    /// The first certificate that the server presents.
    async fn presented(&self, address: SocketAddr, name: &str) -> Vec<u8> {
        let stream = self.handshake(address, name).await.unwrap();
        stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
    }
}

/// The certificate in a file.
fn stored(path: &Path) -> Vec<u8> {
    use rustls::pki_types::pem::PemObject as _;
    CertificateDer::from_pem_file(path).unwrap().to_vec()
}

async fn health(connection: &mut Connection<TlsStream<TcpStream>>) -> u16 {
    connection.write(HEALTH).await;
    connection.read(false).await.unwrap().status
}

/// A gateway with TLS and these certificates. Its clock shows a day on which all of them are valid.
async fn world(authority: &Authority, names: &[&str]) -> World {
    World::with(&authority.settings(names), good).await
}

#[tokio::test]
async fn both_tls_versions_work_and_the_client_selects_the_protocol() {
    let authority = Authority::new();
    authority.certify("default", &["localhost"], 2040);
    let world = world(&authority, &["default"]).await;
    let key = world.customer("pro").await.key;
    for (version, number) in [
        (&rustls::version::TLS12, ProtocolVersion::TLSv1_2),
        (&rustls::version::TLS13, ProtocolVersion::TLSv1_3),
    ] {
        let stream = authority
            .client(version, &["http/1.1"])
            .handshake(world.address(), "localhost")
            .await
            .unwrap();
        assert_eq!(stream.get_ref().1.protocol_version(), Some(number));
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        let response = Connection::over(stream)
            .send(world.get("/api/v1/models").key(&key))
            .await;
        assert_eq!(response.status, 200);
        assert_eq!(
            response.header("strict-transport-security"),
            "max-age=31536000"
        );
        let stream = authority
            .client(version, &["h2", "http/1.1"])
            .handshake(world.address(), "localhost")
            .await;
        let stream = stream.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let io = hyper_util::rt::TokioIo::new(stream);
        let executor = hyper_util::rt::TokioExecutor::new();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake::<_, _, http_body_util::Empty<bytes::Bytes>>(
                executor, io,
            )
            .await
            .unwrap();
        tokio::spawn(connection);
        let request =
            http::Request::get("https://localhost/api/v1/models").header("x-api-key", &key);
        let response = sender
            .send_request(request.body(http_body_util::Empty::new()).unwrap())
            .await
            .unwrap();
        assert_eq!(
            (response.status(), response.version()),
            (http::StatusCode::OK, http::Version::HTTP_2)
        );
    }
}

#[tokio::test]
async fn each_configured_name_has_its_certificate_and_other_names_the_default() {
    let authority = Authority::new();
    authority.certify("api", &["api.example.org"], 2040);
    authority.certify("default", &["localhost", "unknown.example.net"], 2041);
    authority.certify("wild", &["*.example.com"], 2042);
    let world = world(&authority, &["api", "default", "wild"]).await;
    let client = authority.modern();
    for (server_name, file) in [
        ("api.example.org", "api"),
        ("one.example.com", "wild"),
        ("localhost", "default"),
        ("unknown.example.net", "default"),
    ] {
        assert_eq!(
            client.presented(world.address(), server_name).await,
            stored(&authority.path(file, "pem")),
            "{server_name}"
        );
    }
    assert!(
        client
            .handshake(world.address(), "a.b.example.com")
            .await
            .is_err(),
        "a wildcard covers one label"
    );
    let first_to_end = scoregate_base::clock::Wall::parse_rfc3339("2040-01-01T00:00:00Z").unwrap();
    let expiry = world
        .counted("scoregate_certificate_expiry_timestamp_seconds")
        .await;
    assert_eq!(u64::from(expiry), first_to_end.seconds());
}

#[tokio::test]
async fn a_new_certificate_is_loaded_without_closing_connections() {
    let authority = Authority::new();
    authority.certify("default", &["localhost"], 2040);
    let world = world(&authority, &["default"]).await;
    let client = authority.modern();
    let mut open = Connection::over(
        client
            .handshake(world.address(), "localhost")
            .await
            .unwrap(),
    );
    assert_eq!(health(&mut open).await, 200);
    let before = stored(&authority.path("default", "pem"));
    authority.certify("default", &["localhost"], 2050);
    assert_eq!(client.presented(world.address(), "localhost").await, before);
    while client.presented(world.address(), "localhost").await == before {
        world.pass(CHECK_INTERVAL);
        assert_eq!(health(&mut open).await, 200, "the connection stays open");
    }
    assert_eq!(health(&mut open).await, 200, "with its initial certificate");
    assert_eq!(
        client.presented(world.address(), "localhost").await,
        stored(&authority.path("default", "pem"))
    );
}

#[tokio::test]
async fn unusable_certificates_are_ignored_until_they_are_valid() {
    let authority = Authority::new();
    authority.certify("default", &["localhost"], 2040);
    authority.certify("other", &["localhost"], 2040);
    authority.certify("ended", &["localhost"], 2021);
    let world = world(&authority, &["default"]).await;
    let client = authority.modern();
    let pem = authority.path("default", "pem");
    let key = authority.path("default", "key");
    let valid_pem = std::fs::read(&pem).unwrap();
    let good_key = std::fs::read(&key).unwrap();
    let in_use = stored(&pem);
    let read = |name: &str, what: &str| std::fs::read(authority.path(name, what)).unwrap();
    let bad: [(&str, Vec<u8>, Vec<u8>); 5] = [
        (
            "a certificate of another key",
            read("other", "pem"),
            good_key.clone(),
        ),
        ("ended", read("ended", "pem"), read("ended", "key")),
        (
            "half",
            valid_pem[..valid_pem.len() / 2].to_vec(),
            good_key.clone(),
        ),
        ("empty", Vec::new(), Vec::new()),
        ("nonsense", b"\0\xff".to_vec(), b"key".to_vec()),
    ];
    for (what, bad_pem, bad_key) in bad {
        std::fs::write(&pem, bad_pem).unwrap();
        std::fs::write(&key, bad_key).unwrap();
        while world
            .counted("scoregate_files_rejected{setting=\"tls\"}")
            .await
            == 0
        {
            world.pass(CHECK_INTERVAL);
        }
        assert_eq!(
            client.presented(world.address(), "localhost").await,
            in_use,
            "{what}"
        );
        std::fs::write(&pem, &valid_pem).unwrap();
        std::fs::write(&key, &good_key).unwrap();
        while world
            .counted("scoregate_files_rejected{setting=\"tls\"}")
            .await
            == 1
        {
            world.pass(CHECK_INTERVAL);
        }
    }
    std::fs::remove_file(&pem).unwrap();
    while world
        .counted("scoregate_files_rejected{setting=\"tls\"}")
        .await
        == 0
    {
        world.pass(CHECK_INTERVAL);
    }
    assert_eq!(
        client.presented(world.address(), "localhost").await,
        in_use,
        "gone"
    );
}

#[tokio::test]
async fn clients_without_tls_or_with_half_a_handshake_do_not_delay_others() {
    let authority = Authority::new();
    authority.certify("default", &["localhost"], 2040);
    let world = world(&authority, &["default"]).await;
    let mut plain = world.connect().await;
    plain.write(HEALTH).await;
    assert!(plain.read(false).await.is_none(), "no HTTP in the clear");
    world
        .reaches("scoregate_connections_total{reason=\"tls_handshake\"}", 1)
        .await;
    // The start of a ClientHello, and nothing more.
    let mut half = world.connect().await;
    half.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        .await;
    world.reaches("scoregate_connections", 1).await;
    world.pass(Duration::from_millis(8_999));
    let mut in_time = Connection::over(
        authority
            .modern()
            .handshake(world.address(), "localhost")
            .await
            .unwrap(),
    );
    assert_eq!(health(&mut in_time).await, 200);
    world.pass(Duration::from_millis(1));
    assert!(half.is_closed().await);
    assert_eq!(world.ended("head_timeout").await, 1);
}

#[test]
fn check_reports_every_problem_of_certificates() {
    let authority = Authority::new();
    authority.certify("ended", &["localhost"], 2021);
    authority.certify("crossed", &["localhost"], 2040);
    std::fs::copy(
        authority.path("ended", "key"),
        authority.path("crossed", "key"),
    )
    .unwrap();
    let settings = authority.settings(&["ended", "crossed", "missing"]);
    let file = authority.path("scoregate", "toml");
    std::fs::write(&file, format!("upstream = \"built-in\"\n{settings}")).unwrap();
    let ended = run(&["check", "--config", file.to_str().unwrap()]).with(1);
    for words in [
        "tls.ended: found",
        "it expired at 2021-01-01T00:00:00Z; install a new one",
        "tls.crossed: found",
        "it does not match",
        "missing.pem; it cannot be read",
        "missing.key; it cannot be read",
    ] {
        assert!(ended.err.contains(words), "{words}: {}", ended.err);
    }
}

#[tokio::test]
async fn a_client_whose_handshake_fails_gets_an_alert_with_the_reason() {
    let authority = Authority::new();
    authority.certify("default", &["localhost"], 2040);
    let world = world(&authority, &["default"]).await;
    let client = authority.client(&rustls::version::TLS13, &["spdy/9"]);
    let error = client
        .handshake(world.address(), "localhost")
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("NoApplicationProtocol"),
        "{error}"
    );
    world
        .reaches("scoregate_connections_total{reason=\"tls_handshake\"}", 1)
        .await;
}

/// A `ClientHello` as a client sends it, which an attacker can record and repeat.
fn recorded_hello(client: &Client) -> Vec<u8> {
    let name = ServerName::try_from("localhost").unwrap();
    let mut session = rustls::ClientConnection::new(Arc::clone(client.0.config()), name).unwrap();
    let mut hello = Vec::new();
    session.write_tls(&mut hello).unwrap();
    hello
}

#[tokio::test]
async fn a_hello_in_any_parts_is_answered_and_clients_that_repeat_it_keep_nobody_out() {
    let authority = Authority::new();
    authority.certify("default", &["localhost"], 2040);
    let world = world(&authority, &["default"]).await;
    let client = authority.modern();
    let hello = recorded_hello(&client);
    let mut repeating = Vec::new();
    for number in 0..100 {
        let mut connection = world.connect().await;
        let (first, rest) = hello.split_at(number % hello.len());
        connection.write(first).await;
        tokio::task::yield_now().await;
        connection.write(rest).await;
        repeating.push(connection);
    }
    let mut honest = Connection::over(
        client
            .handshake(world.address(), "localhost")
            .await
            .unwrap(),
    );
    assert_eq!(health(&mut honest).await, 200);
    drop(repeating);
    world.reaches("scoregate_connections", 1).await;
    assert_eq!(health(&mut honest).await, 200);
}
