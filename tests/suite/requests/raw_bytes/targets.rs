//! Rows on the target: other forms, other spellings, and suffixes that make a cache treat a response as a static file.
//! `paths` has more paths, one per line.

use super::row::{
    BAD, BAD_ID, BARE, METHODS, MODELS, NOT_FOUND, OK, REQUIRED, Row, closes, refuses, row,
};
use crate::raw::After::Open;

/// Targets that are not a path on this server.
#[rustfmt::skip]
pub const FORMS: &[Row] = &[
    closes("a URL without a host", b"GET http:///api/v1/models HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("an empty URL", b"GET http:// HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    row("a URL", b"GET http://a/api/v1/models?period=24h HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", OK, Open, &[MODELS]),
    row("a URL over HTTPS", b"GET https://a/api/v1/models?period=24h HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", OK, Open, &[MODELS]),
    row("a URL in the letters of its host", b"GET HTTP://A:80/api/v1/models?period=24h HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", OK, Open, &[MODELS]),
    refuses("a URL without a path", b"GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", OK),
    refuses("a URL with a query and no path", b"GET http://a?x HTTP/1.1\r\nHost: a\r\n\r\n", OK),
    refuses("OPTIONS of an asterisk", b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", METHODS),
    refuses("OPTIONS of a URL", b"OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n", METHODS),
    closes("a URL with the user of its host", b"GET http://u@a/docs HTTP/1.1\r\nHost: u@a\r\n\r\n{INNER}", BAD),
    closes("a URL with another port", b"GET http://a:443/docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
    closes("a URL with a dot after the host", b"GET http://a./docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
    closes("a URL with a fragment", b"GET http://a/docs#x HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("a URL with a user", b"GET http://u:p@a/docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
    refuses("a URL with an IPv6 host", b"GET http://[::1]/docs HTTP/1.1\r\nHost: [::1]\r\n\r\n", OK),
    refuses("a URL in capitals", b"GET HTTP://A/docs HTTP/1.1\r\nHost: A\r\n\r\n", OK),
    closes("a URL of another scheme", b"GET ws://a/docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
    closes("a URL over HTTP/1.0", b"GET http://a/docs HTTP/1.0\r\n\r\n{INNER}", BAD),
    closes("a URL of another host and an unsupported method", b"PUT http://b/docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
    closes("a host, a port and a path", b"GET a:80/docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("a javascript: URL", b"GET javascript:alert(1) HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
    closes("a fragment alone", b"GET #x HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("dots before the path", b"GET ../docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("an asterisk with a query", b"GET *?x HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("two asterisks", b"OPTIONS ** HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
    closes("HEAD of an asterisk", b"HEAD * HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
    closes("CONNECT to a path", b"CONNECT /docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", &[(405, "method_not_allowed")]),
    closes("CONNECT to the gateway", b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n\x16\x03\x01\x02\0\x01\0", &[(405, "method_not_allowed")]),
    refuses("an asterisk in a path", b"OPTIONS /* HTTP/1.1\r\nHost: a\r\n\r\n", METHODS),
    refuses("OPTIONS of an invalid path", b"OPTIONS /api/v1/models/%00 HTTP/1.1\r\nHost: a\r\n\r\n", METHODS),
    refuses("a URL in a path", b"GET /http://a/api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", NOT_FOUND),
    closes("a vertical tab in a path", b"GET /docs\x0b HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("a DEL in a path", b"GET /docs\x7f HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("an escape in a path", b"GET /docs\x1b[31m HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("a tab before the version", b"GET /docs\tHTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("a form feed before the version", b"GET /docs\x0cHTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("a bare CR in a path", b"GET /do\rcs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("a bare LF in a path", b"GET /do\ncs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("UTF-8 in a query", b"GET /docs?\xe2\x80\xae HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
];

const fn model(name: &'static str, bytes: &'static [u8]) -> Row {
    refuses(name, bytes, BAD_ID)
}

const fn not_found(name: &'static str, bytes: &'static [u8]) -> Row {
    refuses(name, bytes, NOT_FOUND)
}

/// Other spellings of a path.
#[rustfmt::skip]
pub const SPELLINGS: &[Row] = &[
    row("a question mark alone", b"GET /api/v1/models? HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", OK, Open, &["/api/v1/models?period=latest&sortBy=combined"]),
    row("two question marks", b"GET /api/v1/models??period=24h HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", OK, Open, &["/api/v1/models?period=latest&sortBy=combined"]),
    row("encoded line ends in a query", b"GET /api/v1/models?x=%0d%0aHost:%20b&period=24h HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", OK, Open, &[MODELS]),
    row("a path in a query", b"GET /api/v1/models?/../me&period=24h HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", OK, Open, &[MODELS]),
    row("every letter of an endpoint encoded", b"GET /api/v1/%69%6E%64%65%78 HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", OK, Open, &["/api/v1/index"]),
    closes("a fragment that looks like a query", b"GET /api/v1/models?period=24h#&period=7d HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", BARE),
    closes("a page before a fragment", b"GET /#/api/v1/models HTTP/1.1\r\nHost: a\r\n\r\n", BARE),
    refuses("a page with a query", b"GET /docs?x=%00 HTTP/1.1\r\nHost: a\r\n\r\n", OK),
    refuses("a page with an encoded letter", b"GET /d%6fcs HTTP/1.1\r\nHost: a\r\n\r\n", REQUIRED),
    refuses("a dot segment after a page", b"GET /healthz/../api/v1/models HTTP/1.1\r\nHost: a\r\n\r\n", REQUIRED),
    not_found("a letter of the base encoded", b"GET /%61pi/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("a letter of the version encoded", b"GET /api/%76%31/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("an encoded question mark", b"GET /api/v1/models%3fperiod=24h HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("an encoded fragment", b"GET /api/v1/models%23 HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("an encoded ampersand", b"GET /api/v1/models%26period=24h HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("two dots after an endpoint", b"GET /api/v1/models.. HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("two backslashes", b"GET /api/v1\\\\models HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("an encoded backslash between segments", b"GET /api/v1%5cmodels HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("a doubly encoded endpoint", b"GET /api/v1/%256dodels HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("a parameter in the first segment", b"GET /api;x/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("a tilde segment", b"GET /~/api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("an over-long NUL", b"GET /api/v1/models/a%C0%80 HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("an over-long backslash", b"GET /api/v1/models/a%c1%9cb HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("an over-long dot of three bytes", b"GET /api/v1/models/%e0%80%ae HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("a lone surrogate", b"GET /api/v1/models/%ed%a0%80 HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("a code point above the maximum", b"GET /api/v1/models/%f4%90%80%80 HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("an escape inside an escape", b"GET /api/v1/models/%%32e HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("overlapping escapes", b"GET /api/v1/models/%2%65 HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("an escape with a sign", b"GET /api/v1/models/a%+2 HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("an escape with one valid digit", b"GET /api/v1/models/a%0g HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("a backslash escape", b"GET /api/v1/models/a\\x2e HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("a quote", b"GET /api/v1/models/a%22 HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("an SQL injection", b"GET /api/v1/models/1'or'1'='1 HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("a vertical bar", b"GET /api/v1/models/a|b HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("129 characters", b"GET /api/v1/models/{x*129} HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("1,900 characters", b"GET /api/v1/models/{x*1900} HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
];

/// Suffixes that make some caches treat a response as a static file and store it for all clients.
#[rustfmt::skip]
pub const SUFFIXES: &[Row] = &[
    not_found("a line end and a file after /me", b"GET /api/v1/me%0ax.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("an encoded slash and a file after /me", b"GET /api/v1/me%2fx.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("an encoded backslash and a file after /me", b"GET /api/v1/me%5cx.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("a tab and a file after /me", b"GET /api/v1/me%09.js HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("a parameter and a file after /me", b"GET /api/v1/me/..;/x.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("a dollar and a file after /me", b"GET /api/v1/me$x.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("/me through a directory of files", b"GET /assets/..%2fapi/v1/me HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("/me through a page", b"GET /docs/%2e%2e/api/v1/me HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("a well-known file", b"GET /humans.txt HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    refuses("a file in the query of /me", b"GET /api/v1/me?/x.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", OK),
    closes("a file in the fragment of /me", b"GET /api/v1/me#/x.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", BARE),
    not_found("a file after a model", b"GET /api/v1/models/atlas/x.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    not_found("a file after a model's history", b"GET /api/v1/models/atlas/history.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("an encoded slash and a file after a model", b"GET /api/v1/models/atlas%2fx.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("a parameter and a file after a model", b"GET /api/v1/models/atlas;x.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("a line end and a file after a model", b"GET /api/v1/models/atlas%0ax.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("a fragment and a file after a model", b"GET /api/v1/models/atlas%23x.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("a query and a file after a model", b"GET /api/v1/models/atlas%3fx.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    // This is a valid model id: it is fetched and stored under that id.
    row("a model named like a file", b"GET /api/v1/models/atlas.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", OK, Open, &["/api/v1/models/atlas.css"]),
];
