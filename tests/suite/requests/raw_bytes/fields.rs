//! Rows on the syntax of a head: line endings, names and values of fields, methods, sizes.

use super::row::{
    BAD, BARE, BARE_LARGE, INDEX, LARGE, LONG, METHOD, MODELS, OK, OK_TWICE, Row, closes, refuses,
    row, serves,
};
use crate::raw::After::{Closed, Open};

/// Line endings.
#[rustfmt::skip]
pub const LINES: &[Row] = &[
    // Like most codecs, ours accepts a bare LF as a line ending, so a check before it rejects them.
    closes("bare LFs throughout", b"GET /api/v1/models?period=24h HTTP/1.1\nHost: a\nX-API-Key: {KEY}\n\n", BARE),
    closes("a bare LF after the first line", b"GET /api/v1/models?period=24h HTTP/1.1\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", BARE),
    closes("a bare LF as the empty line", b"{GET}X: 1\r\n\n", BARE),
    closes("a bare LF before the empty line", b"{GET}X: 1\n\r\n", BARE),
    closes("two CRs", b"{GET}X: 1\r\r\n\r\n{INNER}", BARE),
    closes("two CRs after the first line", b"GET /docs HTTP/1.1\r\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("a bare CR after the first line", b"GET /docs HTTP/1.1\rHost: a\r\n\r\n{INNER}", BARE),
    closes("a CR as the empty line", b"{GET}X: 1\r\n\r{INNER}", BARE),
    closes("LF and CR in reverse order", b"{GET}X: 1\n\rY: 2\r\n\r\n{INNER}", BARE),
    serves("an empty line first", b"\r\n{GET}\r\n"),
    closes("a bare LF first", b"\n{GET}\r\n", BARE),
    serves("a hundred empty lines first", b"{empty*100}{GET}\r\n"),
    row("empty lines between requests", b"{GET}\r\n\r\n\r\n{NEXT}", OK_TWICE, Open, &[MODELS, INDEX]),
    closes("a space first", b" {GET}\r\n{INNER}", BARE),
    closes("a tab first", b"\t{GET}\r\n{INNER}", BARE),
    closes("a CR first", b"\r{GET}\r\n{INNER}", BARE),
    closes("a NUL first", b"\0{GET}\r\n{INNER}", BARE),
    closes("a byte order mark first", b"\xef\xbb\xbf{GET}\r\n{INNER}", BARE),
    closes("a line of one space", b"{GET}X: 1\r\n \r\nContent-Length: 5\r\n\r\n{INNER}", BARE),
    closes("a line of one tab at the end", b"{GET}\t\r\n\r\n{INNER}", BARE),
    closes("a host with a folded line", b"GET /docs HTTP/1.1\r\nHost: a\r\n b\r\n\r\n{INNER}", BARE),
    closes("a key with a folded line", b"GET /docs HTTP/1.1\r\nHost: a\r\nX-API-Key:\r\n\t{KEY}\r\n\r\n{INNER}", BARE),
];

/// Names and values.
#[rustfmt::skip]
pub const NAMES: &[Row] = &[
    closes("a space in a name", b"{GET}X Y: 1\r\n\r\n{INNER}", BARE),
    closes("a tab before a colon", b"{GET}X\t: 1\r\n\r\n{INNER}", BARE),
    closes("only a colon", b"{GET}:\r\n\r\n{INNER}", BARE),
    closes("only spaces before a colon", b"{GET} : x\r\n\r\n{INNER}", BARE),
    closes("a name in quotes", b"{GET}\"X\": 1\r\n\r\n{INNER}", BARE),
    closes("a name with a bracket", b"{GET}X[0]: 1\r\n\r\n{INNER}", BARE),
    closes("a name with a slash", b"{GET}X/Y: 1\r\n\r\n{INNER}", BARE),
    closes("a name with an equals sign", b"{GET}X=Y\r\n\r\n{INNER}", BARE),
    closes("a name with a comma", b"{GET}Host,X: 1\r\n\r\n{INNER}", BARE),
    closes("a name with a high byte", b"{GET}X\x80: 1\r\n\r\n{INNER}", BARE),
    closes("a name in UTF-8", b"{GET}X-\xc3\xa4: 1\r\n\r\n{INNER}", BARE),
    closes("a NUL in a name", b"{GET}X\0Y: 1\r\n\r\n{INNER}", BARE),
    closes("a request line among the fields", b"{GET}GET /api/v1/index HTTP/1.1\r\n\r\n{INNER}", BARE),
    serves("all characters allowed in a name", b"{GET}!#$%&'*+-.^_`|~09aZ: 1\r\n\r\n"),
    closes("a NUL in a value", b"{GET}X: a\0b\r\n\r\n{INNER}", BARE),
    closes("a control character in a value", b"{GET}X: a\x01b\r\n\r\n{INNER}", BARE),
    closes("an escape in a value", b"{GET}User-Agent: \x1b[31mred\r\n\r\n{INNER}", BARE),
    closes("a DEL in a value", b"{GET}X: a\x7fb\r\n\r\n{INNER}", BARE),
    closes("a vertical tab in a value", b"{GET}X: a\x0bb\r\n\r\n{INNER}", BARE),
    serves("high bytes in a value", b"{GET}X: \x80\xff\r\n\r\n"),
    serves("UTF-8 in a value", b"{GET}User-Agent: \xe2\x80\xaek\xc3\xa4se\r\n\r\n"),
    serves("a tab in a value", b"{GET}X: a\tb\r\n\r\n"),
    serves("a value of spaces only", b"{GET}X: \t  \r\n\r\n"),
    serves("no value", b"{GET}X:\r\n\r\n"),
    serves("no space after the colon", b"{GET}X:1\r\n\r\n"),
    serves("two colons", b"{GET}X::1\r\n\r\n"),
    serves("one name ten times", b"{GET}{field*10}\r\n"),
];

/// Methods and sizes.
#[rustfmt::skip]
pub const SIZES: &[Row] = &[
    closes("a tab after the method", b"GET\t/docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("a NUL in the method", b"GE\0T /docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("a colon in the method", b"GET: /docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    closes("no method", b" /docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", BARE),
    refuses("a method of other characters", b"!#$%&'*+-.^_`|~ /docs HTTP/1.1\r\nHost: a\r\n\r\n", METHOD),
    refuses("GET with a digit", b"GET1 /docs HTTP/1.1\r\nHost: a\r\n\r\n", METHOD),
    refuses("a method of 300 characters", b"{x*300} /docs HTTP/1.1\r\nHost: a\r\n\r\n", METHOD),
    refuses("a TRACE that would echo a key", b"TRACE /docs HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\nMax-Forwards: 0\r\n\r\n", METHOD),
    refuses("a PURGE", b"PURGE /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {KEY}\r\n\r\n", METHOD),
    closes("a method larger than the maximum head", b"{x*17000} /docs HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", LARGE),
    serves("a field of 8,000 bytes", b"{GET}Cookie: {x*8000}\r\n\r\n"),
    serves("a name of 4,000 bytes", b"{GET}{x*4000}: 1\r\n\r\n"),
    closes("one field too large", b"{GET}Cookie: {x*16384}\r\n\r\n{INNER}", LARGE),
    closes("a name too large", b"{GET}{x*16384}: 1\r\n\r\n{INNER}", LARGE),
    closes("a head of nearly 32 KiB", b"{GET}Cookie: {x*32000}\r\n\r\n", LARGE),
    closes("a head of more than 32 KiB", b"{GET}Cookie: {x*33000}\r\n\r\n{INNER}", LARGE),
    closes("a head of nearly 64 KiB", b"{GET}Cookie: {x*65000}\r\n\r\n{INNER}", LARGE),
    closes("a field larger than 24 KiB after 100 fields", b"{GET}{field*99}Cookie: {x*25000}\r\n\r\n{INNER}", LARGE),
    row("a value after 25,000 spaces", b"{GET}X:{space*25000}a\r\n\r\n{INNER}", OK, Closed, &[MODELS]),
    row("a value before 25,000 spaces", b"{GET}X: a{space*25000}\r\n\r\n{INNER}", OK, Closed, &[MODELS]),
    closes("an invalid field after 24 KiB", b"{GET}Cookie: {x*25000}\r\nX : 1\r\n\r\n{INNER}", BARE),
    closes("a line end without CR after 24 KiB", b"{GET}Cookie: {x*25000}\nX: 1\r\n\r\n{INNER}", BARE),
    closes("a key of 64 KiB: rejected by the codec", b"GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {x*65536}\r\n\r\n", BARE_LARGE),
    closes("100 fields", b"{GET}{field*98}\r\n{INNER}", LARGE),
    closes("101 fields", b"{GET}{field*99}\r\n{INNER}", LARGE),
    closes("256 fields", b"{GET}{field*254}\r\n{INNER}", LARGE),
    closes("257 fields: rejected by the codec", b"{GET}{field*255}\r\n{INNER}", BARE_LARGE),
    closes("101 fields and a body", b"{GET}{field*99}Content-Length: 5\r\n\r\nhello{INNER}", LARGE),
    closes("65 empty fields", b"{GET}{blank*63}\r\n{INNER}", LARGE),
    closes("a target far too long", b"GET /api/v1/models?x={x*20000} HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", LONG),
    closes("a target of more than 32 KiB", b"GET /{x*33000} HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", LONG),
    closes("a target of more than 64 KiB: rejected by the codec", b"GET /{x*66000} HTTP/1.1\r\nHost: a\r\n\r\n", BARE_LARGE),
    closes("a target too long in a head too large", b"GET /{x*3000} HTTP/1.1\r\nHost: a\r\nCookie: {x*17000}\r\n\r\n{INNER}", LONG),
    closes("a target too long and an unknown method", b"BREW /{x*3000} HTTP/1.1\r\nHost: a\r\n\r\n{INNER}", LONG),
    closes("a head too large with two hosts", b"{GET}Host: b\r\nCookie: {x*17000}\r\n\r\n{INNER}", LARGE),
    closes("two hosts and an unknown method", b"BREW /docs HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n{INNER}", BAD),
];
