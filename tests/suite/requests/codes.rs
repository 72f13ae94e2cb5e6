//! Every error code, caused by a real request: status, body fields, headers, anchor in the docs.

use scoregate_base::limits::{LimitSetting, OwnLimits};
use std::collections::BTreeSet;
use std::time::Duration;

use scoregate_base::routes::codes::{CODES, CodeRow, ErrorCode};
use serde_json::Value as Json;

use crate::backend::{Act, json, respond};
use crate::client::{RequestBuilder, Response};
use crate::world::{Customer, REGIONS, World, good};

/// A gateway in a state in which a request is always refused with a certain code.
struct Case {
    world: World,
    request: RequestBuilder,
    /// The time to advance while the request waits.
    waits: Option<Duration>,
}

impl Case {
    fn new(world: World, request: RequestBuilder) -> Self {
        Self {
            world,
            request,
            waits: None,
        }
    }

    async fn send(&self, request: RequestBuilder) -> Response {
        let Some(waits) = self.waits else {
            return request.send().await;
        };
        let already_received = self.world.backend.received().len();
        let pass = async {
            self.world.backend.has_received(already_received + 1).await;
            self.world.pass(waits);
        };
        tokio::join!(request.send(), pass).0
    }
}

/// The case of a code; `None` only if no request can cause it. A comment gives the reason.
async fn case(code: ErrorCode) -> Option<Case> {
    Some(match code {
        ErrorCode::BadRequest => {
            unknown_caller(|world| world.get("/").header("Content-Length", "5")).await
        }
        ErrorCode::UriTooLong => {
            unknown_caller(|world| world.get(&format!("/{}", "x".repeat(2_048)))).await
        }
        ErrorCode::HeadersTooLarge => {
            unknown_caller(|world| world.get("/").header("Cookie", &"x".repeat(16_384))).await
        }
        ErrorCode::MethodNotAllowed => {
            unknown_caller(|world| world.request("PATCH", "/api/v1/models")).await
        }
        ErrorCode::ApiKeyRequired => unknown_caller(|world| world.get("/api/v1/models")).await,
        ErrorCode::InvalidApiKey => {
            unknown_caller(|world| world.get("/api/v1/models").key("wrong")).await
        }
        ErrorCode::InvalidModelId => caller("pro", "/api/v1/models/a%2Fb").await,
        ErrorCode::InvalidPeriod => caller("pro", "/api/v1/models?period=7D").await,
        ErrorCode::InvalidSortBy => caller("pro", "/api/v1/models?sortBy=name").await,
        ErrorCode::InvalidLimit => caller("pro", "/api/v1/incidents?limit=0").await,
        ErrorCode::InvalidParameter => caller_of(REGIONS, "pro", "/api/v1/regions?unit=hour").await,
        ErrorCode::LatestRequiresPlan => caller("free", "/api/v1/models?period=latest").await,
        ErrorCode::PlanRequired => {
            let settings = "[tiers.pro]\nminute = 9\nday = 9\npaid = true\nendpoints = [\"model\"]\n\
                            [tiers.teams]\nminute = 9\nday = 9\npaid = true\n";
            caller_of(settings, "pro", "/api/v1/models").await
        }
        ErrorCode::NotFound => caller("pro", "/api/v1/nothing").await,
        ErrorCode::ModelNotFound => caller("pro", "/api/v1/models/nobody").await,
        ErrorCode::QuotaExceeded => {
            spent(
                OwnLimits::NONE
                    .with(LimitSetting::Minute, 100)
                    .with(LimitSetting::Day, 1),
            )
            .await
        }
        ErrorCode::RateLimitExceeded => spent(OwnLimits::NONE.with(LimitSetting::Minute, 1)).await,
        ErrorCode::TooManyRefusals => {
            let world = World::with("guard.per_minute = 1", good).await;
            assert_eq!(world.get("/api/v1/models").send().await.status, 401);
            let request = world.get("/api/v1/models");
            Case::new(world, request)
        }
        ErrorCode::UpstreamInvalid => backend(|| respond("200 OK", &[], "<html>")).await,
        ErrorCode::UpstreamUnavailable => {
            backend(|| respond("503 Service Unavailable", &[("retry-after", "7")], "")).await
        }
        ErrorCode::UpstreamTimeout => Case {
            waits: Some(Duration::from_secs(21)),
            ..backend(|| Act::Hang).await
        },
        ErrorCode::Overloaded => {
            let case = caller("free", "/api/v1/models").await;
            break_the_ledger(&case.world);
            case
        }
        // This is the response to a panic. No request of a client, no response of a backend and no setting is known to
        // cause one.
        ErrorCode::InternalError => return None,
    })
}

async fn unknown_caller(request: impl FnOnce(&World) -> RequestBuilder) -> Case {
    let world = World::new().await;
    let request = request(&world);
    Case::new(world, request)
}

async fn caller(tier: &str, target: &str) -> Case {
    caller_of("", tier, target).await
}

async fn caller_of(settings: &str, tier: &str, target: &str) -> Case {
    let world = World::with(settings, good).await;
    let Customer { key, .. } = world.customer(tier).await;
    let request = world.get(target).key(&key);
    Case::new(world, request)
}

async fn spent(own: OwnLimits) -> Case {
    let world = World::new().await;
    let customer = world.customer_with("pro", own).await;
    let request = world.get("/api/v1/models").key(&customer.key);
    assert_eq!(request.clone().send().await.status, 200);
    Case::new(world, request)
}

async fn backend(act: impl Fn() -> Act + Send + Sync + 'static) -> Case {
    let case = caller("pro", "/api/v1/models").await;
    case.world.backend.set_script(move |_| act());
    case
}

/// Drops the ledger's table, as a damaged file would.
fn break_the_ledger(world: &World) {
    let file = world
        .directory
        .path()
        .join(scoregate_store::Store::FILE_NAME);
    let file = rusqlite::Connection::open(file).unwrap();
    file.execute_batch("ALTER TABLE ledger_days RENAME TO ledger_that_was")
        .unwrap();
}

/// Codes whose bodies name a parameter, with its name.
fn param(code: ErrorCode) -> Option<&'static str> {
    match code {
        ErrorCode::InvalidModelId => Some("id"),
        ErrorCode::InvalidPeriod | ErrorCode::LatestRequiresPlan => Some("period"),
        ErrorCode::InvalidSortBy => Some("sortBy"),
        ErrorCode::InvalidLimit => Some("limit"),
        ErrorCode::InvalidParameter => Some("unit"),
        ErrorCode::BadRequest
        | ErrorCode::ApiKeyRequired
        | ErrorCode::InvalidApiKey
        | ErrorCode::NotFound
        | ErrorCode::PlanRequired
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

const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";

#[tokio::test]
async fn codes_every_code_is_returned_with_its_status_body_and_headers_as_json_problem_and_head() {
    let mut unreached = Vec::new();
    for row in &CODES {
        for (method, kind) in [("GET", JSON), ("GET", PROBLEM), ("HEAD", JSON)] {
            let Some(case) = case(row.code).await else {
                unreached.push(row.word);
                break;
            };
            let mut request = case.request.clone().header("Accept", kind);
            // A PATCH causes `method_not_allowed`; a HEAD cannot.
            let is_head = method == "HEAD" && row.code != ErrorCode::MethodNotAllowed;
            if is_head {
                request = request.method("HEAD");
            }
            let response = case.send(request).await;
            check_headers(row, &response);
            assert_eq!(response.header("content-type"), kind, "{}", row.word);
            if is_head {
                assert!(response.number("content-length") > 0, "{}", row.word);
                assert!(response.body.is_empty(), "{}", row.word);
            } else {
                check_body(row, &response, kind == PROBLEM);
            }
            let counted = case.world.refused(row.word).await;
            assert!(counted >= 1, "{} is not counted", row.word);
            assert_eq!(case.world.counted("scoregate_panics_total").await, 0);
        }
    }
    assert_eq!(unreached, ["internal_error"]);
}

/// The body and the message of a refused request.
async fn refused(tier: &str, target: &str) -> (Json, String) {
    let case = caller(tier, target).await;
    let body = case.send(case.request.clone()).await.json();
    let message = body["message"].as_str().unwrap().to_owned();
    (body, message)
}

#[tokio::test]
async fn codes_allowed_periods_are_those_of_this_key() {
    let free = serde_json::json!(["24h", "7d", "1m"]);
    let paid = serde_json::json!(["latest", "24h", "7d", "1m"]);
    let (body, _) = refused("free", "/api/v1/models?period=latest").await;
    assert_eq!(body["allowed"], free);
    for target in [
        "/api/v1/models?period=7D",
        "/api/v1/incidents?period=",
        "/api/v1/models?period=1m&period=1m",
    ] {
        let (body, message) = refused("free", target).await;
        assert_eq!(body["allowed"], free, "{target}");
        assert!(
            message.ends_with("Allowed: 24h, 7d, 1m."),
            "{target}: {message}"
        );
        let (body, message) = refused("pro", target).await;
        assert_eq!(body["allowed"], paid, "{target}");
        assert!(
            message.ends_with("Allowed: latest, 24h, 7d, 1m."),
            "{target}: {message}"
        );
    }
}

#[tokio::test]
async fn codes_messages_use_the_singular_for_one_request() {
    let limited = case(ErrorCode::RateLimitExceeded).await.unwrap();
    let message = limited.request.send().await.json()["message"].clone();
    assert_eq!(
        message,
        "Wait 60 s. The limit of 1 request a minute is used up."
    );
    let guarded = case(ErrorCode::TooManyRefusals).await.unwrap();
    let message = guarded.request.send().await.json()["message"].clone();
    assert_eq!(
        message,
        "Wait 60 s. The limit of 1 refused request a minute is used up."
    );
}

#[tokio::test]
async fn codes_the_daily_limit_message_contains_the_quota_and_the_reset() {
    let case = case(ErrorCode::QuotaExceeded).await.unwrap();
    let response = case.request.send().await;
    let words = "Wait until 2026-11-22T00:00:00Z. The daily quota of 1 request is spent.";
    assert_eq!(response.json()["message"], words);
    assert_eq!(response.number("retry-after"), 43_200);
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
