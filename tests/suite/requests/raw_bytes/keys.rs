//! Rows on the two headers that may contain a key.

use super::row::{BAD, BARE, INVALID, MODELS, OK, REQUIRED, Row, closes, refuses, row};
use crate::raw::After::Open;

const fn known(name: &'static str, bytes: &'static [u8]) -> Row {
    row(name, bytes, OK, Open, &[MODELS])
}

#[rustfmt::skip]
pub const KEYS: &[Row] = &[
    known("tabs around a key", b"{BARE}X-API-Key:\t{KEY}\t\r\n\r\n"),
    known("two spaces before a token", b"{BARE}Authorization: Bearer  {KEY}  \r\n\r\n"),
    known("tabs before a token", b"{BARE}Authorization:\tbEARER\t\t{KEY}\r\n\r\n"),
    known("both headers, other spaces", b"{BARE}x-api-key:{KEY} \r\nauthorization: bearer \t{KEY}\r\n\r\n"),
    known("an unreadable scheme and a key", b"{BARE}Authorization: B\xe9arer x\r\nX-API-Key: {KEY}\r\n\r\n"),
    refuses("a key of 255 characters", b"{BARE}X-API-Key: {x*255}\r\n\r\n", INVALID),
    refuses("a key of 256 characters", b"{BARE}X-API-Key: {x*256}\r\n\r\n", INVALID),
    refuses("a token of 12,000 characters", b"{BARE}Authorization: Bearer {x*12000}\r\n\r\n", INVALID),
    refuses("a key with a suffix", b"{BARE}X-API-Key: {KEY};\r\n\r\n", INVALID),
    refuses("a key in quotes", b"{BARE}X-API-Key: \"{KEY}\"\r\n\r\n", INVALID),
    refuses("a key twice in one value", b"{BARE}X-API-Key: {KEY} {KEY}\r\n\r\n", INVALID),
    refuses("two keys in a list", b"{BARE}X-API-Key: {KEY}, {OTHER}\r\n\r\n", INVALID),
    refuses("two tokens in a list", b"{BARE}Authorization: Bearer {KEY}, Bearer {OTHER}\r\n\r\n", INVALID),
    refuses("two tokens in one value", b"{BARE}Authorization: Bearer {KEY} {OTHER}\r\n\r\n", INVALID),
    refuses("an encoded letter in a key", b"{BARE}X-API-Key: %73{KEY}\r\n\r\n", INVALID),
    refuses("a high byte before a key", b"{BARE}X-API-Key: \x80{KEY}\r\n\r\n", INVALID),
    refuses("a high byte after a token", b"{BARE}Authorization: Bearer {KEY}\x80\r\n\r\n", INVALID),
    refuses("a Unicode space after a key", b"{BARE}X-API-Key: {KEY}\xc2\xa0\r\n\r\n", INVALID),
    refuses("an unreadable key and a token", b"{BARE}Authorization: Bearer {KEY}\r\nX-API-Key: \xff\r\n\r\n", INVALID),
    refuses("one key in two spellings of a header", b"{BARE}X-API-KEY: {KEY}\r\nx-api-key: {KEY}\r\n\r\n", INVALID),
    refuses("two customers' keys", b"{BARE}X-API-Key: {OTHER}\r\nAuthorization: Bearer {KEY}\r\n\r\n", INVALID),
    refuses("two customers' tokens", b"{BARE}Authorization: Bearer {KEY}\r\nAuthorization: Bearer {OTHER}\r\n\r\n", INVALID),
    refuses("another scheme twice", b"{BARE}Authorization: Basic x\r\nAuthorization: Basic x\r\nX-API-Key: {KEY}\r\n\r\n", INVALID),
    refuses("a scheme in the other header", b"{BARE}X-API-Key: Bearer {KEY}\r\n\r\n", INVALID),
    refuses("a scheme twice", b"{BARE}Authorization: Bearer Bearer {KEY}\r\n\r\n", INVALID),
    refuses("no space after the scheme", b"{BARE}Authorization: Bearer{KEY}\r\n\r\n", REQUIRED),
    refuses("a colon after the scheme", b"{BARE}Authorization: Bearer:{KEY}\r\n\r\n", REQUIRED),
    refuses("a comma after the scheme", b"{BARE}Authorization: Bearer,{KEY}\r\n\r\n", REQUIRED),
    refuses("a Unicode space after the scheme", b"{BARE}Authorization: Bearer\xc2\xa0{KEY}\r\n\r\n", REQUIRED),
    refuses("a token after another scheme", b"{BARE}Authorization: Basic x, Bearer {KEY}\r\n\r\n", REQUIRED),
    refuses("a header name with underscores", b"{BARE}X_API_Key: {KEY}\r\n\r\n", REQUIRED),
    refuses("a key in a cookie of the header's name", b"{BARE}Cookie: X-API-Key={KEY}; Authorization=Bearer {KEY}\r\n\r\n", REQUIRED),
    refuses("a key in the path", b"GET /{KEY}/api/v1/models HTTP/1.1\r\nHost: a\r\n\r\n", REQUIRED),
    closes("a key as a fragment", b"GET /api/v1/models#{KEY} HTTP/1.1\r\nHost: a\r\n\r\n", BARE),
    refuses("a key in a referrer", b"{BARE}Referer: https://a/?api_key={KEY}\r\n\r\n", REQUIRED),
    closes("a key as the user name", b"GET http://{KEY}@a/api/v1/models HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BAD),
    closes("a key in a body", b"POST /api/v1/models HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\napi_key=x", BAD),
    closes("a NUL after a key", b"{BARE}X-API-Key: {KEY}\0\r\n\r\n{INNER}", BARE),
    closes("a bare CR in a key", b"{BARE}X-API-Key: {KEY}\r{KEY}\r\n\r\n{INNER}", BARE),
];
