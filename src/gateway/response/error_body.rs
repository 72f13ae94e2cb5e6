//! The body of an error response: common members and, where known, details. As an RFC 9457 problem if the client
//! accepts that.

use bytes::Bytes;

use crate::gateway::refusal::{Refusal, whole_seconds};
use crate::gateway::service_notice::ServiceNotice;
use scoregate_base::limits::LimitStatus;
use scoregate_base::routes::bodies::TIER;
use scoregate_base::routes::codes::ErrorCode;
use scoregate_base::routes::{ErrorBody, append, append_string};

use super::remedy_links::RemedyLink;

/// The registered kinds of problems of draft-ietf-httpapi-ratelimit-headers-11, with their titles. A draft may change.
const REGISTRY: &str = "https://iana.org/assignments/http-problem-types#";
const QUOTA_EXCEEDED: &str = "Request cannot be satisfied as assigned quota has been exceeded";
const REDUCED_CAPACITY: &str =
    "Request cannot be satisfied due to temporary server capacity constraints";
/// Initial capacity; enough for a usual body.
const CAPACITY: usize = 768;

/// Renders the body.
pub(crate) fn render(
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
    if let Some(RemedyLink { member, url, .. }) = notice.links.of(refusal) {
        append(&mut body, &[",\"", member, "\":"]);
        append_string(&mut body, url);
    }
    let word = row.word;
    // Safe to insert: both kinds of request id contain only letters, digits and `._-`.
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

/// Writes the kind of problem: one that is registered, or a section of the docs page.
fn problem_type(body: &mut Vec<u8>, refusal: &Refusal, root: &str) {
    let row = refusal.code().row();
    if let Some(rule) = refusal.rule() {
        append(
            body,
            &[
                ",\"type\":\"",
                REGISTRY,
                "quota-exceeded\",\"title\":\"",
                QUOTA_EXCEEDED,
                "\"",
            ],
        );
        append(body, &[",\"violated-policies\":[\"", rule.name(), "\"]"]);
    } else if row.code == ErrorCode::Overloaded {
        append(
            body,
            &[
                ",\"type\":\"",
                REGISTRY,
                "temporary-reduced-capacity\",\"title\":\"",
            ],
        );
        append(body, &[REDUCED_CAPACITY, "\""]);
    } else {
        append(
            body,
            &[",\"type\":\"", root, "/docs#", row.word, "\",\"title\":"],
        );
        append_string(body, row.title);
    }
}

/// Writes the exhausted limit.
fn limit(body: &mut Vec<u8>, status: &LimitStatus) {
    let name = status.rule.name();
    let reset = status.reset.rfc3339();
    let [quota, remaining, window, wait] = &mut [itoa::Buffer::new(); 4];
    append(
        body,
        &[
            ",\"limit\":{\"name\":\"",
            name,
            "\",\"quota\":",
            quota.format(status.limit),
        ],
    );
    append(
        body,
        &[",\"remaining\":", remaining.format(status.remaining)],
    );
    append(
        body,
        &[
            ",\"window_seconds\":",
            window.format(status.rule.window_seconds()),
        ],
    );
    append(body, &[",\"reset_at\":\"", &reset, "\",\"retry_after\":"]);
    append(body, &[wait.format(whole_seconds(status.wait)), "}"]);
}
