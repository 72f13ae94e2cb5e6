//! Rows on the host: exactly one valid `Host` is required. The gateway does not use its value, but a proxy in front of
//! it may have routed by it.

use super::row::{BAD, MODELS, OK, Row, closes, row};
use crate::raw::After::Open;

const fn host(name: &'static str, bytes: &'static [u8]) -> Row {
    row(name, bytes, OK, Open, &[MODELS])
}

#[rustfmt::skip]
pub const HOSTS: &[Row] = &[
    host("a port", b"{LINE}Host: localhost:80\r\nX-API-Key: {KEY}\r\n\r\n"),
    host("an empty port", b"{LINE}Host: localhost:\r\nX-API-Key: {KEY}\r\n\r\n"),
    host("a port with a leading zero", b"{LINE}Host: localhost:080\r\nX-API-Key: {KEY}\r\n\r\n"),
    host("a port with three leading zeros", b"{LINE}Host: localhost:00080\r\nX-API-Key: {KEY}\r\n\r\n"),
    host("capitals", b"{LINE}Host: LOCALHOST\r\nX-API-Key: {KEY}\r\n\r\n"),
    host("a dot at the end", b"{LINE}Host: localhost.\r\nX-API-Key: {KEY}\r\n\r\n"),
    host("a name with an underscore", b"{LINE}Host: a_b\r\nX-API-Key: {KEY}\r\n\r\n"),
    host("another server name", b"{LINE}Host: evil.example\r\nX-API-Key: {KEY}\r\n\r\n"),
    host("an address", b"{LINE}Host: 127.0.0.1:8080\r\nX-API-Key: {KEY}\r\n\r\n"),
    host("an IPv6 address", b"{LINE}Host: [::1]\r\nX-API-Key: {KEY}\r\n\r\n"),
    host("an IPv6 address and a port", b"{LINE}Host: [2001:db8::1]:8080\r\nX-API-Key: {KEY}\r\n\r\n"),
    host("spaces around the host", b"{LINE}Host: \t localhost \t\r\nX-API-Key: {KEY}\r\n\r\n"),
    host("the host last", b"{LINE}X-API-Key: {KEY}\r\nX: 1\r\nhOsT: a\r\n\r\n"),
    host("similar header names", b"{LINE}X-Host: b\r\nHost: a\r\nHost-X: c\r\nX-API-Key: {KEY}\r\n\r\n"),
    closes("an IPv6 address without brackets", b"{LINE}Host: ::1\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a bracket that does not close", b"{LINE}Host: [::1\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a bracket that does not open", b"{LINE}Host: ::1]\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a name in brackets", b"{LINE}Host: [localhost]\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("empty brackets", b"{LINE}Host: []\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("something after the brackets", b"{LINE}Host: [::1]a\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("an IPv6 address with a zone", b"{LINE}Host: [fe80::1%25eth0]\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a port of an IPv6 address that is not a number", b"{LINE}Host: [::1]:x\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a port that is not a number", b"{LINE}Host: a:http\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a negative port", b"{LINE}Host: a:-1\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a port with a sign", b"{LINE}Host: a:+80\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a port that is too large", b"{LINE}Host: a:65536\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a port of six digits", b"{LINE}Host: a:000080\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a port of 25,000 digits in the target", b"GET http://a:{zero*25000}80/api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("two ports", b"{LINE}Host: a:80:90\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a port alone", b"{LINE}Host: :80\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a colon alone", b"{LINE}Host: :\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a tab in the host", b"{LINE}Host: a\tb\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("an encoded NUL in the host", b"{LINE}Host: a%00\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("an encoded slash in the host", b"{LINE}Host: a%2fb\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a backslash in the host", b"{LINE}Host: a\\b\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a fragment in the host", b"{LINE}Host: a#b\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a query in the host", b"{LINE}Host: a?b\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a host in quotes", b"{LINE}Host: \"a\"\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a URL as the host", b"{LINE}Host: http://a\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a high byte in the host", b"{LINE}Host: a\x80\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("two user names", b"{LINE}Host: a:b@c@d\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("two hosts of which one is empty", b"{LINE}Host: a\r\nHost:\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("two hosts in two spellings", b"{LINE}HOST: a\r\nX-API-Key: {KEY}\r\nhost: a\r\n\r\n{INNER}", BAD),
    closes("an empty host over HTTP/1.0", b"GET /docs HTTP/1.0\r\nHost:\r\n\r\n{INNER}", BAD),
    closes("only X-Forwarded-Host", b"{LINE}X-Forwarded-Host: a\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("another host in the target", b"GET http://b/api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("a host in the target alone", b"GET http://a/api/v1/models HTTP/1.1\r\nX-API-Key: {KEY}\r\n\r\n{INNER}", BAD),
    closes("CONNECT without a Host", b"CONNECT a:1 HTTP/1.1\r\n\r\n{INNER}", BAD),
];
