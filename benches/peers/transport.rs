//! Transports of requests: a socket, TLS, or HTTP/2 without TLS. Requests are written as HTTP/1.1 and converted here.

use std::{io::Write as _, net::TcpStream, path::Path, sync::Arc};

use rcgen::{CertificateParams, KeyPair};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};

/// The name in the certificate.
pub const HOST: &str = "localhost";
/// Files of the servers with TLS, in the directory of their other files.
pub const CERTIFICATE: &str = "certificate.pem";
pub const KEY: &str = "key.pem";
/// The beginning of an HTTP/2 connection: the preface, no settings, and a window of the connection that is large enough
/// for a turn.
const OPENING: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x04\x08\0\0\0\0\0\x7f\xff\0\0";
/// Types and flags of HTTP/2 frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// Length of the head of a frame.
const FRAME_HEAD: usize = 9;

/// The transport of a job's requests.
#[derive(Clone, Default)]
pub enum Transport {
    #[default]
    Clear,
    Tls(Arc<ClientConfig>),
    Http2,
}

/// A certificate for servers on loopback.
pub struct ServerCertificate {
    certificate: String,
    key: String,
    client: Arc<ClientConfig>,
}

impl ServerCertificate {
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![HOST.to_owned()])
            .unwrap()
            .self_signed(&key)
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            client: Arc::new(client),
        }
    }

    /// Writes the files of a server.
    pub fn write(&self, directory: &Path) {
        std::fs::write(directory.join(CERTIFICATE), &self.certificate).unwrap();
        std::fs::write(directory.join(KEY), &self.key).unwrap();
    }

    /// For servers in this process.
    pub fn server(&self) -> Arc<ServerConfig> {
        server_config(self.certificate.as_bytes(), self.key.as_bytes())
    }

    /// For clients that trust it.
    pub fn transport(&self) -> Transport {
        Transport::Tls(Arc::clone(&self.client))
    }
}

/// Settings of a server: the library and the provider of the gateway.
pub fn server_config(certificate: &[u8], key: &[u8]) -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_slice(certificate).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key).unwrap();
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key);
    Arc::new(config.unwrap())
}

impl Transport {
    /// Sends the bytes before the first request.
    pub fn open(&self, stream: &mut TcpStream) -> Option<ClientConnection> {
        match self {
            Self::Clear => None,
            Self::Tls(config) => {
                let name = ServerName::try_from(HOST).unwrap();
                let mut tls = ClientConnection::new(Arc::clone(config), name).unwrap();
                while tls.is_handshaking() {
                    tls.complete_io(stream).unwrap();
                }
                Some(tls)
            }
            Self::Http2 => {
                stream.write_all(OPENING).unwrap();
                None
            }
        }
    }

    /// A request as it is sent.
    pub fn request(&self, http1: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Clear | Self::Tls(_) => http1,
            Self::Http2 => headers(&String::from_utf8(http1).unwrap()),
        }
    }
}

/// A request as a HEADERS frame without a stream: `:method: GET` and `:scheme: http` by number, other fields as literals
/// without indexing.
fn headers(http1: &str) -> Vec<u8> {
    let mut lines = http1.lines();
    let target = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .unwrap();
    let mut block = vec![0x82, 0x86, 0x04];
    literal(&mut block, target);
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        if name == "Host" {
            block.push(0x01);
        } else {
            block.push(0x00);
            literal(&mut block, &name.to_ascii_lowercase());
        }
        literal(&mut block, value);
    }
    let length = u32::try_from(block.len()).unwrap().to_be_bytes();
    [
        &length[1..],
        &[HEADERS, END_STREAM | END_HEADERS, 0, 0, 0, 0],
        &block,
    ]
    .concat()
}

/// A string of HPACK.
fn literal(block: &mut Vec<u8>, text: &str) {
    assert!(text.len() < 127, "a length in one byte");
    block.push(text.len() as u8);
    block.extend(text.bytes());
}

/// Puts the stream into a request's frame.
pub fn on_stream(request: &[u8], stream: u32) -> Vec<u8> {
    [&request[..5], &stream.to_be_bytes(), &request[FRAME_HEAD..]].concat()
}

/// Whether the received frames end a stream, and whether its status is 200; `None` until then.
pub fn frames(mut bytes: &[u8]) -> Option<bool> {
    let mut is_ok = false;
    while let Some((head, rest)) = bytes.split_at_checked(FRAME_HEAD) {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (payload, rest) = rest.split_at_checked(length)?;
        let kind = head[3];
        let flags = head[4];
        assert!(
            [DATA, HEADERS, SETTINGS, 8].contains(&kind),
            "a frame of type {kind}"
        );
        // `:status: 200` has a number.
        is_ok |= kind == HEADERS && payload.first() == Some(&0x88);
        if kind <= HEADERS && flags & END_STREAM != 0 {
            return Some(is_ok);
        }
        bytes = rest;
    }
    None
}
