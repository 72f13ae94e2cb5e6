//! Stage 1: checks the size, syntax, framing, host and method of a request.
//!
//! The checks are stricter than the HTTP codec. Invalid requests are refused, never corrected.

use http::{
    Method, Version,
    header::{CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING, USER_AGENT},
    request::Parts,
};

use crate::gateway::{
    HttpViolation, Refusal,
    request::{
        credentials::Credentials,
        host::{is_host, is_same_host},
        request_headers::RequestHeaders,
    },
};

/// Maximum length of a request target, which is the path and the query.
pub const MAX_TARGET: usize = 2_048;
/// Maximum size of a request head, from the method to the empty line.
pub const MAX_HEAD: usize = 16_384;
/// Maximum number of header fields.
pub const MAX_HEADERS: usize = 64;

pub struct ReceivedRequest<'r> {
    pub(crate) head: &'r Parts,
    pub(crate) headers: RequestHeaders<'r>,
    pub(crate) has_body: bool,
    pub(crate) credentials: Credentials<'r>,
    /// The target of a tool call. The head of the call is already checked.
    pub(crate) called: Option<&'r str>,
}

impl<'r> ReceivedRequest<'r> {
    pub(crate) fn new(head: &'r Parts, has_body: bool) -> Self {
        let headers = RequestHeaders::new(&head.headers);
        Self {
            head,
            headers,
            has_body,
            credentials: Credentials::new(headers),
            called: None,
        }
    }

    /// Creates the request for a tool call, which is equivalent to a GET of `target`.
    pub(crate) fn of_tool(head: &'r Parts, target: &'r str) -> Self {
        Self {
            called: Some(target),
            ..Self::new(head, false)
        }
    }
}

/// A request with valid size, syntax and method.
#[derive(Debug)]
pub struct ParsedRequest<'r> {
    pub(crate) head: &'r Parts,
    /// Path and query, as received.
    pub(crate) target: &'r str,
    /// As received.
    pub(crate) path: &'r str,
    /// As received.
    pub(crate) query: Option<&'r str>,
    pub(crate) headers: RequestHeaders<'r>,
    pub(crate) credentials: Credentials<'r>,
    pub(crate) method: MethodKind,
    /// Whether the request is a tool call. The response to a tool call is neither encoded nor a 304.
    pub(crate) is_tool_call: bool,
}

impl ParsedRequest<'_> {
    /// The value of `User-Agent`.
    pub(crate) fn agent(&self) -> Option<&HeaderValue> {
        self.headers.map().get(USER_AGENT)
    }
}

/// The kind of answer that the method requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// A response, with a body (GET) or without (HEAD).
    Answer,
    /// The allowed methods.
    Options,
}

/// Checks the size and the syntax of a request, and then the method.
pub fn parse(request: ReceivedRequest<'_>) -> Result<ParsedRequest<'_>, Refusal> {
    if let Some(target) = request.called {
        return call(request, target);
    }
    let ReceivedRequest {
        head,
        headers,
        has_body,
        credentials,
        ..
    } = request;
    let target = limited_target(head, headers)?;
    framing(headers, has_body)?;
    let is_connect = head.method == Method::CONNECT;
    if !is_connect {
        valid_form(head, target)?;
    }
    one_host(head, headers, is_connect)?;
    let method = match head.method {
        Method::GET | Method::HEAD => MethodKind::Answer,
        Method::OPTIONS => MethodKind::Options,
        Method::CONNECT => return Err(Refusal::TunnelRefused),
        _ => return Err(Refusal::MethodNotAllowed),
    };
    Ok(ParsedRequest {
        head,
        target,
        path: head.uri.path(),
        query: head.uri.query(),
        headers,
        credentials,
        method,
        is_tool_call: false,
    })
}

/// The request that corresponds to a tool call.
fn call<'r>(request: ReceivedRequest<'r>, target: &'r str) -> Result<ParsedRequest<'r>, Refusal> {
    if target.len() > MAX_TARGET {
        return Err(Refusal::UriTooLong);
    }
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    Ok(ParsedRequest {
        head: request.head,
        target,
        path,
        query,
        headers: request.headers,
        credentials: request.credentials,
        method: MethodKind::Answer,
        is_tool_call: true,
    })
}

/// Whether the size and syntax of a head are valid. Only a POST may have a body, and it must not have
/// `Transfer-Encoding`, because the codec hides a `Content-Length` that is sent together with it.
pub fn is_well_formed(head: &Parts, has_body: bool) -> bool {
    let headers = RequestHeaders::new(&head.headers);
    let is_connect = head.method == Method::CONNECT;
    let is_framed = match head.method {
        Method::POST => !headers.has(&TRANSFER_ENCODING),
        _ => framing(headers, has_body).is_ok(),
    };
    if is_connect || !is_framed {
        return false;
    }
    limited_target(head, headers).is_ok_and(|target| {
        valid_form(head, target).is_ok() && one_host(head, headers, false).is_ok()
    })
}

/// The request target, if the target and the head are not too large.
fn limited_target<'h>(head: &'h Parts, headers: RequestHeaders<'_>) -> Result<&'h str, Refusal> {
    let target = head
        .uri
        .path_and_query()
        .map_or("", |target| target.as_str());
    if target.len() > MAX_TARGET {
        return Err(Refusal::UriTooLong);
    }
    if headers.map().len() > MAX_HEADERS || head_size(head, headers, target) > MAX_HEAD {
        return Err(Refusal::HeadersTooLarge);
    }
    Ok(target)
}

/// Size of the head in HTTP/1.1 format.
fn head_size(head: &Parts, headers: RequestHeaders<'_>, target: &str) -> usize {
    head.method.as_str().len() + target.len() + "  HTTP/1.1\r\n\r\n".len() + headers.size()
}

/// Rejects a body, and every header that could hide a body.
fn framing(headers: RequestHeaders<'_>, has_body: bool) -> Result<(), Refusal> {
    let no_length = match headers.first_two(&CONTENT_LENGTH) {
        [None, _] => true,
        [Some(length), None] => length == "0",
        [Some(_), Some(_)] => false,
    };
    if has_body || !no_length || headers.has(&TRANSFER_ENCODING) {
        return Err(Refusal::BadRequest(HttpViolation::Body));
    }
    Ok(())
}

/// Requires a path on this server, in ASCII. HTTP/1 also allows an `http` or `https` URL (RFC 9112, 3.2.2), whose
/// authority is compared with `Host` later; only the path and the query of the URL are used. OPTIONS also allows an
/// asterisk.
fn valid_form(head: &Parts, target: &str) -> Result<(), Refusal> {
    let is_asterisk = head.method == Method::OPTIONS && target == "*";
    let is_valid = match (head.uri.scheme_str(), head.uri.authority()) {
        (None, None) => target.starts_with('/') || is_asterisk,
        // On HTTP/2 the scheme and the authority are separate fields.
        _ if head.version >= Version::HTTP_2 => target.starts_with('/') || is_asterisk,
        // The path of a URL may be empty.
        (Some("http" | "https"), Some(_)) => target.starts_with(['/', '?']),
        _ => false,
    };
    if is_valid && target.is_ascii() {
        Ok(())
    } else {
        Err(Refusal::BadRequest(HttpViolation::Target))
    }
}

/// Requires exactly one valid Host on HTTP/1.1, and an authority or a Host on HTTP/2. If both are present, they must be
/// equal.
fn one_host(head: &Parts, headers: RequestHeaders<'_>, is_connect: bool) -> Result<(), Refusal> {
    let [first, second] = headers.host;
    let authority = head
        .uri
        .authority()
        .filter(|_| !is_connect)
        .map(http::uri::Authority::as_str);
    let is_http2 = head.version >= Version::HTTP_2;
    let agreed = match (first, authority) {
        (Some(host), Some(authority)) => {
            is_host(host.as_bytes())
                && is_same_host(host.as_bytes(), authority, head.uri.scheme_str())
        }
        (Some(host), None) => is_host(host.as_bytes()),
        (None, Some(authority)) => is_http2 && is_host(authority.as_bytes()),
        // On HTTP/2 the target of CONNECT is its authority.
        (None, None) => head.version <= Version::HTTP_10 || (is_connect && is_http2),
    };
    if second.is_some() || !agreed {
        Err(Refusal::BadRequest(HttpViolation::Host))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn method_kind(head: &Parts) -> Result<MethodKind, Refusal> {
        parse(ReceivedRequest::new(head, false)).map(|parsed| parsed.method)
    }

    fn parsed(
        build: impl FnOnce(http::request::Builder) -> http::request::Builder,
    ) -> Result<MethodKind, Refusal> {
        let builder = build(
            Request::builder()
                .uri("/x")
                .header("host", "localhost:8080"),
        );
        let (head, ()) = builder.body(()).unwrap().into_parts();
        method_kind(&head)
    }

    #[test]
    fn a_call_of_a_tool_stands_for_a_get_of_its_target() {
        let called = |target: &str| {
            let request = Request::post("/mcp")
                .header("content-length", "9")
                .header("host", "a");
            let (head, ()) = request.body(()).unwrap().into_parts();
            let headers = RequestHeaders::new(&head.headers);
            let credentials = Credentials::new(headers);
            let call = ReceivedRequest {
                head: &head,
                headers,
                has_body: false,
                credentials,
                called: Some(target),
            };
            parse(call).map(|parsed| {
                assert!(
                    parsed.is_tool_call
                        && parsed.method == MethodKind::Answer
                        && parsed.target == target
                );
                (parsed.path.to_owned(), parsed.query.map(str::to_owned))
            })
        };
        assert_eq!(called("/x/y"), Ok(("/x/y".into(), None)));
        assert_eq!(
            called("/x?a=1&b=?"),
            Ok(("/x".into(), Some("a=1&b=?".into())))
        );
        assert!(called(&"x".repeat(MAX_TARGET)).is_ok());
        assert_eq!(
            called(&"x".repeat(MAX_TARGET + 1)),
            Err(Refusal::UriTooLong)
        );
    }

    #[test]
    fn the_size_is_checked_before_the_syntax_and_the_syntax_before_the_method() {
        let long = format!("/{}", "x".repeat(MAX_TARGET));
        assert_eq!(
            parsed(|request| request
                .uri(long)
                .header("content-length", "5")
                .method("PUT")),
            Err(Refusal::UriTooLong)
        );
        let fat = "x".repeat(MAX_HEAD);
        assert_eq!(
            parsed(|request| request.header("cookie", fat).method("PUT")),
            Err(Refusal::HeadersTooLarge)
        );
        assert_eq!(
            parsed(|request| request.uri("ftp://other/x").method("PUT")),
            Err(Refusal::BadRequest(HttpViolation::Target))
        );
        assert_eq!(
            parsed(|request| request.method("PUT")),
            Err(Refusal::MethodNotAllowed)
        );
        assert_eq!(
            parsed(|request| request.uri("host:443").method("CONNECT")),
            Err(Refusal::TunnelRefused)
        );
    }

    #[test]
    fn a_url_is_accepted_if_its_authority_is_the_host() {
        let of = |target: &str, host: &'static str, method: &str| {
            let request = Request::builder()
                .uri(target)
                .header("host", host)
                .method(method);
            method_kind(&request.body(()).unwrap().into_parts().0)
        };
        for (target, host) in [
            ("http://a/x", "a"),
            ("https://a/x?y", "a"),
            ("HTTP://A/x", "a"),
            ("http://a", "A"),
            ("http://a?x", "a"),
            ("http://a:80/", "a"),
            ("http://a/", "a:80"),
            ("http://a:/", "a"),
            ("https://a:443/", "a"),
            ("http://[::1]/", "[::1]:80"),
            ("http://[2001:DB8::1]:81/", "[2001:db8::1]:81"),
        ] {
            assert_eq!(
                of(target, host, "GET"),
                Ok(MethodKind::Answer),
                "{target} {host}"
            );
            assert_eq!(
                of(target, host, "OPTIONS"),
                Ok(MethodKind::Options),
                "{target} {host}"
            );
            assert_eq!(
                of(target, host, "PUT"),
                Err(Refusal::MethodNotAllowed),
                "{target} {host}"
            );
        }
        for (target, host) in [
            ("http://a/x", "b"),
            ("http://a:443/", "a"),
            ("https://a:80/", "a"),
            ("https://a/", "a:80"),
            ("http://a:81/", "a"),
            ("http://a/", "a:81"),
            ("http://u@a/", "a"),
            ("http://u:p@a/", "u:p@a"),
            ("http://a./", "a"),
            ("http://[::1]/", "[::2]"),
        ] {
            for method in ["GET", "PUT", "OPTIONS"] {
                let host_violation = Err(Refusal::BadRequest(HttpViolation::Host));
                assert_eq!(
                    of(target, host, method),
                    host_violation,
                    "{method} {target} {host}"
                );
            }
        }
        for target in ["ws://a/x", "ftp://a", "a:80", "a"] {
            let target_violation = Err(Refusal::BadRequest(HttpViolation::Target));
            assert_eq!(of(target, "a", "GET"), target_violation, "{target}");
        }
    }
}
