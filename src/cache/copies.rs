//! Evaluates `If-None-Match`.

use http::header::IF_NONE_MATCH;
use http::{HeaderMap, HeaderValue};

/// Whether `If-None-Match` matches this representation (weak comparison), or is exactly `*`.
pub fn is_current(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let named = |line: &HeaderValue| {
        let is_ours = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag) == etag.as_bytes();
        line.as_bytes().trim_ascii() == b"*" || tags(line.as_bytes()).any(is_ours)
    };
    headers.get_all(IF_NONE_MATCH).iter().any(named)
}

/// The elements of a list of tags. A tag may contain commas.
fn tags(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut is_quoted = false;
    let is_separator = move |byte: &u8| {
        is_quoted ^= *byte == b'"';
        *byte == b',' && !is_quoted
    };
    line.split(is_separator).map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn copy_is_current_if_any_sent_tag_matches() {
        let etag = HeaderValue::from_static("\"abc-br\"");
        for current in [
            "\"abc-br\"",
            "W/\"abc-br\"",
            "\"x\", \"abc-br\"",
            "*",
            " \"abc-br\" ",
        ] {
            assert!(is_current(&with(current), &etag), "{current}");
        }
        for other in [
            "\"abc\"",
            "abc-br",
            "\"abc-gz\"",
            "",
            "\"\"",
            "w/\"abc-br\"",
        ] {
            assert!(!is_current(&with(other), &etag), "{other}");
        }
    }

    #[test]
    fn tags_may_contain_commas_and_an_asterisk_must_be_alone() {
        let etag = HeaderValue::from_static("\"abc-br\"");
        for other in ["\"x,*,y\"", "\"x\", *", "\"x,\"abc-br\",y\""] {
            assert!(!is_current(&with(other), &etag), "{other}");
        }
        for current in ["\"x,y\",\"abc-br\"", ",W/\"abc-br\",", " * "] {
            assert!(is_current(&with(current), &etag), "{current}");
        }
    }
}
