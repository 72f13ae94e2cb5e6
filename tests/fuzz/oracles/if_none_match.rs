//! Lines of `If-None-Match`: a copy is current if its tag stands there, weak or not, as a whole element of the list, or if
//! the value is an asterisk and nothing else. The tag is looked for at every place by itself.

use http::{HeaderMap, HeaderValue};
use scoregate::gateway::cache_hit;

const TAG: &str = "\"abc-br\"";

/// Fails if the program takes a copy for current that is not, or the other way round.
pub fn check(bytes: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in bytes.split(|byte| *byte == b'\n').take(8) {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append("if-none-match", value);
        }
    }
    let expected = headers.get_all("if-none-match").iter().any(|value| names(value.as_bytes()));
    assert_eq!(cache_hit::is_current(&headers, &HeaderValue::from_static(TAG)), expected, "{headers:?}");
}

fn names(value: &[u8]) -> bool {
    value.trim_ascii() == b"*" || (0..value.len()).any(|at| stands_at(value, at))
}

fn stands_at(value: &[u8], at: usize) -> bool {
    let (before, rest) = value.split_at(at);
    let Some(behind) = rest.strip_prefix(TAG.as_bytes()) else { return false };
    let is_outside = before.split(|byte| *byte == b'"').count() % 2 == 1;
    let since = before.iter().rposition(|byte| *byte == b',').map_or(0, |comma| comma + 1);
    let element = before.get(since..).unwrap_or_default().trim_ascii_start();
    let ends = behind.trim_ascii_start();
    is_outside && (element.is_empty() || element == b"W/") && (ends.is_empty() || ends.starts_with(b","))
}
