//! Every error code, caused by a real request: status, body fields, headers, anchor in the docs.

use std::collections::BTreeSet;

use scoregate_base::{
    limits::{LimitSetting, OwnLimits},
    routes::codes::{CodeRow, ErrorCode},
};
use serde_json::Value as Json;

use crate::{
    backend::json,
    client::Response,
    world::{Customer, World, good},
};

/// Codes whose bodies name a parameter, with its name.
fn param(code: ErrorCode) -> Option<&'static str> {
    match code {
        ErrorCode::InvalidModelId => Some("id"),
        ErrorCode::InvalidPeriod | ErrorCode::LatestRequiresPlan | ErrorCode::PlanRequired => {
            Some("period")
        }
        ErrorCode::InvalidSortBy => Some("sortBy"),
        ErrorCode::InvalidLimit => Some("limit"),
        ErrorCode::InvalidParameter => Some("unit"),
        ErrorCode::BadRequest
        | ErrorCode::ApiKeyRequired
        | ErrorCode::InvalidApiKey
        | ErrorCode::NotFound
        | ErrorCode::ModelNotFound
        | ErrorCode::MethodNotAllowed
        | ErrorCode::UriTooLong
        | ErrorCode::QuotaExceeded
        | ErrorCode::RateLimitExceeded
        | ErrorCode::TooManyRefusals
        | ErrorCode::HeadersTooLarge
        | ErrorCode::InternalError
        | ErrorCode::UpstreamInvalid
        | ErrorCode::UpstreamUnavailable
        | ErrorCode::Overloaded
        | ErrorCode::UpstreamTimeout => None,
    }
}

/// The fields that describe the allowed values of a parameter, each of one type.
fn described(param: &str) -> &'static [&'static str] {
    match param {
        "limit" => &["minimum", "maximum"],
        "id" => &["pattern"],
        _ => &["allowed"],
    }
}

fn fields(body: &Json) -> BTreeSet<&str> {
    body.as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

/// Checks a body against "The body of an error", field by field.
fn check_body(row: &CodeRow, response: &Response, problem: bool) {
    let body = response.json();
    let mut expected = BTreeSet::from([
        "success",
        "version",
        "status",
        "code",
        "message",
        "request_id",
        "docs",
    ]);
    expected.extend((row.status == 429).then_some("limit"));
    expected.extend((row.code == ErrorCode::PlanRequired).then_some("tier"));
    if let Some(param) = param(row.code) {
        expected.extend(["param"].iter().chain(described(param)));
    }
    expected.extend(
        problem
            .then_some(["type", "title", "detail", "instance"])
            .into_iter()
            .flatten(),
    );
    expected.extend((problem && row.status == 429).then_some("violated-policies"));
    assert_eq!(fields(&body), expected, "{}", row.word);
    assert_eq!(body["success"], false);
    assert_eq!(body["version"], "1.0.0");
    assert_eq!(body["status"], row.status.as_u16());
    assert_eq!(body["code"], row.word);
    assert_eq!(body["request_id"], response.header("x-request-id"));
    assert_eq!(body["docs"], format!("/docs#{}", row.word));
    assert!(!body["message"].as_str().unwrap().is_empty());
    for (name, value) in body.as_object().unwrap() {
        let is_flat = !value.is_object() && !value.is_array();
        assert!(
            is_flat || matches!(name.as_str(), "limit" | "allowed" | "violated-policies"),
            "{}: {name} is not flat",
            row.word
        );
    }
    if row.status == 429 {
        check_limit(row, response, &body["limit"]);
    }
    if let Some(param) = param(row.code) {
        assert_eq!(body["param"], param, "{}", row.word);
        for field in described(param) {
            let has_its_type = match *field {
                "allowed" => body[field]
                    .as_array()
                    .is_some_and(|values| values.iter().all(Json::is_string)),
                "pattern" => body[field].is_string(),
                _ => body[field].is_u64(),
            };
            assert!(has_its_type, "{}: {field} is {}", row.word, body[field]);
        }
    }
    if problem {
        let registered =
            |name: &str| format!("https://iana.org/assignments/http-problem-types#{name}");
        let (kind, title) = if row.status == 429 {
            (
                registered("quota-exceeded"),
                "Request cannot be satisfied as assigned quota has been exceeded",
            )
        } else if row.code == ErrorCode::Overloaded {
            let title = "Request cannot be satisfied due to temporary server capacity constraints";
            (registered("temporary-reduced-capacity"), title)
        } else {
            (format!("/docs#{}", row.word), row.title)
        };
        assert_eq!(
            (&body["type"], &body["title"]),
            (&kind.into(), &title.into()),
            "{}",
            row.word
        );
        let policies = if row.status == 429 {
            serde_json::json!([body["limit"]["name"]])
        } else {
            Json::Null
        };
        assert_eq!(body["violated-policies"], policies, "{}", row.word);
        assert_eq!(body["detail"], body["message"], "{}", row.word);
        assert!(
            body["instance"]
                .as_str()
                .unwrap()
                .contains(response.header("x-request-id"))
        );
    }
}

fn check_limit(row: &CodeRow, response: &Response, limit: &Json) {
    let expected = [
        "name",
        "quota",
        "remaining",
        "window_seconds",
        "reset_at",
        "retry_after",
    ];
    assert_eq!(fields(limit), BTreeSet::from(expected), "{}", row.word);
    let rules = [
        (ErrorCode::QuotaExceeded, ("day", 86_400)),
        (ErrorCode::RateLimitExceeded, ("minute", 60)),
        (ErrorCode::TooManyRefusals, ("guard", 60)),
    ];
    let (_, rule) = rules
        .into_iter()
        .find(|(code, _)| *code == row.code)
        .unwrap();
    assert_eq!(
        (&limit["name"], &limit["window_seconds"]),
        (&rule.0.into(), &rule.1.into())
    );
    assert_eq!(response.header("x-ratelimit-resource"), rule.0);
    assert_eq!(limit["remaining"], 0);
    assert_eq!(limit["quota"], response.number("x-ratelimit-limit"));
    assert_eq!(limit["retry_after"], response.number("retry-after"));
    let reset =
        scoregate_base::clock::Wall::parse_rfc3339(limit["reset_at"].as_str().unwrap()).unwrap();
    assert_eq!(reset.seconds(), response.number("x-ratelimit-reset"));
}

fn check_headers(row: &CodeRow, response: &Response) {
    assert_eq!(response.status, row.status.as_u16(), "{}", row.word);
    assert_eq!(response.header("cache-control"), "no-store", "{}", row.word);
    assert_eq!(response.header("etag"), "", "{}", row.word);
    let asks_for_a_key = if row.status == 401 {
        "Bearer realm=\"scoregate\""
    } else {
        ""
    };
    assert_eq!(
        response.header("www-authenticate"),
        asks_for_a_key,
        "{}",
        row.word
    );
    let methods = if row.status == 405 {
        "GET, HEAD, OPTIONS"
    } else {
        ""
    };
    assert_eq!(response.header("allow"), methods, "{}", row.word);
    let says_when = matches!(row.status.as_u16(), 429 | 503);
    assert_eq!(
        !response.header("retry-after").is_empty(),
        says_when,
        "{}",
        row.word
    );
    if says_when {
        assert!(response.number("retry-after") > 0, "{}", row.word);
    }
}

/// Checks all of an error's response to a request that accepts this kind of body.
pub fn check_error(row: &CodeRow, response: &Response, kind: &str, is_head: bool) {
    check_headers(row, response);
    assert_eq!(response.header("content-type"), kind, "{}", row.word);
    if is_head {
        assert!(response.number("content-length") > 0, "{}", row.word);
        assert!(response.body.is_empty(), "{}", row.word);
    } else {
        check_body(row, response, kind == "application/problem+json");
    }
}

#[tokio::test]
async fn codes_allowed_periods_are_those_of_this_key() {
    let world = World::new().await;
    let free = world.customer("free").await;
    let pro = world.customer("pro").await;
    let check = async |customer: &Customer, target: &str, allowed: &[&str]| {
        let body = world.get_as(customer, target).await.json();
        assert_eq!(body["allowed"], serde_json::json!(allowed), "{target}");
        let message = body["message"].as_str().unwrap();
        let words = format!("Allowed: {}.", allowed.join(", "));
        let is_invalid = body["code"] == "invalid_period";
        assert_eq!(message.ends_with(&words), is_invalid, "{target}: {message}");
    };
    let targets = [
        "/api/v1/models?period=7D",
        "/api/v1/incidents?period=",
        "/api/v1/models?period=1m&period=1m",
    ];
    for target in targets {
        check(&free, target, &["24h", "7d", "1m"]).await;
        check(&pro, target, &["latest", "24h", "7d", "1m"]).await;
    }
    let target = "/api/v1/models?period=latest";
    check(&free, target, &["24h", "7d", "1m"]).await;
}

#[tokio::test]
async fn codes_a_429_says_when_the_limit_ends_in_the_singular_for_one_request() {
    let world = World::with("guard.per_minute = 1", good).await;
    let minute = OwnLimits::NONE.with(LimitSetting::Minute, 1);
    let day = OwnLimits::NONE.with(LimitSetting::Day, 1);
    let target = "/api/v1/models";
    let rows = [
        (
            minute,
            target,
            60,
            "Wait 60 s. The limit of 1 request a minute is used up.",
        ),
        (
            day.with(LimitSetting::Minute, 100),
            target,
            43_200,
            "Wait until 2026-11-22T00:00:00Z. The daily quota of 1 request is spent.",
        ),
        (
            OwnLimits::NONE,
            "/api/v1/nothing",
            60,
            "Wait 60 s. The limit of 1 refused request a minute is used up.",
        ),
    ];
    for (limits, target, wait, message) in rows {
        let customer = world.customer_with("pro", limits).await;
        assert_ne!(world.get_as(&customer, target).await.status, 429);
        let refused = world.get_as(&customer, target).await;
        assert_eq!(refused.json()["message"], message);
        assert_eq!(refused.number("retry-after"), wait);
    }
}

#[tokio::test]
async fn codes_an_error_repeats_no_input() {
    let world = World::new().await;
    let pro = world.customer("pro").await;
    for target in [
        "/canary",
        "/api/v1/canary",
        "/api/v1/models/canary%00",
        "/api/v1/models?period=canary",
    ] {
        for key in [pro.key.as_str(), "canary"] {
            let response = world
                .get(target)
                .key(key)
                .header("Accept", "canary")
                .send()
                .await;
            assert!(
                response.status >= 400 && !response.fingerprint.contains("canary"),
                "{target}"
            );
            assert!(
                !String::from_utf8_lossy(&response.body).contains("canary"),
                "{target}"
            );
        }
    }
}

#[tokio::test]
async fn codes_error_texts_of_the_backend_are_never_forwarded() {
    let world = World::with("", |_| json(r#"{"success":false,"error":"canary"}"#)).await;
    let pro = world.customer("pro").await;
    let response = world.get_as(&pro, "/api/v1/models").await;
    assert_eq!(response.code(), "upstream_invalid");
    assert!(!String::from_utf8_lossy(&response.body).contains("canary"));
}
