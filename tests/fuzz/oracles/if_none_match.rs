//! Lines of `If-None-Match`: a copy is current if the list contains its tag as a whole element, weak or strong, or if the
//! value is an asterisk. The oracle looks for the tag at every position.

use http::{HeaderMap, HeaderValue};
use scoregate::gateway::lab;

const TAG: &str = "\"abc-br\"";

/// Fails if the program disagrees with the oracle about whether a copy is current.
pub fn check(bytes: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in bytes.split(|byte| *byte == b'\n').take(8) {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append("if-none-match", value);
        }
    }
    let expected = headers
        .get_all("if-none-match")
        .iter()
        .any(|value| matches(value.as_bytes()));
    assert_eq!(
        lab::is_current(&headers, &HeaderValue::from_static(TAG)),
        expected,
        "{headers:?}"
    );
}

fn matches(value: &[u8]) -> bool {
    value.trim_ascii() == b"*" || (0..value.len()).any(|at| has_tag_at(value, at))
}

fn has_tag_at(value: &[u8], at: usize) -> bool {
    let (before, rest) = value.split_at(at);
    let Some(after) = rest.strip_prefix(TAG.as_bytes()) else {
        return false;
    };
    let is_outside = before.split(|byte| *byte == b'"').count() % 2 == 1;
    let start = before
        .iter()
        .rposition(|byte| *byte == b',')
        .map_or(0, |comma| comma + 1);
    let element = before.get(start..).unwrap_or_default().trim_ascii_start();
    let after = after.trim_ascii_start();
    is_outside
        && (element.is_empty() || element == b"W/")
        && (after.is_empty() || after.starts_with(b","))
}
