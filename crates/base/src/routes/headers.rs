//! The table of response headers: name, scope, format and meaning.
//!
//! The API description and the docs page are generated from it, and tests compare every response with it. Headers are
//! written in `gateway::stages::respond`.

use crate::limits::LimitRule;

macro_rules! by_encoding {
    () => {
        "Accept-Encoding"
    };
}
macro_rules! by_key {
    () => {
        concat!(by_encoding!(), ", Authorization, X-API-Key")
    };
}

/// `Vary` of responses that are the same for all callers.
pub const VARY_FOR_ALL: &str = by_encoding!();
/// `Vary` of all other responses.
pub const VARY_BY_KEY: &str = by_key!();
/// [`VARY_FOR_ALL`] if only listed origins may read responses.
pub const VARY_FOR_ALL_BY_ORIGIN: &str = concat!(by_encoding!(), ", Origin");
/// [`VARY_BY_KEY`] if only listed origins may read responses.
pub const VARY_BY_KEY_AND_ORIGIN: &str = concat!(by_key!(), ", Origin");

/// A response header of the data API.
#[derive(Debug)]
pub struct Header {
    /// The name.
    pub name: &'static str,
    /// The responses that may have the header.
    pub on: HeaderScope,
    /// Whether all of these responses have the header.
    pub always: bool,
    /// The format of the value.
    pub value: HeaderValueKind,
    /// An example.
    pub example: &'static str,
    /// The meaning.
    pub meaning: &'static str,
}

/// A set of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderScope {
    /// All responses.
    Every,
    /// Responses with a body.
    Body,
    /// 200 and 304 responses of stored endpoints, which are all except `/me`.
    Document,
    /// Responses with one of these statuses.
    Status(&'static [u16]),
}

/// The format of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderValueKind {
    /// A non-negative whole number.
    Integer,
    /// One of these words.
    Words(&'static [&'static str]),
    /// Text that matches this regular expression.
    Pattern(&'static str),
}

use HeaderValueKind::{Integer, Pattern, Words};

const HTTP_DATE: &str =
    "^[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT$";

/// All headers.
#[rustfmt::skip]
pub static HEADERS: [Header; 25] = [
    Header { name: "X-RateLimit-Limit", on: HeaderScope::Every, always: true, value: Integer, example: "10000",
        meaning: "Requests allowed by the rule named in `X-RateLimit-Resource`." },
    Header { name: "X-RateLimit-Remaining", on: HeaderScope::Every, always: true, value: Integer, example: "9876",
        meaning: "Requests left when the response was sent." },
    Header { name: "X-RateLimit-Reset", on: HeaderScope::Every, always: true, value: Integer, example: "1795305600",
        meaning: "Time when the allowance is full again, in seconds since 1970-01-01 UTC: for the day, the next 00:00 UTC; for the month, the 00:00 UTC at which it ends; on a 429 for the minute limit, the time of the next token." },
    Header { name: "X-RateLimit-Resource", on: HeaderScope::Every, always: true, value: Words(&LimitRule::WORDS), example: "day",
        meaning: "The rule that the three headers above describe: `day` for a known key; on a 429 the exhausted rule; `guard` without a known key." },
    Header { name: "RateLimit-Policy", on: HeaderScope::Every, always: true, value: Pattern("^\"[a-z_]+\";q=[0-9]+;w=[0-9]+(, \"[a-z_]+\";q=[0-9]+;w=[0-9]+)*$"),
        example: "\"minute\";q=60;w=60, \"day\";q=10000;w=86400",
        meaning: "The rules for this caller: quota `q` in a window of `w` seconds." },
    Header { name: "RateLimit", on: HeaderScope::Every, always: true, value: Pattern("^\"[a-z_]+\";r=[0-9]+;t=[0-9]+(, \"[a-z_]+\";r=[0-9]+;t=[0-9]+)*$"),
        example: "\"minute\";r=59;t=1, \"day\";r=9876;t=38211",
        meaning: "Remaining allowance of each rule (`r`), and seconds until it is full again (`t`)." },
    Header { name: "Retry-After", on: HeaderScope::Status(&[404, 429, 503]), always: false, value: Integer, example: "38211",
        meaning: "Seconds to wait before the next request: on every 429 and 503, and on a 404 for an unlisted model id that could not be looked up yet." },
    Header { name: "X-Request-Id", on: HeaderScope::Every, always: true, value: Pattern("^[!-~]+$"), example: "01jd6v8k2m3n4p5q",
        meaning: "Id of this request, for bug reports. You can send your own id in this header: 8 to 64 letters, digits, dots, underscores or hyphens." },
    Header { name: "Date", on: HeaderScope::Every, always: true, value: Pattern(HTTP_DATE), example: "Sat, 21 Nov 2026 13:23:09 GMT",
        meaning: "Time when the response was sent." },
    Header { name: "Vary", on: HeaderScope::Every, always: true, value: Words(&[VARY_BY_KEY, VARY_BY_KEY_AND_ORIGIN]),
        example: VARY_BY_KEY,
        meaning: "Responses depend on the key and on the accepted encodings; on `Origin` too if only listed origins may read them in a browser." },
    Header { name: "Cache-Control", on: HeaderScope::Every, always: true, value: Pattern("^(private, max-age=[0-9]+, stale-if-error=86400|private, no-store|no-store)$"),
        example: "private, max-age=1840, stale-if-error=86400",
        meaning: "On 200 and 304, `max-age` is the time until the data is next expected to change. `stale-if-error` is the additional time for which a client may use the response if the service fails. `/me` and errors are `no-store`." },
    Header { name: "ETag", on: HeaderScope::Document, always: true, value: Pattern("^\"[!#-~]+\"$"), example: "\"5d41402abc4b2a76-br\"",
        meaning: "Identifies these exact bytes. Send it back in `If-None-Match`: if nothing has changed, the response is a 304, which does not count against the daily quota." },
    Header { name: "Last-Modified", on: HeaderScope::Document, always: true, value: Pattern(HTTP_DATE), example: "Sat, 21 Nov 2026 13:00:00 GMT",
        meaning: "Time when the data last changed." },
    Header { name: "Cache-Status", on: HeaderScope::Document, always: true, value: Pattern("^[^;]+(; ?[a-z-]+(=[^;]+)?)+$"), example: "scoregate; hit; ttl=1840",
        meaning: "Source of the response (RFC 9211). `detail=stale` marks a response that is overdue for a refresh." },
    Header { name: "Content-Type", on: HeaderScope::Body, always: true, value: Pattern("^application/(problem\\+)?json"), example: "application/json",
        meaning: "`application/json`, or `application/problem+json` for errors if the client accepts it." },
    Header { name: "Content-Encoding", on: HeaderScope::Body, always: false, value: Words(&["gzip", "br"]), example: "br",
        meaning: "Compression of the body, if the client accepts it." },
    Header { name: "Strict-Transport-Security", on: HeaderScope::Every, always: false, value: Pattern("^max-age=[0-9]+$"), example: "max-age=31536000",
        meaning: "Over TLS only. Browsers must always use TLS for this service." },
    Header { name: "X-Content-Type-Options", on: HeaderScope::Every, always: true, value: Words(&["nosniff"]), example: "nosniff",
        meaning: "Browsers must use the type in `Content-Type`, and not guess another one." },
    Header { name: "WWW-Authenticate", on: HeaderScope::Status(&[401]), always: true, value: Pattern("^Bearer realm=\"[^\"]*\"$"), example: "Bearer realm=\"scoregate\"",
        meaning: "How to send a key." },
    Header { name: "Allow", on: HeaderScope::Status(&[405]), always: true, value: Pattern("^[A-Z]+(, [A-Z]+)*$"), example: "GET, HEAD, OPTIONS",
        meaning: "The methods that every path supports. Responses to OPTIONS also have this header." },
    Header { name: "Access-Control-Allow-Origin", on: HeaderScope::Every, always: false, value: Pattern("^([*]|https?://[^ /]+)$"), example: "https://dash.example.org",
        meaning: "The origin whose pages may read the response in a browser, if the service allows any." },
    Header { name: "Access-Control-Expose-Headers", on: HeaderScope::Every, always: false, value: Pattern("^[A-Za-z-]+(, [A-Za-z-]+)*$"), example: "RateLimit, Retry-After",
        meaning: "The headers that scripts of such a page may read." },
    Header { name: "Deprecation", on: HeaderScope::Every, always: false, value: Pattern("^@[0-9]+$"), example: "@1795305600",
        meaning: "Time of deprecation of this API, past or future, in seconds since 1970-01-01 UTC (RFC 9745)." },
    Header { name: "Sunset", on: HeaderScope::Every, always: false, value: Pattern(HTTP_DATE), example: "Wed, 30 Jun 2027 20:00:00 GMT",
        meaning: "Time when this API will be removed (RFC 8594)." },
    Header { name: "Link", on: HeaderScope::Every, always: false, value: Pattern("^<https?://[^<>\" ]+>; rel=\"(deprecation|help|payment)\"(, <https?://[^<>\" ]+>; rel=\"deprecation\")?$"), example: "<https://example.org/end>; rel=\"deprecation\"",
        meaning: "Link to a description of the deprecation or, on refusals, to the sign-up page or to larger plans." },
];

/// Headers that scripts may always read, and headers that are only for browsers and caches.
const NOT_FOR_SCRIPTS: [&str; 8] = [
    "Cache-Control",
    "Content-Type",
    "Last-Modified",
    "Vary",
    "Content-Encoding",
    "X-Content-Type-Options",
    "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers",
];

/// All other names, for `Access-Control-Expose-Headers`.
pub fn for_scripts() -> String {
    let names = HEADERS
        .iter()
        .map(|header| header.name)
        .filter(|name| !NOT_FOR_SCRIPTS.contains(name));
    names.collect::<Vec<_>>().join(", ")
}

impl HeaderScope {
    /// Whether the set includes a response with this status. `stored` is whether the endpoint's documents are stored.
    pub fn covers(self, status: u16, stored: bool) -> bool {
        match self {
            Self::Every => true,
            Self::Body => status != 304,
            Self::Document => stored && matches!(status, 200 | 304),
            Self::Status(statuses) => statuses.contains(&status),
        }
    }

    /// The set in words, for the documentation.
    pub fn words(self) -> String {
        match self {
            Self::Every => "every response".into(),
            Self::Body => "responses with a body".into(),
            Self::Document => "200 and 304, except `/me`".into(),
            Self::Status(statuses) => statuses
                .iter()
                .map(u16::to_string)
                .collect::<Vec<_>>()
                .join(" and "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_a_value_the_header_may_have() {
        for header in &HEADERS {
            let schema = match header.value {
                Integer => serde_json::json!({"pattern": "^[0-9]+$"}),
                Words(words) => serde_json::json!({"enum": words}),
                Pattern(pattern) => serde_json::json!({"pattern": pattern}),
            };
            let schema = jsonschema::validator_for(&schema).unwrap();
            assert!(schema.is_valid(&header.example.into()), "{}", header.name);
            assert!(!schema.is_valid(&"; ;".into()), "{}", header.name);
        }
    }

    #[test]
    fn exposed_headers_are_all_that_are_not_safelisted() {
        let names = for_scripts();
        for name in [
            "RateLimit",
            "RateLimit-Policy",
            "X-RateLimit-Remaining",
            "Retry-After",
            "ETag",
            "X-Request-Id",
        ] {
            assert!(names.split(", ").any(|known| known == name), "{name}");
        }
        for name in NOT_FOR_SCRIPTS {
            assert!(HEADERS.iter().any(|header| header.name == name), "{name}");
            assert!(!names.split(", ").any(|known| known == name), "{name}");
        }
    }

    #[test]
    fn client_errors_state_the_remaining_limits_but_no_age() {
        assert!(HeaderScope::Every.covers(404, true));
        assert!(!HeaderScope::Document.covers(404, true));
        assert!(!HeaderScope::Document.covers(200, false));
        assert!(!HeaderScope::Body.covers(304, true));
    }
}
