//! The body of an error response: common members and, if known, details. The body is an RFC 9457 problem if the client
//! prefers that format.

use bytes::Bytes;

use crate::gateway::{Refusal, ServiceNotice, refusal::whole_seconds};
use scoregate_base::{
    limits::LimitStatus,
    routes::{ErrorBody, append, append_string, bodies::TIER, codes::ErrorCode},
};

use super::remedy_links::RemedyLink;

/// The problem types that draft-ietf-httpapi-ratelimit-headers-11 registers, with their titles. The draft may change.
const REGISTRY: &str = "https://iana.org/assignments/http-problem-types#";
const QUOTA_EXCEEDED: &str = "Request cannot be satisfied as assigned quota has been exceeded";
const REDUCED_CAPACITY: &str =
    "Request cannot be satisfied due to temporary server capacity constraints";
/// Initial capacity, which is enough for a typical body.
const CAPACITY: usize = 768;

/// Renders the body.
pub fn render(
    refusal: &Refusal,
    status: &LimitStatus,
    request_id: &str,
    as_problem: bool,
    notice: &ServiceNotice,
) -> Bytes {
    let row = refusal.code().row();
    let message = refusal.message(status, &notice.tiers);
    let mut body = Vec::with_capacity(CAPACITY);
    body.push(b'{');
    ErrorBody::new(row, &message, refusal.param()).write(&mut body);
    if let Refusal::PlanRequired(gap) = refusal
        && let Some(tier) = gap.tier_field(&notice.tiers)
    {
        append(&mut body, &[",\"", TIER, "\":"]);
        append_string(&mut body, tier);
    }
    if refusal.rule().is_some() {
        limit(&mut body, status);
    }
    if let Some(RemedyLink { member, url, .. }) = notice.links.of(refusal, status) {
        append(&mut body, &[",\"", member, "\":"]);
        append_string(&mut body, url);
    }
    let word = row.word;
    // The id needs no escaping: both kinds of request id contain only letters, digits and `._-`.
    append(
        &mut body,
        &[
            ",\"request_id\":\"",
            request_id,
            "\",\"docs\":\"/docs#",
            word,
            "\"",
        ],
    );
    if as_problem {
        problem_type(&mut body, refusal, notice.links.root());
        append(&mut body, &[",\"detail\":"]);
        append_string(&mut body, &message);
        append(
            &mut body,
            &[",\"instance\":\"urn:scoregate:request:", request_id, "\""],
        );
    }
    body.push(b'}');
    Bytes::from(body)
}

/// Writes the problem type: a registered type, or a section of the docs page.
fn problem_type(body: &mut Vec<u8>, refusal: &Refusal, root: &str) {
    let row = refusal.code().row();
    if let Some(rule) = refusal.rule() {
        registered(body, "quota-exceeded", QUOTA_EXCEEDED);
        append(body, &[",\"violated-policies\":[\"", rule.name(), "\"]"]);
    } else if row.code == ErrorCode::Overloaded {
        registered(body, "temporary-reduced-capacity", REDUCED_CAPACITY);
    } else {
        let own = [",\"type\":\"", root, "/docs#", row.word, "\",\"title\":"];
        append(body, &own);
        append_string(body, row.title);
    }
}

/// Writes a registered problem type.
fn registered(body: &mut Vec<u8>, kind: &str, title: &str) {
    let members = [
        ",\"type\":\"",
        REGISTRY,
        kind,
        "\",\"title\":\"",
        title,
        "\"",
    ];
    append(body, &members);
}

/// Writes the exhausted limit.
fn limit(body: &mut Vec<u8>, status: &LimitStatus) {
    append(
        body,
        &[
            ",\"limit\":{\"name\":\"",
            status.rule.name(),
            "\",\"quota\":",
            itoa::Buffer::new().format(status.limit),
            ",\"remaining\":",
            itoa::Buffer::new().format(status.remaining),
            ",\"window_seconds\":",
            itoa::Buffer::new().format(status.window_seconds),
            ",\"reset_at\":\"",
            &status.reset.rfc3339(),
            "\",\"retry_after\":",
            itoa::Buffer::new().format(whole_seconds(status.wait)),
            "}",
        ],
    );
}
