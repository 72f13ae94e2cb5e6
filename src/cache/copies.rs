//! Evaluates `If-None-Match`.

use http::{HeaderMap, HeaderValue, header::IF_NONE_MATCH};

/// Whether `If-None-Match` matches this representation (weak comparison), or is exactly `*`.
pub fn is_current(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    headers.get_all(IF_NONE_MATCH).iter().any(|line| {
        line.as_bytes().trim_ascii() == b"*"
            || tags(line.as_bytes())
                .any(|tag| tag.strip_prefix(b"W/").unwrap_or(tag) == etag.as_bytes())
    })
}

/// The elements of a list of tags. A tag may contain commas.
fn tags(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut is_quoted = false;
    line.split(move |byte| {
        is_quoted ^= *byte == b'"';
        *byte == b',' && !is_quoted
    })
    .map(<[u8]>::trim_ascii)
}
