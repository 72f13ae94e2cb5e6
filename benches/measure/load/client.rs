//! The HTTP clients: HTTP/1.1 with a connection per caller, or HTTP/2 with several callers per connection; with or
//! without TLS.
//!
//! No retries, except for requests that were never sent, or that the server declares as unprocessed.

use std::collections::HashMap;
use std::error::Error;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, ETAG, HOST, HeaderValue, IF_NONE_MATCH};
use http::{HeaderMap, Request, Response, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::plan::{Plan, PlannedRequest};
use super::record::Outcome;

/// The address of the server, and the protocol.
#[derive(Clone)]
pub(crate) struct Destination {
    address: SocketAddr,
    host: String,
    is_http2: bool,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// Connections to one destination.
#[derive(Clone)]
pub(crate) struct Client {
    destination: Destination,
    connections: usize,
    callers_of_each: usize,
    timeout: Duration,
    /// The last entity tag, per document and tier.
    tags: Arc<Mutex<HashMap<(usize, String), HeaderValue>>>,
}

type Sent = Result<Response<Incoming>, TrySendError<Request<Empty<Bytes>>>>;

/// A client that sends one request at a time.
pub(crate) struct Caller {
    client: Client,
    connection: Connection,
}

enum Connection {
    OwnGateway(Option<http1::SendRequest<Empty<Bytes>>>),
    Shared(Shared),
}

/// A connection shared by several callers; the first that finds it closed opens the next.
type Shared = Arc<tokio::sync::Mutex<Option<http2::SendRequest<Empty<Bytes>>>>>;

impl Destination {
    /// For an address such as `http://127.0.0.1:8080`; trusts the authorities in this file, else the public ones.
    pub(crate) fn new(
        address: &str,
        is_http2: bool,
        authorities: Option<&str>,
    ) -> Result<Self, String> {
        let uri: Uri = address
            .parse()
            .map_err(|_| format!("{address} is no address"))?;
        let known = (uri.scheme_str(), uri.authority());
        let (Some(scheme @ ("http" | "https")), Some(authority)) = known else {
            return Err(format!(
                "{address} has to look like http://host:port or https://host"
            ));
        };
        let port = uri
            .port_u16()
            .unwrap_or(if scheme == "https" { 443 } else { 80 });
        let found = (authority.host().trim_matches(['[', ']']), port).to_socket_addrs();
        let found = found
            .map_err(|error| format!("{authority}: {error}"))?
            .next();
        let tls = match scheme {
            "https" => Some((
                connector(is_http2, authorities)?,
                name_of(authority.host())?,
            )),
            _ => None,
        };
        let address = found.ok_or_else(|| format!("{authority} has no address"))?;
        Ok(Self {
            address,
            host: authority.to_string(),
            is_http2,
            tls,
        })
    }

    /// For the report.
    pub(crate) fn shown(&self) -> String {
        let version = if self.is_http2 { "HTTP/2" } else { "HTTP/1.1" };
        let within = if self.tls.is_some() { " over TLS" } else { "" };
        format!("{} by {version}{within}", self.host)
    }

    async fn open(&self) -> std::io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(match &self.tls {
            Some((connector, name)) => Box::new(connector.connect(name.clone(), stream).await?),
            None => Box::new(stream),
        })
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

fn name_of(host: &str) -> Result<ServerName<'static>, String> {
    let name = host.trim_matches(['[', ']']).to_owned();
    ServerName::try_from(name).map_err(|_| format!("{host} is no name for a certificate"))
}

fn connector(is_http2: bool, authorities: Option<&str>) -> Result<TlsConnector, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.expect("ring knows the versions of TLS");
    let mut config = match authorities {
        None => {
            let public: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
            builder.with_root_certificates(public).with_no_client_auth()
        }
        Some(file) => {
            let unreadable = |error: &dyn std::fmt::Display| format!("{file}: {error}");
            let mut roots = RootCertStore::empty();
            for root in CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))? {
                let root = root.map_err(|error| unreadable(&error))?;
                roots.add(root).map_err(|error| unreadable(&error))?;
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
    };
    config.alpn_protocols = vec![if is_http2 {
        b"h2".to_vec()
    } else {
        b"http/1.1".to_vec()
    }];
    Ok(TlsConnector::from(Arc::new(config)))
}

impl Client {
    /// This many connections; over HTTP/2, this many concurrent requests on each.
    pub(crate) fn new(
        destination: Destination,
        connections: usize,
        streams: usize,
        timeout: Duration,
    ) -> Self {
        let callers_of_each = if destination.is_http2 { streams } else { 1 };
        Self {
            destination,
            connections,
            callers_of_each,
            timeout,
            tags: Arc::default(),
        }
    }

    /// Timeout of a request, from the time it was due.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Maximum number of concurrent requests.
    pub(crate) fn callers(&self) -> usize {
        self.connections * self.callers_of_each
    }

    pub(crate) fn all_callers(&self) -> Vec<Caller> {
        let of_one = |_| {
            let shared = Arc::default();
            (0..self.callers_of_each)
                .map(move |_| self.caller(&shared))
                .collect::<Vec<_>>()
        };
        (0..self.connections).flat_map(of_one).collect()
    }

    fn caller(&self, shared: &Shared) -> Caller {
        let connection = if self.destination.is_http2 {
            Connection::Shared(Arc::clone(shared))
        } else {
            Connection::OwnGateway(None)
        };
        Caller {
            client: self.clone(),
            connection,
        }
    }

    /// Requests a document outside of any schedule; returns status and body.
    pub(crate) async fn get(&self, target: &str, key: &str) -> Result<(u16, Bytes), String> {
        let mut caller = self.caller(&Arc::default());
        let mut request = self.request(target, key, None);
        request.headers_mut().remove(ACCEPT_ENCODING);
        let answer = tokio::time::timeout(self.timeout, caller.exchange(request)).await;
        let (head, body) = answer
            .map_err(|_| "no answer in time".to_owned())?
            .map_err(Outcome::word)?;
        Ok((head.status, body))
    }

    fn request(&self, target: &str, key: &str, tag: Option<HeaderValue>) -> Request<Empty<Bytes>> {
        let Destination {
            host,
            is_http2,
            tls,
            ..
        } = &self.destination;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let mut request = Request::new(Empty::new());
        let uri = if *is_http2 {
            format!("{scheme}://{host}{target}")
        } else {
            target.to_owned()
        };
        *request.uri_mut() = uri.parse().expect("a target of ours is one");
        let headers = request.headers_mut();
        if !is_http2 {
            headers.insert(
                HOST,
                HeaderValue::from_str(host).expect("it was in an address"),
            );
        }
        let mut bearer =
            HeaderValue::from_str(&format!("Bearer {key}")).expect("keys are visible ASCII");
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        if let Some(tag) = tag {
            headers.insert(IF_NONE_MATCH, tag);
        }
        request
    }
}

impl Caller {
    /// Sends a request and reads the whole response within the timeout.
    pub(crate) async fn send_planned(
        &mut self,
        plan: &Plan,
        planned: PlannedRequest,
        left: Duration,
    ) -> Outcome {
        let key = &plan.keys[planned.key];
        let tag_key = (planned.target, key.tier.clone());
        let known = self
            .client
            .tags
            .lock()
            .unwrap()
            .get(&tag_key)
            .filter(|_| planned.is_conditional)
            .cloned();
        let request = self
            .client
            .request(&plan.targets[planned.target], &key.text, known);
        match tokio::time::timeout(left, self.exchange(request)).await {
            Ok(Ok((head, _))) => {
                if let Some(tag) = head.tag {
                    self.client.tags.lock().unwrap().insert(tag_key, tag);
                }
                Outcome::Answered(head.status, head.word)
            }
            Ok(Err(outcome)) => outcome,
            Err(_) => {
                // A late response must not be read as the next one.
                self.connection.forget();
                Outcome::TooLate
            }
        }
    }

    /// Sends a request; once more on another connection if the server has not processed it.
    async fn exchange(&mut self, request: Request<Empty<Bytes>>) -> Result<(Head, Bytes), Outcome> {
        let mut request = request;
        let mut is_again = false;
        let response = loop {
            let copy = self.client.destination.is_http2.then(|| request.clone());
            match self.send(request).await? {
                Ok(response) => break response,
                Err(mut error) => {
                    let unsent = error
                        .take_message()
                        .or(copy.filter(|_| is_untouched(error.error())));
                    match unsent.filter(|_| !is_again) {
                        Some(unsent) => {
                            (request, is_again) = (unsent, true);
                            if let Connection::Shared(shared) = &self.connection {
                                // It may still look open for a moment.
                                *shared.lock().await = None;
                            }
                        }
                        None => return Err(Outcome::CutOff),
                    }
                }
            }
        };
        let head = Head::of(&response);
        let body = response
            .into_body()
            .collect()
            .await
            .map_err(|_| Outcome::CutOff)?;
        Ok((head, body.to_bytes()))
    }

    async fn send(&mut self, request: Request<Empty<Bytes>>) -> Result<Sent, Outcome> {
        match &mut self.connection {
            Connection::OwnGateway(own) => {
                let open = match own.take() {
                    Some(mut sender) => sender.ready().await.is_ok().then_some(sender),
                    None => None,
                };
                let mut sender = match open {
                    Some(sender) => sender,
                    None => self
                        .client
                        .destination
                        .one()
                        .await
                        .map_err(|_| Outcome::NoConnection)?,
                };
                let sent = sender.try_send_request(request).await;
                *own = Some(sender);
                Ok(sent)
            }
            Connection::Shared(shared) => {
                let mut connection = shared.lock().await;
                let open = match connection.take() {
                    Some(mut sender) => sender.ready().await.is_ok().then_some(sender),
                    None => None,
                };
                let mut sender = match open {
                    Some(sender) => sender,
                    None => self
                        .client
                        .destination
                        .many()
                        .await
                        .map_err(|_| Outcome::NoConnection)?,
                };
                *connection = Some(sender.clone());
                drop(connection);
                Ok(sender.try_send_request(request).await)
            }
        }
    }
}

/// Whether the server sent a GOAWAY without an error before it processed the request (RFC 9113, 6.8).
fn is_untouched(error: &hyper::Error) -> bool {
    // The type of this error is private to hyper, so it is recognised by its text.
    let says = |cause: &dyn Error| {
        cause.to_string() == "connection error received: not a result of an error"
    };
    error.source().is_some_and(says)
}

impl Connection {
    fn forget(&mut self) {
        if let Self::OwnGateway(own) = self {
            *own = None;
        }
    }
}

impl Destination {
    async fn one(&self) -> std::io::Result<http1::SendRequest<Empty<Bytes>>> {
        let stream = TokioIo::new(self.open().await?);
        let (sender, connection) = http1::handshake(stream)
            .await
            .map_err(std::io::Error::other)?;
        drop(tokio::spawn(connection));
        Ok(sender)
    }

    async fn many(&self) -> std::io::Result<http2::SendRequest<Empty<Bytes>>> {
        let stream = TokioIo::new(self.open().await?);
        let shaken = http2::handshake(TokioExecutor::new(), stream).await;
        let (sender, connection) = shaken.map_err(std::io::Error::other)?;
        drop(tokio::spawn(connection));
        Ok(sender)
    }
}

/// The relevant fields of a response head.
struct Head {
    status: u16,
    word: &'static str,
    tag: Option<HeaderValue>,
}

impl Head {
    fn of(response: &Response<Incoming>) -> Self {
        let headers = response.headers();
        Self {
            status: response.status().as_u16(),
            word: word_of(headers),
            tag: headers.get(ETAG).cloned(),
        }
    }
}

/// The source of the document by `Cache-Status`; empty if there is none, as for refusals.
fn word_of(headers: &HeaderMap) -> &'static str {
    let response = headers
        .get("cache-status")
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let words = ["stale", "miss", "shared", "refreshed"];
    let detail = words
        .into_iter()
        .find(|word| response.contains(&format!("detail={word}")));
    detail.unwrap_or(if response.contains("; hit") {
        "hit"
    } else {
        ""
    })
}
