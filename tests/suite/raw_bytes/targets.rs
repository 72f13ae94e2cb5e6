//! Rows on the target: other forms, other spellings, and suffixes that make a cache take an answer for a file. More
//! paths, one a line, stand in `paths`.

use super::row::{BAD, BAD_ID, BARE, LOST, METHODS, MODELS, OK, REQUIRED, Row, closes, row, stays};
use crate::raw::After::Open;

/// Not a path on this server.
#[rustfmt::skip]
pub const FORMS: &[Row] = &[
    closes("no host in an address", b"GET http:///api/v1/models HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("nothing in an address", b"GET http:// HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("no path in an address", b"GET http://a HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
    closes("a query in an address", b"GET http://a?x HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
    closes("an address with a user", b"GET http://u:p@a/docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
    closes("an address with IPv6", b"GET http://[::1]/docs HTTP/1.1\r\nHost: [::1]\r\n\r\n{INNER}", BAD),
    closes("an address in capitals", b"GET HTTP://A/docs HTTP/1.1\r\nHost: A\r\n\r\n{INNER}", BAD),
    closes("an address of another scheme", b"GET ws://a/docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
    closes("an address over HTTP/1.0", b"GET http://a/docs HTTP/1.0\r\n\r\n{INNER}", BAD),
    closes("an address for a method that is none", b"PUT http://a/docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
    closes("a host, a port and a path", b"GET a:80/docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("a script", b"GET javascript:alert(1) HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
    closes("a fragment alone", b"GET #x HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("dots before the path", b"GET ../docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("an asterisk with a query", b"GET *?x HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("two asterisks", b"OPTIONS ** HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
    closes("an asterisk for a HEAD", b"HEAD * HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
    closes("a path for a tunnel", b"CONNECT /docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", &[(405, "method_not_allowed")]),
    closes("a tunnel to ourselves", b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n\x16\x03\x01\x02\0\x01\0", &[(405, "method_not_allowed")]),
    stays("an asterisk in a path", b"OPTIONS /* HTTP/1.1\r\nHost: a\r\n\r\n", METHODS),
    stays("a path that is none, for its methods", b"OPTIONS /api/v1/models/%00 HTTP/1.1\r\nHost: a\r\n\r\n", METHODS),
    stays("an address in a path", b"GET /http://a/api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", LOST),
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
    stays(name, bytes, BAD_ID)
}

const fn lost(name: &'static str, bytes: &'static [u8]) -> Row {
    stays(name, bytes, LOST)
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
    stays("a page with a query", b"GET /docs?x=%00 HTTP/1.1\r\nHost: a\r\n\r\n", OK),
    stays("a page in other letters", b"GET /d%6fcs HTTP/1.1\r\nHost: a\r\n\r\n", REQUIRED),
    stays("the health of a path below it", b"GET /healthz/../api/v1/models HTTP/1.1\r\nHost: a\r\n\r\n", REQUIRED),
    lost("a letter of the base encoded", b"GET /%61pi/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("a letter of the version encoded", b"GET /api/%76%31/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("an encoded question mark", b"GET /api/v1/models%3fperiod=24h HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("an encoded fragment", b"GET /api/v1/models%23 HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("an encoded ampersand", b"GET /api/v1/models%26period=24h HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("two dots behind an endpoint", b"GET /api/v1/models.. HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("two backslashes", b"GET /api/v1\\\\models HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("an encoded backslash between segments", b"GET /api/v1%5cmodels HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("an endpoint encoded twice", b"GET /api/v1/%256dodels HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("a parameter of the first segment", b"GET /api;x/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("a user's directory", b"GET /~/api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("an over-long NUL", b"GET /api/v1/models/a%C0%80 HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("an over-long backslash", b"GET /api/v1/models/a%c1%9cb HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("an over-long dot of three bytes", b"GET /api/v1/models/%e0%80%ae HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("half a pair of surrogates", b"GET /api/v1/models/%ed%a0%80 HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("a character beyond the last", b"GET /api/v1/models/%f4%90%80%80 HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("an escape inside an escape", b"GET /api/v1/models/%%32e HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("an escape across an escape", b"GET /api/v1/models/%2%65 HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("an escape with a sign", b"GET /api/v1/models/a%+2 HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("an escape with half a digit", b"GET /api/v1/models/a%0g HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("an escape as scripts write it", b"GET /api/v1/models/a\\x2e HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("a quote", b"GET /api/v1/models/a%22 HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("a query of a database", b"GET /api/v1/models/1'or'1'='1 HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("a line", b"GET /api/v1/models/a|b HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("129 characters", b"GET /api/v1/models/{x*129} HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("1,900 characters", b"GET /api/v1/models/{x*1900} HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
];

/// Suffixes that make some caches take an answer for a file, and keep it for everybody.
#[rustfmt::skip]
pub const SUFFIXES: &[Row] = &[
    lost("a line end and a file behind /me", b"GET /api/v1/me%0ax.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("an encoded slash and a file behind /me", b"GET /api/v1/me%2fx.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("an encoded backslash and a file behind /me", b"GET /api/v1/me%5cx.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("a tab and a file behind /me", b"GET /api/v1/me%09.js HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("a parameter and a file behind /me", b"GET /api/v1/me/..;/x.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("a dollar and a file behind /me", b"GET /api/v1/me$x.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("/me by way of a directory of files", b"GET /assets/..%2fapi/v1/me HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("/me by way of a page", b"GET /docs/%2e%2e/api/v1/me HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("a file that every site has", b"GET /humans.txt HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    stays("a file in the query of /me", b"GET /api/v1/me?/x.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", OK),
    closes("a file in the fragment of /me", b"GET /api/v1/me#/x.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", BARE),
    lost("a file behind a model", b"GET /api/v1/models/atlas/x.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    lost("a file behind a model's history", b"GET /api/v1/models/atlas/history.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("an encoded slash and a file behind a model", b"GET /api/v1/models/atlas%2fx.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("a parameter and a file behind a model", b"GET /api/v1/models/atlas;x.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("a line end and a file behind a model", b"GET /api/v1/models/atlas%0ax.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("a fragment and a file behind a model", b"GET /api/v1/models/atlas%23x.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    model("a query and a file behind a model", b"GET /api/v1/models/atlas%3fx.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n"),
    // A model may be called so: it is asked for by that name, and stored under it.
    row("a model that is called like a file", b"GET /api/v1/models/atlas.css HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", OK, Open, &["/api/v1/models/atlas.css"]),
];
