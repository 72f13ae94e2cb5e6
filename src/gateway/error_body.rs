//! The body of an error response: common members and, where known, details. As an RFC 9457 problem if the client
//! accepts that.

use std::io::Write as _;

use bytes::Bytes;

use crate::limits::LimitStatus;
use crate::routes::ErrorBody;

use super::refusal::{Refusal, whole_seconds};

/// Initial capacity; enough for a usual body.
const CAPACITY: usize = 768;

/// Renders the body.
pub(super) fn render(refusal: &Refusal, status: &LimitStatus, request_id: &str, as_problem: bool) -> Bytes {
    let row = refusal.code().row();
    let message = refusal.message(status);
    let mut body = Vec::with_capacity(CAPACITY);
    body.push(b'{');
    ErrorBody::new(row, &message, refusal.param()).write(&mut body);
    if refusal.rule().is_some() {
        limit(&mut body, status);
    }
    let word = row.word;
    // Safe to insert: both kinds of request id contain only letters, digits and `._-`.
    put(&mut body, format_args!(",\"request_id\":\"{request_id}\",\"docs\":\"/docs#{word}\""));
    if as_problem {
        let [title, detail] = [row.title, &message].map(serde_json::Value::from);
        put(&mut body, format_args!(",\"type\":\"/docs#{word}\",\"title\":{title},\"detail\":{detail}"));
        put(&mut body, format_args!(",\"instance\":\"urn:scoregate:request:{request_id}\""));
    }
    body.push(b'}');
    Bytes::from(body)
}

/// Writes the exhausted limit.
fn limit(body: &mut Vec<u8>, status: &LimitStatus) {
    let (name, window, reset) = (status.rule.name(), status.rule.window_seconds(), status.reset.rfc3339());
    let LimitStatus { limit, remaining, .. } = status;
    let wait = whole_seconds(status.wait);
    put(body, format_args!(",\"limit\":{{\"name\":\"{name}\",\"quota\":{limit},\"remaining\":{remaining},"));
    put(body, format_args!("\"window_seconds\":{window},\"reset_at\":\"{reset}\",\"retry_after\":{wait}}}"));
}

fn put(body: &mut Vec<u8>, words: std::fmt::Arguments<'_>) {
    body.write_fmt(words).expect("there is always room in a list of bytes");
}
