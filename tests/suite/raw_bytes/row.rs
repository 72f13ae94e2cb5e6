//! The rows of the tables: their form, the little language of their bytes, and the words for what is told.

use crate::raw::After::{self, Closed, Open};

/// A status and the code in its body. The codec's own answers have none: [`NO_BODY`].
pub type Told = (u16, &'static str);

/// In place of a code: the codec's own answer, without a body and without the API's headers.
pub const NO_BODY: &str = "(bare)";

pub const OK: &[Told] = &[(200, "")];
pub const OK_TWICE: &[Told] = &[(200, ""), (200, "")];
pub const OK_THEN_BARE: &[Told] = &[(200, ""), (400, NO_BODY)];
/// To `OPTIONS`.
pub const METHODS: &[Told] = &[(204, "")];
pub const BAD: &[Told] = &[(400, "bad_request")];
pub const BAD_ID: &[Told] = &[(400, "invalid_model_id")];
pub const BARE: &[Told] = &[(400, NO_BODY)];
pub const REQUIRED: &[Told] = &[(401, "api_key_required")];
pub const INVALID: &[Told] = &[(401, "invalid_api_key")];
pub const LOST: &[Told] = &[(404, "not_found")];
pub const METHOD: &[Told] = &[(405, "method_not_allowed")];
pub const LONG: &[Told] = &[(414, "uri_too_long")];
pub const LARGE: &[Told] = &[(431, "headers_too_large")];
pub const BARE_LARGE: &[Told] = &[(431, NO_BODY)];

/// What the backend is asked for `{GET}`: made from parsed values, with what was left unsaid.
pub const MODELS: &str = "/api/v1/models?period=24h&sortBy=combined";
/// What it is asked for `{NEXT}`.
pub const INDEX: &str = "/api/v1/index";

/// A trick, the one way it may end, and what the backend hears of it.
pub struct Row {
    /// What it is.
    pub name: &'static str,
    /// What is sent, in one go, before anything is read: see [`spelled_out`].
    pub bytes: &'static [u8],
    /// The answers, in order.
    pub told: &'static [Told],
    /// What then becomes of the connection.
    pub after: After,
    /// The targets that the backend is asked for, nothing being stored before.
    pub heard: &'static [&'static str],
}

/// A row.
pub const fn row(
    name: &'static str,
    bytes: &'static [u8],
    told: &'static [Told],
    after: After,
    heard: &'static [&'static str],
) -> Row {
    Row { name, bytes, told, after, heard }
}

/// It is refused and ends the connection.
pub const fn closes(name: &'static str, bytes: &'static [u8], told: &'static [Told]) -> Row {
    row(name, bytes, told, Closed, &[])
}

/// It is refused, or answered without the backend, and the connection goes on.
pub const fn stays(name: &'static str, bytes: &'static [u8], told: &'static [Told]) -> Row {
    row(name, bytes, told, Open, &[])
}

/// `{GET}` is answered as if the rest were not there.
pub const fn serves(name: &'static str, bytes: &'static [u8]) -> Row {
    row(name, bytes, OK, Open, &[MODELS])
}

/// The keys that rows may use.
pub struct KeyRing {
    /// `{KEY}`
    pub key: String,
    /// `{OTHER}`, of another customer.
    pub other: String,
}

/// The bytes of a row. `{GET}` is the beginning of a good request, to which fields and an empty line may be added;
/// `{BARE}` the same without a key and `{LINE}` without a host too; `{NEXT}` a whole good request and `{INNER}` one
/// that nobody may answer; `{x*N}` so many letters, `{field*N}` so many fields, `{blank*N}` so many without a value,
/// `{empty*N}` so many empty lines.
pub fn spelled_out(bytes: &[u8], keys: &KeyRing) -> Vec<u8> {
    let mut spelled = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(open) = rest.iter().position(|byte| *byte == b'{') {
        let (before, from) = rest.split_at(open);
        spelled.extend_from_slice(before);
        let close = from.iter().position(|byte| *byte == b'}');
        let word = close.and_then(|close| std::str::from_utf8(&from[1..close]).ok());
        if let Some(meant) = word.and_then(|word| meaning(word, keys)) {
            spelled.extend(meant.bytes());
            rest = &from[close.unwrap() + 1..];
        } else {
            spelled.push(b'{');
            rest = &from[1..];
        }
    }
    spelled.extend_from_slice(rest);
    spelled
}

fn meaning(word: &str, keys: &KeyRing) -> Option<String> {
    let KeyRing { key, other } = keys;
    let line = "GET /api/v1/models?period=24h HTTP/1.1\r\n";
    if let Some((what, times)) = word.split_once('*') {
        let what = match what {
            "x" => "x",
            "field" => "X: 1\r\n",
            "blank" => "X:\r\n",
            "empty" => "\r\n",
            _ => return None,
        };
        return Some(what.repeat(times.parse().ok()?));
    }
    match word {
        "KEY" => Some(key.clone()),
        "OTHER" => Some(other.clone()),
        "LINE" => Some(line.into()),
        "BARE" => Some(format!("{line}Host: a\r\n")),
        "GET" => Some(format!("{line}Host: a\r\nX-API-Key: {key}\r\n")),
        "NEXT" => Some(whole("/api/v1/index", key)),
        "INNER" => Some(whole("/api/v1/models/smuggled", key)),
        _ => None,
    }
}

/// A whole good request.
pub fn whole(target: &str, key: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n\r\n")
}
