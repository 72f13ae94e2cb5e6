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
pub(super) fn render(refusal: &Refusal, told: &LimitStatus, request_id: &str, as_problem: bool) -> Bytes {
    let row = refusal.code().row();
    let message = refusal.message(told);
    let mut body = Vec::with_capacity(CAPACITY);
    body.push(b'{');
    ErrorBody::new(row, &message, refusal.param()).write(&mut body);
    if refusal.rule().is_some() {
        limit(&mut body, told);
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
fn limit(body: &mut Vec<u8>, told: &LimitStatus) {
    let (name, window, reset) = (told.rule.name(), told.rule.window_seconds(), told.reset.rfc3339());
    let LimitStatus { limit, remaining, .. } = told;
    let wait = whole_seconds(told.wait);
    put(body, format_args!(",\"limit\":{{\"name\":\"{name}\",\"quota\":{limit},\"remaining\":{remaining},"));
    put(body, format_args!("\"window_seconds\":{window},\"reset_at\":\"{reset}\",\"retry_after\":{wait}}}"));
}

fn put(body: &mut Vec<u8>, words: std::fmt::Arguments<'_>) {
    body.write_fmt(words).expect("there is always room in a list of bytes");
}
