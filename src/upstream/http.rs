//! A backend over the network, with pooled connections, a timeout for each step and a limit on the bytes read. A
//! request is a canonical GET with at most six generated headers. Encoded bodies are rejected, so that a small response
//! cannot expand into a large body. `mapping` defines paths and shapes.

use std::{error::Error, io, net::SocketAddr, ops::ControlFlow, sync::Arc, time::Duration};

use ::http::{
    header::{
        ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE,
        ETAG, HeaderMap, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, RETRY_AFTER,
        TRANSFER_ENCODING, USER_AGENT,
    },
    {HeaderName, HeaderValue, Request, Response, StatusCode},
};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Collected, Empty, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::{CaptureConnection, Connected, capture_connection};

use crate::cache::Validators;
use scoregate_base::{
    clock::{Clock, Mono, Wall},
    routes::DocumentKey,
};
use scoregate_observe::telemetry::trace::{TRACEPARENT, TraceContext};

use super::{
    Upstream, UpstreamFailure, UpstreamFuture, UpstreamRequest, UpstreamResponse,
    connections::Connections,
    http_config::{BadUpstreamUrl, HttpConfig},
    mapping::{EndpointMapping, NotFound, ResponseInfo},
    tls::BackendTls,
    tls_problem::tls_problem,
};

pub const TOO_MANY_INTERIM: &str = "too many interim responses";

/// A backend over the network.
#[derive(Debug)]
pub struct HttpUpstream {
    connections: Connections,
    config: HttpConfig,
    /// The origin of this address's validators. Validators with another origin are not sent to this address.
    origin: Option<Arc<str>>,
    clock: Clock,
}

impl HttpUpstream {
    /// Validates the address and prepares the pool. Does not connect.
    pub fn new(config: HttpConfig, tls: &BackendTls, clock: Clock) -> Result<Self, BadUpstreamUrl> {
        let mut config = config;
        config
            .base
            .truncate(config.base.trim_end_matches('/').len());
        config.check()?;
        Ok(Self {
            connections: Connections::new(config.connect, config.idle, tls),
            origin: config.origin(),
            config,
            clock,
        })
    }

    /// Closes idle connections if the host is a name, so that new connections use the addresses to which the name now
    /// resolves.
    pub fn close_idle(&self) {
        if self.config.name().parse::<SocketAddr>().is_err() {
            self.connections.close_idle();
        }
    }

    /// Changes the TLS settings of new connections.
    pub fn renew_tls(&self, tls: &BackendTls) {
        self.connections.renew(tls);
    }

    async fn fetch_document(
        &self,
        request: UpstreamRequest<'_>,
    ) -> Result<UpstreamResponse, UpstreamFailure> {
        let known = self.own_validators(request.known);
        let key = request.key;
        let started = self.clock.now().mono;
        let mapped = self.config.mapping.endpoints.get(&key.route);
        let mapped = mapped.ok_or_else(|| {
            UpstreamFailure::Invalid(format!("the mapping has no document {key}"))
        })?;
        let mut request = self.request(UpstreamRequest { known, ..request }, mapped)?;
        let connection = capture_connection(&mut request);
        let response = self.send(request, started).await?;
        let head = self.info(response.headers());
        let is_conditional = known.is_some_and(Validators::allows_conditional_requests);
        if response.status() == StatusCode::NOT_MODIFIED && is_conditional {
            let next_refresh = head.next_refresh;
            return Ok(UpstreamResponse::Unchanged { next_refresh });
        }
        let refused = match by_status(&response, key, mapped) {
            ControlFlow::Break(result) => return result,
            ControlFlow::Continue(refused) => refused,
        };
        let read = self
            .clock
            .until(started.plus(self.config.total), self.read(response))
            .await;
        // The end of an unreadable response is unknown, so its connection cannot be reused.
        let body = read
            .map_err(|_| UpstreamFailure::Timeout("complete its response"))?
            .inspect_err(|_| poison(&connection))?;
        match refused {
            Some(_) if mapped.reports_missing_model(&body) => Ok(UpstreamResponse::NoSuchModel),
            Some(refused) => Err(refused),
            None => mapped
                .read(key, &body, head)
                .map_err(UpstreamFailure::Invalid),
        }
    }

    /// Sends a request and waits for the response head.
    async fn send(
        &self,
        request: Request<Empty<Bytes>>,
        started: Mono,
    ) -> Result<Response<Incoming>, UpstreamFailure> {
        let sent = self.connections.send(request);
        let head = self
            .clock
            .until(started.plus(self.config.first_byte), sent)
            .await;
        head.map_err(|_| UpstreamFailure::Timeout("start its response"))?
            .ok_or_else(|| UpstreamFailure::Invalid(TOO_MANY_INTERIM.into()))?
            .map_err(|error| broken(&error))
    }

    /// The fields of a response that describe its data.
    fn info(&self, headers: &HeaderMap) -> ResponseInfo {
        let now = self.clock.now().wall;
        let last_modified = headers.get(LAST_MODIFIED).cloned();
        let dated = last_modified
            .as_ref()
            .and_then(|date| Wall::parse_http_date(date.to_str().ok()?));
        ResponseInfo {
            source: Validators {
                etag: headers.get(ETAG).cloned(),
                last_modified,
                origin: self.origin.clone(),
            },
            dated,
            next_refresh: next_refresh(headers, now),
            now,
        }
    }

    fn request(
        &self,
        UpstreamRequest { key, known, trace }: UpstreamRequest<'_>,
        mapped: &EndpointMapping,
    ) -> Result<Request<Empty<Bytes>>, UpstreamFailure> {
        let no_request = |why: &str| {
            UpstreamFailure::Invalid(format!("no request can be built for {key}: {why}"))
        };
        let url = self
            .url(key, mapped)
            .ok_or_else(|| no_request("a parameter of the path has no value"))?;
        let mut request = Request::get(url)
            .body(Empty::new())
            .map_err(|error| no_request(&error.to_string()))?;
        let headers = request.headers_mut();
        self.add_headers(headers);
        headers.extend(condition(known));
        // `tracestate` is not sent, because it is text from a client.
        if let Some(child) = trace.and_then(TraceContext::child) {
            headers.insert(TRACEPARENT, child);
        }
        Ok(request)
    }

    fn url(&self, key: &DocumentKey, mapped: &EndpointMapping) -> Option<String> {
        Some(format!("{}{}", self.config.base, mapped.target(key)?))
    }

    /// The validators that came from this address.
    fn own_validators<'k>(&self, known: Option<&'k Validators>) -> Option<&'k Validators> {
        known.filter(|known| known.origin == self.origin)
    }

    /// The headers of every request.
    fn add_headers(&self, headers: &mut HeaderMap) {
        headers.extend(self.config.headers.clone());
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("scoregate/", env!("CARGO_PKG_VERSION"))),
        );
        // A credential without control characters is a valid header value, and credentials from files contain none.
        if let Ok(Some(credential)) = self.config.credential_value() {
            headers.insert(self.config.credential_header.clone(), credential);
        }
    }

    /// Reads a body whose end is declared, up to the size limit.
    async fn read(&self, response: Response<Incoming>) -> Result<Bytes, UpstreamFailure> {
        if response.headers().contains_key(CONTENT_ENCODING) {
            return Err(UpstreamFailure::Invalid(
                "the body is encoded, although identity was requested".into(),
            ));
        }
        if !has_unambiguous_length(response.headers()) {
            return Err(UpstreamFailure::Invalid(
                "its length is unknown or ambiguous".into(),
            ));
        }
        let body = response.into_body();
        let declared = http_body::Body::size_hint(&body).exact();
        if declared.is_some_and(|bytes| bytes > self.config.max_bytes as u64) {
            return Err(self.too_large());
        }
        let body = Limited::new(body, self.config.max_bytes).collect().await;
        body.map(Collected::to_bytes).map_err(|error| {
            if error.is::<LengthLimitError>() {
                self.too_large()
            } else {
                UpstreamFailure::Invalid(format!("the body was truncated: {error}"))
            }
        })
    }

    fn too_large(&self) -> UpstreamFailure {
        let most = self.config.max_bytes;
        UpstreamFailure::Invalid(format!("the body is larger than {most} bytes"))
    }
}

impl Upstream for HttpUpstream {
    fn address(&self) -> String {
        self.config.base.clone()
    }

    fn name(&self) -> Arc<str> {
        self.config.name()
    }

    fn fetch<'a>(&'a self, request: UpstreamRequest<'a>) -> UpstreamFuture<'a> {
        Box::pin(self.fetch_document(request))
    }

    fn question(&self, UpstreamRequest { key, known, .. }: UpstreamRequest<'_>) -> Vec<String> {
        let mapped = self.config.mapping.endpoints.get(&key.route);
        let url = mapped
            .and_then(|mapped| self.url(key, mapped))
            .map(|url| format!("GET {url}"));
        let condition = condition(self.own_validators(known));
        let condition = condition
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap_or_default()));
        url.into_iter().chain(condition).collect()
    }

    fn lists_all_models(&self) -> bool {
        self.config.mapping.lists_all_models
    }

    fn may_have(&self, key: &DocumentKey) -> bool {
        self.config.mapping.may_have(key)
    }

    fn retries(&self) -> u64 {
        self.connections.retries()
    }
}

/// The header field that makes a request conditional on these validators.
fn condition(known: Option<&Validators>) -> Option<(HeaderName, HeaderValue)> {
    let Validators {
        etag,
        last_modified,
        ..
    } = known?;
    let by_tag = etag.clone().map(|etag| (IF_NONE_MATCH, etag));
    by_tag.or_else(|| last_modified.clone().map(|date| (IF_MODIFIED_SINCE, date)))
}

/// Excludes a connection from reuse.
fn poison(connection: &CaptureConnection) {
    if let Some(connected) = connection.connection_metadata().as_ref() {
        Connected::poison(connected);
    }
}

/// The failure of a request that did not get a response head.
fn broken(error: &(dyn Error + 'static)) -> UpstreamFailure {
    if let Some(problem) = tls_problem(error) {
        return UpstreamFailure::Unreachable(problem);
    }
    let mut reasons = Vec::new();
    for cause in std::iter::successors(Some(error), |&cause| cause.source()) {
        let io = cause.downcast_ref::<io::Error>();
        if io.is_some_and(|io| io.kind() == io::ErrorKind::TimedOut) {
            return UpstreamFailure::Timeout("accept a connection");
        }
        if cause
            .downcast_ref::<hyper::Error>()
            .is_some_and(hyper::Error::is_parse)
        {
            return UpstreamFailure::Invalid(format!("the response head is invalid: {cause}"));
        }
        reasons.push(cause.to_string());
    }
    UpstreamFailure::Unreachable(reasons.join(": "))
}

/// The result, if it depends only on the status. Otherwise the body is needed, because it contains the data or may
/// state that the model does not exist.
fn by_status(
    response: &Response<Incoming>,
    key: &DocumentKey,
    mapped: &EndpointMapping,
) -> ControlFlow<Result<UpstreamResponse, UpstreamFailure>, Option<UpstreamFailure>> {
    let headers = response.headers();
    let is_its_own = is_json(headers);
    match response.status() {
        StatusCode::OK => ControlFlow::Continue(None),
        StatusCode::NOT_FOUND if is_its_own && mapped.supports(NotFound::Status) => {
            ControlFlow::Break(Ok(UpstreamResponse::NoSuchModel))
        }
        StatusCode::BAD_REQUEST if is_its_own && key.id.is_some() => {
            ControlFlow::Break(Ok(UpstreamResponse::IdRejected))
        }
        refused @ StatusCode::NOT_FOUND if is_its_own && mapped.supports(NotFound::Error) => {
            ControlFlow::Continue(Some(refusal(refused, headers)))
        }
        refused => ControlFlow::Break(Err(refusal(refused, headers))),
    }
}

/// Whether a response is from the backend itself: it is JSON, or has no type. An HTML page is from a proxy and says
/// nothing about models.
fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let essence = media_type.split(';').next().unwrap_or("").trim();
    ["", "application/json", "application/problem+json"]
        .iter()
        .any(|known| essence.eq_ignore_ascii_case(known))
}

/// Whether all parsers agree on the end of the body, because the body has either a length or chunks. A body that ends
/// with its connection cannot be distinguished from a truncated body.
fn has_unambiguous_length(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (
        headers.contains_key(CONTENT_LENGTH),
        codings.next(),
        codings.next(),
    ) {
        (has_length, None, _) => has_length,
        (false, Some(coding), None) => coding.as_bytes().eq_ignore_ascii_case(b"chunked"),
        (_, Some(_), _) => false,
    }
}

fn refusal(status: StatusCode, headers: &HeaderMap) -> UpstreamFailure {
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        let seconds = headers
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse().ok());
        // An implausibly long `Retry-After` is limited.
        let retry_after = seconds.map(|seconds: u64| Duration::from_secs(seconds.min(3_600)));
        UpstreamFailure::ErrorStatus {
            status: status.as_u16(),
            retry_after,
        }
    } else {
        UpstreamFailure::Invalid(format!("unexpected status {}", status.as_u16()))
    }
}

/// When the response will change, according to `Cache-Control: max-age`.
fn next_refresh(headers: &HeaderMap, now: Wall) -> Option<Wall> {
    let directives = headers
        .get_all(CACHE_CONTROL)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let max_age = directives
        .flat_map(|value| value.split(','))
        .find_map(|directive| {
            directive
                .trim()
                .strip_prefix("max-age=")?
                .trim_matches('"')
                .parse::<u64>()
                .ok()
        })?;
    (max_age > 0).then(|| now.plus(Duration::from_secs(max_age.min(7 * 86_400))))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_util::task::TaskTracker;

    use crate::upstream::{BackendTlsSettings, Mapping};

    use super::*;

    /// An upstream with this base address and the canonical mapping.
    fn upstream_at(base: &str, clock: &Clock) -> HttpUpstream {
        let second = Duration::from_secs(1);
        let config = HttpConfig {
            base: base.into(),
            credential: None,
            credential_header: ::http::header::AUTHORIZATION,
            headers: HeaderMap::new(),
            connect: second,
            first_byte: second,
            total: second,
            max_bytes: 1024,
            idle: 60 * second,
            tls: BackendTlsSettings::default(),
            mapping: Mapping::default(),
            more: Vec::new(),
        };
        let tls = config.tls.load(clock).unwrap();
        HttpUpstream::new(config, &tls, clock.clone()).unwrap()
    }

    #[tokio::test]
    async fn a_request_after_idle_connections_were_closed_opens_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, accepted) = tokio::sync::watch::channel(0);
        let tasks = TaskTracker::new();
        tasks.clone().spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                sender.send_modify(|accepted| *accepted += 1);
                tasks.spawn(async move {
                    let mut buffer = [0; 4096];
                    while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                        let response = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
                        stream.write_all(response).await.unwrap();
                    }
                });
            }
        });
        let (clock, _) = Clock::manual(Wall::from_seconds(1_000_000));
        let address = upstream_at(&format!("http://localhost:{port}"), &clock);
        let key = DocumentKey::list_of_models();
        let request = UpstreamRequest {
            key: &key,
            known: None,
            trace: None,
        };
        for _ in 0..2 {
            drop(address.fetch(request).await);
        }
        assert_eq!(*accepted.borrow(), 1, "the connection is used again");
        address.close_idle();
        drop(address.fetch(request).await);
        assert_eq!(*accepted.borrow(), 2);
    }
}
