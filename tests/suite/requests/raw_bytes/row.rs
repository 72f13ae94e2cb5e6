//! The rows of the tables: their fields, the placeholders in their bytes, and the expected responses.

use crate::raw::After::{self, Closed, Open};

/// A status and the code in its body. Responses of the codec have no code: [`NO_BODY`].
pub type ExpectedResponse = (u16, &'static str);

/// In place of a code: a response of the codec, without a body and without the API's headers.
pub const NO_BODY: &str = "(bare)";

pub const OK: &[ExpectedResponse] = &[(200, "")];
pub const OK_TWICE: &[ExpectedResponse] = &[(200, ""), (200, "")];
pub const OK_THEN_BARE: &[ExpectedResponse] = &[(200, ""), (400, NO_BODY)];
/// The response to `OPTIONS`.
pub const METHODS: &[ExpectedResponse] = &[(204, "")];
pub const BAD: &[ExpectedResponse] = &[(400, "bad_request")];
pub const BAD_ID: &[ExpectedResponse] = &[(400, "invalid_model_id")];
pub const BARE: &[ExpectedResponse] = &[(400, NO_BODY)];
pub const REQUIRED: &[ExpectedResponse] = &[(401, "api_key_required")];
pub const INVALID: &[ExpectedResponse] = &[(401, "invalid_api_key")];
pub const NOT_FOUND: &[ExpectedResponse] = &[(404, "not_found")];
pub const METHOD: &[ExpectedResponse] = &[(405, "method_not_allowed")];
pub const LONG: &[ExpectedResponse] = &[(414, "uri_too_long")];
pub const LARGE: &[ExpectedResponse] = &[(431, "headers_too_large")];
pub const BARE_LARGE: &[ExpectedResponse] = &[(431, NO_BODY)];

/// The upstream target of `{GET}`: built from parsed values and defaults.
pub const MODELS: &str = "/api/v1/models?period=24h&sortBy=combined";
/// The upstream target of `{NEXT}`.
pub const INDEX: &str = "/api/v1/index";

/// A malformed or unusual request and its only allowed outcome.
pub struct Row {
    pub name: &'static str,
    /// The bytes, sent together before anything is read; see [`expanded`] for the placeholders.
    pub bytes: &'static [u8],
    /// The responses, in order.
    pub responses: &'static [ExpectedResponse],
    /// The state of the connection after the last response.
    pub after: After,
    /// The targets of the upstream requests; the cache is empty before.
    pub upstream: &'static [&'static str],
}

pub const fn row(
    name: &'static str,
    bytes: &'static [u8],
    responses: &'static [ExpectedResponse],
    after: After,
    upstream: &'static [&'static str],
) -> Row {
    Row {
        name,
        bytes,
        responses,
        after,
        upstream,
    }
}

/// A request that is refused and closes the connection.
pub const fn closes(
    name: &'static str,
    bytes: &'static [u8],
    response: &'static [ExpectedResponse],
) -> Row {
    row(name, bytes, response, Closed, &[])
}

/// A request that is refused, or answered without the backend, and keeps the connection open.
pub const fn refuses(
    name: &'static str,
    bytes: &'static [u8],
    response: &'static [ExpectedResponse],
) -> Row {
    row(name, bytes, response, Open, &[])
}

/// A request that is answered like `{GET}` alone.
pub const fn serves(name: &'static str, bytes: &'static [u8]) -> Row {
    row(name, bytes, OK, Open, &[MODELS])
}

/// The keys that rows may use.
pub struct KeyRing {
    /// `{KEY}`
    pub key: String,
    /// `{OTHER}`, the key of another customer.
    pub other: String,
}

/// Expands the placeholders of a row. `{GET}` is the start of a valid request, to which fields and an empty line may be
/// added. `{BARE}` is the same without a key, and `{LINE}` also without a host. `{NEXT}` is a complete valid request,
/// and `{INNER}` is a request that must not be answered. `{x*N}` is N letters, `{field*N}` N fields, `{blank*N}` N
/// fields without a value, `{empty*N}` N empty lines, `{space*N}` N spaces, `{zero*N}` N zeros.
pub fn expanded(bytes: &[u8], keys: &KeyRing) -> Vec<u8> {
    let mut expanded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(open) = rest.iter().position(|byte| *byte == b'{') {
        let (before, from) = rest.split_at(open);
        expanded.extend_from_slice(before);
        let close = from.iter().position(|byte| *byte == b'}');
        let name = close.and_then(|close| std::str::from_utf8(&from[1..close]).ok());
        if let Some(value) = name.and_then(|name| placeholder(name, keys)) {
            expanded.extend(value.bytes());
            rest = &from[close.unwrap() + 1..];
        } else {
            expanded.push(b'{');
            rest = &from[1..];
        }
    }
    expanded.extend_from_slice(rest);
    expanded
}

fn placeholder(name: &str, keys: &KeyRing) -> Option<String> {
    let KeyRing { key, other } = keys;
    let line = "GET /api/v1/models?period=24h HTTP/1.1\r\n";
    if let Some((unit, times)) = name.split_once('*') {
        let unit = match unit {
            "x" => "x",
            "field" => "X: 1\r\n",
            "blank" => "X:\r\n",
            "empty" => "\r\n",
            "space" => " ",
            "zero" => "0",
            _ => return None,
        };
        return Some(unit.repeat(times.parse().ok()?));
    }
    match name {
        "KEY" => Some(key.clone()),
        "OTHER" => Some(other.clone()),
        "LINE" => Some(line.into()),
        "BARE" => Some(format!("{line}Host: a\r\n")),
        "GET" => Some(format!("{line}Host: a\r\nX-API-Key: {key}\r\n")),
        "NEXT" => Some(complete("/api/v1/index", key)),
        "INNER" => Some(complete("/api/v1/models/smuggled", key)),
        _ => None,
    }
}

/// A complete valid request.
pub fn complete(target: &str, key: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n\r\n")
}
