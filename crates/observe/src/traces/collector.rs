//! The client of the collector.

use std::time::Duration;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Request, StatusCode, Uri,
    header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT},
};
use http_body_util::{BodyExt as _, Collected, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};

use scoregate_base::clock::Clock;

use crate::interim::with_few_interim;

use super::otlp::{ExportReply, export_reply};

/// Maximum size of a response that is read.
const MAX_REPLY: usize = 64 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Idle timeout of connections. It is shorter than the idle timeout of common collectors.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// Upper limit for `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);

/// The URL that spans are sent to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorEndpoint(Uri);

/// The reason why a URL cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadEndpoint {
    /// The string is not the URL of a collector.
    #[error(
        "write the URL of a collector on this machine or network, such as \"http://127.0.0.1:4318/v1/traces\""
    )]
    Invalid,
    /// The URL requires TLS.
    #[error(
        "spans are sent over http only; write the http address of a collector on this machine, which forwards over https"
    )]
    Https,
    /// The URL has credentials or a query, which would be repeated in the log.
    #[error(
        "write the URL without credentials, query or fragment; a collector on this machine can add credentials"
    )]
    Credentials,
}

/// Sends spans to a collector.
#[derive(Debug)]
pub struct Collector {
    endpoint: CollectorEndpoint,
    client: Client<HttpConnector, Full<Bytes>>,
}

/// The reason why spans were not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExportFailure {
    /// The same request may succeed later.
    Temporary {
        reason: String,
        retry_after: Option<Duration>,
    },
    /// The same request would fail again.
    Permanent(String),
}

impl CollectorEndpoint {
    /// Checks a URL.
    pub fn parse(text: &str) -> Result<Self, BadEndpoint> {
        if text.contains(['@', '?', '#']) {
            return Err(BadEndpoint::Credentials);
        }
        let uri: Uri = text.parse().map_err(|_| BadEndpoint::Invalid)?;
        match uri.scheme_str() {
            Some("http") if uri.host().is_some_and(|host| !host.is_empty()) => Ok(Self(uri)),
            Some("https") => Err(BadEndpoint::Https),
            Some(_) | None => Err(BadEndpoint::Invalid),
        }
    }
}

impl Collector {
    /// A client of a collector. It does not connect yet.
    pub fn new(endpoint: CollectorEndpoint) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            // The exporter sends one request at a time.
            .pool_max_idle_per_host(1);
        Self {
            endpoint,
            client: builder.build(tcp),
        }
    }

    /// The URL of the collector.
    pub fn address(&self) -> String {
        self.endpoint.0.to_string()
    }

    /// Sends a request with spans. Returns within the timeout, regardless of what the collector sends.
    pub async fn export(&self, body: Bytes, clock: &Clock) -> Result<ExportReply, ExportFailure> {
        let deadline = clock.mono().plus(TIMEOUT);
        let request = self.request(body)?;
        let sending = with_few_interim(request, |request| self.client.request(request));
        let sent = clock.until(deadline, sending).await;
        let sent = sent.map_err(|_| temporary("it did not respond in time".into()))?;
        let sent = sent.ok_or_else(|| temporary("too many interim responses".into()))?;
        let response = sent.map_err(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            temporary(cause.unwrap_or_else(|| error.to_string()))
        })?;
        let status = response.status();
        let retry_after = retry_after(response.headers());
        // The body is read to the end, so that the connection can be used again.
        let body = Limited::new(response.into_body(), MAX_REPLY).collect();
        let body = clock.until(deadline, body).await;
        if status.is_success() {
            // Accepted spans must not be sent twice, even if the body is late or invalid.
            let body = body.ok().and_then(Result::ok).map(Collected::to_bytes);
            return Ok(export_reply(&body.unwrap_or_default()));
        }
        Err(failure(status, retry_after))
    }

    fn request(&self, body: Bytes) -> Result<Request<Full<Bytes>>, ExportFailure> {
        let mut request = Request::post(self.endpoint.0.clone())
            .body(Full::new(body))
            .map_err(|error| ExportFailure::Permanent(error.to_string()))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("scoregate/", env!("CARGO_PKG_VERSION"))),
        );
        Ok(request)
    }
}

const fn temporary(reason: String) -> ExportFailure {
    ExportFailure::Temporary {
        reason,
        retry_after: None,
    }
}

/// The failure for a status other than success.
fn failure(status: StatusCode, retry_after: Option<Duration>) -> ExportFailure {
    let reason = format!("status {}", status.as_u16());
    match status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => ExportFailure::Temporary {
            reason,
            retry_after,
        },
        _ => ExportFailure::Permanent(reason),
    }
}

/// The `Retry-After` header in seconds. A date is ignored, because clocks differ.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()?;
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_urls_without_credentials_are_endpoints() {
        for good in [
            "http://127.0.0.1:4318/v1/traces",
            "http://collector/",
            "http://[::1]:4318/custom",
        ] {
            assert!(CollectorEndpoint::parse(good).is_ok(), "{good}");
        }
        for (bad, why) in [
            ("", BadEndpoint::Invalid),
            ("127.0.0.1:4318", BadEndpoint::Invalid),
            ("/v1/traces", BadEndpoint::Invalid),
            ("ftp://collector/", BadEndpoint::Invalid),
            ("grpc://collector:4317", BadEndpoint::Invalid),
            ("https://collector/v1/traces", BadEndpoint::Https),
            ("http://user:password@collector/", BadEndpoint::Credentials),
            ("http://collector/?token=1", BadEndpoint::Credentials),
        ] {
            assert_eq!(CollectorEndpoint::parse(bad), Err(why), "{bad}");
        }
    }
}
