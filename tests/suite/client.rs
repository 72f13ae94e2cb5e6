//! A client that sends exactly what a test specifies and checks every response against the rules of all responses:
//! only listed headers, every documented header, a body that matches `/openapi.json`.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use scoregate::routes::headers::{HEADERS, HeaderValueKind};
use serde_json::Value as Json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// Transport headers, which the documents need not list.
const TRANSPORT: &[&str] = &["content-length", "connection"];
/// Further headers of the pages that need no key.
const PAGES: &[&str] = &["content-security-policy", "referrer-policy", "location"];

/// Further headers of the response to a preflight request, if CORS is configured.
const PREFLIGHT: &[&str] =
    &["access-control-allow-methods", "access-control-allow-headers", "access-control-max-age"];

/// Optional headers that the settings enable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptionalHeaders {
    pub cors: bool,
    pub varies_by_origin: bool,
    /// The deprecation headers.
    pub deprecation: bool,
}

impl OptionalHeaders {
    /// Parses the settings of a test.
    pub fn of(settings: &str) -> Self {
        let cors = settings.contains("cors.origins");
        let any = settings.contains("cors.origins = [\"*\"]");
        let deprecation = ["deprecated_at", "sunset_at"].iter().any(|name| settings.contains(name));
        Self { cors, varies_by_origin: cors && !any, deprecation }
    }

    /// Whether these settings allow a listed header.
    fn allows(self, name: &str) -> bool {
        match name {
            "deprecation" | "sunset" | "link" => self.deprecation,
            _ => self.cors || !name.starts_with("access-control-"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    /// Header fields, names in lower case, in order.
    pub headers: Vec<(String, String)>,
    /// The body as sent.
    pub body: Vec<u8>,
    /// Everything as sent except `date` and `x-request-id`: equal for two equal runs.
    pub fingerprint: String,
}

impl Response {
    /// The only value of a header; empty if absent.
    pub fn header(&self, name: &str) -> &str {
        let mut values = self.headers.iter().filter(|(known, _)| known == name);
        let value = values.next().map_or("", |(_, value)| value);
        assert!(values.next().is_none(), "{name} is repeated");
        value
    }

    pub fn number(&self, name: &str) -> u64 {
        self.header(name).parse().unwrap_or_else(|_| panic!("{name} is {:?}", self.header(name)))
    }

    pub fn json(&self) -> Json {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("no JSON: {}", String::from_utf8_lossy(&self.body)))
    }

    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The body without its encoding.
    pub fn decoded(&self) -> Vec<u8> {
        let mut plain = Vec::new();
        match self.header("content-encoding") {
            _ if self.body.is_empty() => {}
            "gzip" => drop(flate2::read::GzDecoder::new(&*self.body).read_to_end(&mut plain).unwrap()),
            "br" => brotli::BrotliDecompress(&mut &*self.body, &mut plain).unwrap(),
            _ => plain.clone_from(&self.body),
        }
        plain
    }

    /// Whether it announces the end of the connection.
    pub fn closes(&self) -> bool {
        self.header("connection").eq_ignore_ascii_case("close")
    }
}

/// A request.
#[derive(Clone)]
pub struct RequestBuilder {
    address: SocketAddr,
    rules: Arc<Rules>,
    method: String,
    target: String,
    headers: Vec<(String, String)>,
}

impl RequestBuilder {
    pub fn new(address: SocketAddr, rules: Arc<Rules>, method: &str, target: &str) -> Self {
        let headers = vec![("Host".to_owned(), address.to_string())];
        Self { address, rules, method: method.into(), target: target.into(), headers }
    }

    /// Adds this key as a bearer token.
    pub fn key(self, key: &str) -> Self {
        self.header("Authorization", &format!("Bearer {key}"))
    }

    /// Adds a header field.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Removes the Host header.
    pub fn without_host(mut self) -> Self {
        self.headers.retain(|(name, _)| name != "Host");
        self
    }

    /// Replaces the method.
    pub fn method(mut self, method: &str) -> Self {
        method.clone_into(&mut self.method);
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.into_bytes()
    }

    /// Sends it on a new connection.
    pub async fn send(self) -> Response {
        let mut connection = Connection::open(self.address).await;
        connection.send(self).await
    }
}

/// A connection for several requests.
pub struct Connection<S = TcpStream> {
    stream: S,
    buffer: Vec<u8>,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.unwrap(), buffer: Vec::new() }
    }

    /// Opens one from a local address.
    pub async fn open_from(local: IpAddr, address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(local, 0)).unwrap();
        Self { stream: socket.connect(address).await.unwrap(), buffer: Vec::new() }
    }

    /// Resets it, as the kernel does for a client that died.
    pub fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Uses an open stream.
    pub fn over(stream: S) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    /// Sends a request and reads its response.
    pub async fn send(&mut self, request: RequestBuilder) -> Response {
        self.stream.write_all(&request.bytes()).await.unwrap();
        let response = self.read(request.method == "HEAD").await.expect("a response");
        request.rules.check(&request.method, &request.target, &response);
        response
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Shuts down the sending side.
    pub async fn finish(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Reads a response. `None` if the connection was closed instead.
    pub async fn read(&mut self, is_head: bool) -> Option<Response> {
        let end = loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            self.more().await?;
        };
        let head = String::from_utf8(self.buffer.drain(..end).collect()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(": ").unwrap_or((line.trim_end_matches(':'), "")))
            .map(|(n, v)| (n.to_lowercase(), v.to_owned()))
            .collect();
        let length = headers
            .iter()
            .find(|(name, _)| name == "content-length")
            .map(|(_, value)| value.parse().unwrap());
        let length: usize = if is_head || matches!(status, 204 | 304) { 0 } else { length.unwrap_or(0) };
        while self.buffer.len() < length {
            self.more().await?;
        }
        let body: Vec<u8> = self.buffer.drain(..length).collect();
        let steady = headers.iter().filter(|(name, _)| name != "date" && name != "x-request-id");
        let fingerprint = format!("{status} {:?} {:?}", steady.collect::<Vec<_>>(), body);
        Some(Response { status, headers, body, fingerprint })
    }

    /// Whether the gateway closes the connection without sending more.
    pub async fn is_closed(&mut self) -> bool {
        self.buffer.is_empty() && self.more().await.is_none() && self.buffer.is_empty()
    }

    async fn more(&mut self) -> Option<()> {
        let mut chunk = [0; 16_384];
        match self.stream.read(&mut chunk).await {
            Ok(0) | Err(_) => None,
            Ok(read) => {
                self.buffer.extend_from_slice(&chunk[..read]);
                Some(())
            }
        }
    }
}

/// The rules of every response.
pub struct Rules {
    /// Schemas of bodies by path template and status, from the API description.
    bodies: HashMap<(String, u16), jsonschema::Validator>,
    patterns: HashMap<&'static str, jsonschema::Validator>,
    sends: OptionalHeaders,
}

impl Rules {
    /// Compiles the gateway's own API description.
    fn new(description: &Json, sends: OptionalHeaders) -> Self {
        let mut bodies = HashMap::new();
        for (path, item) in description["paths"].as_object().unwrap() {
            for (status, response) in item["get"]["responses"].as_object().unwrap() {
                let response = follow(description, response);
                let schema = &response["content"]["application/json"]["schema"];
                if !schema.is_null() {
                    let whole =
                        serde_json::json!({"allOf": [schema], "components": description["components"]});
                    let validator = jsonschema::validator_for(&whole).unwrap();
                    bodies.insert((path.clone(), status.parse().unwrap()), validator);
                }
            }
        }
        let schema = |value: &HeaderValueKind| match value {
            HeaderValueKind::Integer => serde_json::json!({"pattern": "^[0-9]+$"}),
            HeaderValueKind::Words(words) => serde_json::json!({"enum": words}),
            HeaderValueKind::Pattern(pattern) => serde_json::json!({"pattern": pattern}),
        };
        let patterns = HEADERS
            .iter()
            .map(|header| (header.name, jsonschema::validator_for(&schema(&header.value)).unwrap()))
            .collect();
        Self { bodies, patterns, sends }
    }

    /// Checks a response against the rules.
    pub fn check(&self, method: &str, target: &str, response: &Response) {
        let path = target.split('?').next().unwrap();
        let pages = [
            "/",
            "/docs",
            "/docs/",
            "/openapi.json",
            "/healthz",
            "/robots.txt",
            "/favicon.ico",
            "/status",
            "/status.atom",
            "/.well-known/api-catalog",
            "/.well-known/security.txt",
        ];
        let is_page = pages.contains(&path) && response.status < 400;
        for (name, _) in &response.headers {
            let documented = HEADERS.iter().any(|header| header.name.eq_ignore_ascii_case(name));
            let in_place = (is_page && PAGES.contains(&&**name))
                || (method == "OPTIONS" && PREFLIGHT.contains(&&**name));
            let listed = documented || TRANSPORT.contains(&&**name) || in_place;
            assert!(listed, "{method} {target}: {name} is not on the list of headers");
            let is_catalog = path == "/.well-known/api-catalog" && name == "link";
            assert!(self.sends.allows(name) || is_catalog, "{method} {target}: {name} is not configured");
        }
        let varies = response.header("vary").ends_with("Origin");
        assert_eq!(varies, self.sends.varies_by_origin, "{method} {target}: {}", response.header("vary"));
        let known = scoregate::routes::find(path).is_none_or(|found| found.endpoint.stored);
        let stored = known && !is_page && method != "OPTIONS";
        for header in &HEADERS {
            let has_body = response.status != 204 && response.status != 304;
            let is_body = matches!(header.on, scoregate::routes::headers::HeaderScope::Body);
            if is_page || (is_body && !has_body) || !header.on.covers(response.status, stored) {
                continue;
            }
            let value = response.header(&header.name.to_lowercase());
            assert!(
                !value.is_empty() || !header.always,
                "{method} {target} {}: no {}",
                response.status,
                header.name
            );
            let fits = value.is_empty() || self.patterns[header.name].is_valid(&value.into());
            assert!(fits, "{method} {target}: {} is {value}", header.name);
        }
        let is_json = response.header("content-type") == "application/json"
            && response.header("content-encoding").is_empty();
        // Limited pages are not described: they have no `limit`, because theirs is of bytes.
        let is_limited_page = pages.contains(&path) && response.status == 429;
        if is_json && !response.body.is_empty() && !is_page && !is_limited_page {
            self.check_body(path, response);
        }
    }

    fn check_body(&self, path: &str, response: &Response) {
        let template = scoregate::routes::find(path).map(|found| found.endpoint.documented_path());
        // Responses without an endpoint are checked against the errors of any.
        let template = template.unwrap_or_else(|| "/api/v1/models".into());
        let key = (template.trim_start_matches("/api/v1").to_owned(), response.status);
        if let Some(validator) = self.bodies.get(&key) {
            let body = response.json();
            let errors: Vec<String> = validator.iter_errors(&body).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{path} {}: {errors:?} in {body}", response.status);
        } else {
            assert!(matches!(response.status, 404 | 405), "{path}: {} is not described", response.status);
        }
    }
}

impl Rules {
    /// The rules of this API description. Compiling schemas is slow, so each is compiled once for all tests.
    pub fn of(description: &[u8], sends: OptionalHeaders) -> Arc<Self> {
        static COMPILED: Mutex<Vec<(Vec<u8>, Arc<Rules>)>> = Mutex::new(Vec::new());
        let mut compiled = COMPILED.lock();
        let is_of = |(body, rules): &&(Vec<u8>, Arc<Rules>)| *body == description && rules.sends == sends;
        if let Some((_, rules)) = compiled.iter().find(is_of) {
            return Arc::clone(rules);
        }
        let rules = Arc::new(Self::new(&serde_json::from_slice(description).unwrap(), sends));
        compiled.push((description.to_owned(), Arc::clone(&rules)));
        rules
    }
}

fn follow<'d>(description: &'d Json, node: &'d Json) -> &'d Json {
    match node["$ref"].as_str() {
        Some(reference) => description.pointer(reference.trim_start_matches('#')).unwrap(),
        None => node,
    }
}
