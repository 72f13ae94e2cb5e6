//! The span of a fetch: a child of the span of the request that started it.

use http::Uri;

use crate::{
    instruments::FetchEnd,
    upstream::{UpstreamFailure, UpstreamResponse},
};
use scoregate_base::{clock::Now, routes::DocumentKey};
use scoregate_observe::traces::{OpenSpan, RequestSpan, TracedSpanKind};

/// Starts the span. `backend` is the address of the backend. The built-in backend has no URL.
pub fn begin(request: &RequestSpan, key: &DocumentKey, backend: &str, started: Now) -> OpenSpan {
    let is_remote = backend.contains("://");
    let mut span = if is_remote {
        request.child("GET", TracedSpanKind::Client, started)
    } else {
        request.child("fetch", TracedSpanKind::Internal, started)
    };
    span.set("scoregate.document", key.address());
    if is_remote {
        span.set("http.request.method", "GET");
    }
    // If there are several addresses, it is not known which one responded.
    if let Ok(uri) = backend.parse::<Uri>()
        && let Some(host) = uri.host().filter(|_| is_remote)
    {
        let is_tls = uri.scheme_str() == Some("https");
        span.set("server.address", host.trim_matches(['[', ']']).to_owned());
        span.set(
            "server.port",
            uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 }),
        );
    }
    span
}

/// The status of a response, if it is known.
pub fn status(fetched: &Result<UpstreamResponse, UpstreamFailure>) -> Option<u16> {
    match fetched {
        Ok(UpstreamResponse::Content { .. } | UpstreamResponse::Nothing { .. }) => Some(200),
        Ok(UpstreamResponse::Unchanged { .. }) => Some(304),
        Ok(UpstreamResponse::IdRejected) => Some(400),
        Err(UpstreamFailure::ErrorStatus { status, .. }) => Some(*status),
        Ok(UpstreamResponse::NoSuchModel)
        | Err(
            UpstreamFailure::Unreachable(_)
            | UpstreamFailure::Timeout(_)
            | UpstreamFailure::Invalid(_)
            | UpstreamFailure::CircuitOpen(_)
            | UpstreamFailure::QueueFull,
        ) => None,
    }
}

/// Ends the span at the end of the response.
pub fn end(mut span: OpenSpan, status: Option<u16>, end: FetchEnd, waiters: usize, ended: Now) {
    if let Some(status) = status {
        span.set("http.response.status_code", status);
    }
    span.set("scoregate.result", end.word());
    span.set(
        "scoregate.waiters",
        u16::try_from(waiters).unwrap_or(u16::MAX),
    );
    match end {
        FetchEnd::Success | FetchEnd::NotFound => {}
        FetchEnd::Unreachable
        | FetchEnd::ErrorStatus
        | FetchEnd::Timeout
        | FetchEnd::Invalid
        | FetchEnd::CircuitOpen
        | FetchEnd::QueueFull => span.fail(end.word()),
    }
    span.end_at(ended.mono);
}
