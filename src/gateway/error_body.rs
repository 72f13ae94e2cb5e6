//! The body of an error: what all say, and what the gateway knows besides; the same object as RFC 9457's problem for those
//! who ask for that.

use bytes::Bytes;
use serde::Serialize;

use crate::limits::Standing;
use crate::routes::ErrorBody;

use super::refusal::{Refusal, whole_seconds};

#[derive(Serialize)]
struct Body<'a> {
    #[serde(flatten)]
    error: ErrorBody<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<LimitHit>,
    request_id: &'a str,
    docs: &'a str,
    #[serde(flatten)]
    problem: Option<Problem<'a>>,
}

/// Which limit was hit.
#[derive(Serialize)]
struct LimitHit {
    name: &'static str,
    quota: u32,
    remaining: u32,
    window_seconds: u32,
    reset_at: String,
    retry_after: u64,
}

/// What RFC 9457 adds.
#[derive(Serialize)]
struct Problem<'a> {
    r#type: &'a str,
    title: &'static str,
    detail: &'a str,
    instance: String,
}

/// Renders the body.
pub(super) fn render(refusal: &Refusal, told: &Standing, request_id: &str, as_problem: bool) -> Bytes {
    let row = refusal.code().row();
    let message = refusal.message(told);
    let docs = format!("/docs#{}", row.word);
    let body = Body {
        error: ErrorBody::new(row, &message, refusal.param()),
        limit: refusal.rule().map(|_| limit_hit(told)),
        request_id,
        docs: &docs,
        problem: as_problem.then(|| Problem {
            r#type: &docs,
            title: row.title,
            detail: &message,
            instance: format!("urn:scoregate:request:{request_id}"),
        }),
    };
    Bytes::from(serde_json::to_vec(&body).expect("texts and numbers always make JSON"))
}

fn limit_hit(told: &Standing) -> LimitHit {
    LimitHit {
        name: told.rule.name(),
        quota: told.limit,
        remaining: told.remaining,
        window_seconds: told.rule.window_seconds(),
        reset_at: told.reset.rfc3339(),
        retry_after: whole_seconds(told.wait),
    }
}
