//! `/me`: the caller's own tier, limits and usage. The response is different for every key and is never stored.

use bytes::Bytes;
use serde::Serialize;

use crate::gateway::{Gateway, Refusal, response::reply::Reply};
use scoregate_base::{
    clock::{Now, Wall},
    limits::LimitStatus,
    routes::API_VERSION,
};

use super::authenticate::Caller;

#[derive(Serialize)]
struct MeEnvelope<'a> {
    success: bool,
    version: &'static str,
    generated_at: String,
    license: &'a str,
    period: Option<()>,
    sort_by: Option<()>,
    count: u32,
    data: [MeItem<'a>; 1],
}

#[derive(Serialize)]
struct MeItem<'a> {
    application: MeApplication<'a>,
    key_prefix: &'a str,
    tier: &'a str,
    limits: Vec<MeAllowance>,
    key_expires_at: Option<String>,
    next_refresh_at: Option<String>,
    suggested_poll_seconds: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    advice: Vec<String>,
}

#[derive(Serialize)]
struct MeApplication<'a> {
    id: String,
    name: &'a str,
}

#[derive(Serialize)]
struct MeAllowance {
    name: &'static str,
    limit: u32,
    window_seconds: u32,
    used: u32,
    remaining: u32,
    reset_at: String,
}

/// Answers `/me`, the only endpoint that needs no document. A request costs a token from the guard.
pub fn me(
    gateway: &Gateway,
    key_prefix: &str,
    caller: &Caller,
    now: Now,
) -> Result<Reply, Refusal> {
    // The request takes neither a unit nor a minute token, so only the guard limits it.
    if !caller.take_guard_token(now) {
        return Err(Refusal::TooManyRefusals);
    }
    let terms = caller.account.terms();
    let statuses = caller.account.statuses(now);
    let next_refresh = gateway.engine.documents.next_refresh(now.wall);
    let item = MeItem {
        application: MeApplication {
            id: caller.account.id.to_string(),
            name: &caller.account.name(),
        },
        key_prefix,
        tier: &terms.tier_name,
        limits: statuses.iter().map(allowance).collect(),
        key_expires_at: caller.expires_at.map(Wall::rfc3339),
        next_refresh_at: next_refresh.map(Wall::rfc3339),
        suggested_poll_seconds: poll_seconds(&statuses, gateway.notice.cadence_seconds),
        advice: gateway.recorders.requests.advice(&caller.account, now.wall),
    };
    let envelope = MeEnvelope {
        success: true,
        version: API_VERSION,
        generated_at: now.wall.rfc3339(),
        license: &gateway.notice.license,
        period: None,
        sort_by: None,
        count: 1,
        data: [item],
    };
    let body = serde_json::to_vec(&envelope).expect("strings and numbers are always valid JSON");
    Ok(Reply::Me(Bytes::from(body)))
}

fn allowance(limit_status: &LimitStatus) -> MeAllowance {
    MeAllowance {
        name: limit_status.rule.name(),
        limit: limit_status.limit,
        window_seconds: limit_status.window_seconds,
        used: limit_status.limit - limit_status.remaining,
        remaining: limit_status.remaining,
        reset_at: limit_status.reset.rfc3339(),
    }
}

/// The recommended polling interval. One request per refresh keeps a client current. A client whose quota is too small
/// for that should poll as often as its quota allows.
fn poll_seconds(statuses: &[LimitStatus], cadence: u64) -> u64 {
    statuses.iter().fold(cadence, |longest, status| {
        let window = u64::from(status.window_seconds);
        longest.max(window.div_ceil(u64::from(status.limit.max(1))))
    })
}
