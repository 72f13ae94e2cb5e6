//! The order of checks: size and syntax, method, pages without key, key, route, values, entitlement, admission,
//! cache. Each request here violates two neighbouring rules and gets the error of the first.

use crate::{
    raw::without_request_id,
    world::{World, good},
};
use scoregate_base::limits::{LimitSetting, OwnLimits};

/// Allows enough refusals for a whole test.
const WIDE: &str = "guard.per_minute = 100000";

/// Who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    NoKey,
    WrongKey,
    TwoKeys,
    Free,
    Pro,
    /// A free caller whose minute and day are used up.
    Spent,
}

use Caller::{Free, NoKey, Pro, Spent, TwoKeys, WrongKey};

const ANY: &[Caller] = &[NoKey, WrongKey, TwoKeys, Free, Pro, Spent];
const PAGES: &[&str] = &["/", "/docs", "/openapi.json", "/healthz"];
const API: &[&str] = &[
    "/api/v1/models",
    "/nothing",
    "/api/v1/models/%00",
    "/api/v1/models?period=7D",
    "/api/v1/models?period=latest",
];
const UNKNOWN: &[&str] = &[
    "/api/v1",
    "/api/v2/models",
    "/api/v1/models/",
    "/docs//",
    "//",
    "/admin",
    "/metrics",
];
/// Used in place of a code: the request succeeds.
const FINE: &str = "";

/// Callers, a method, targets, and the code that each of these requests gets.
#[rustfmt::skip]
const ORDER: &[(&[Caller], &str, &[&str], &str)] = &[
    // The method before the pages, the key and the route.
    (ANY, "DELETE", PAGES, "method_not_allowed"),
    (ANY, "DELETE", API, "method_not_allowed"),
    (ANY, "OPTIONS", PAGES, FINE),
    (ANY, "OPTIONS", API, FINE),
    // The pages before the key, and the key before the route, the values and the entitlement.
    (ANY, "GET", PAGES, FINE),
    (&[NoKey], "GET", API, "api_key_required"),
    (&[NoKey], "GET", UNKNOWN, "api_key_required"),
    (&[WrongKey, TwoKeys], "GET", API, "invalid_api_key"),
    (&[WrongKey, TwoKeys], "GET", UNKNOWN, "invalid_api_key"),
    // The route before values, and the value in the path before the values in the query.
    (&[Free, Spent], "GET", &["/api/v1/nothing?period=7D", "/api/v1/models/?period=latest", "/api/v1/models/%00/nothing", "/api/v1/incidents/%00?limit=0"], "not_found"),
    (&[Free, Pro], "GET", &["/api/v1/models/%00/history?period=7D", "/api/v1/models/%00/history?period=latest"], "invalid_model_id"),
    // Values before entitlement, and entitlement before admission.
    (&[Free], "GET", &["/api/v1/models?period=latest&sortBy=x"], "invalid_sort_by"),
    (&[Free], "GET", &["/api/v1/incidents?period=latest&limit=0"], "invalid_limit"),
    (&[Free, Spent], "GET", &["/api/v1/models?period=latest&period=latest", "/api/v1/models?period=7D"], "invalid_period"),
    (&[Spent], "GET", &["/api/v1/models/%00"], "invalid_model_id"),
    (&[Spent], "GET", &["/api/v1/models?period=latest"], "latest_requires_plan"),
    (&[Spent], "GET", &["/api/v1/models"], "quota_exceeded"),
];

#[tokio::test]
async fn order_each_request_gets_the_error_of_the_first_rule_that_it_violates() {
    let world = World::with(WIDE, good).await;
    let [free, pro] = [
        world.customer("free").await.key,
        world.customer("pro").await.key,
    ];
    let own = OwnLimits::NONE
        .with(LimitSetting::Minute, 1)
        .with(LimitSetting::Day, 1);
    let spent = world.customer_with("free", own).await;
    assert_eq!(world.get_as(&spent, "/api/v1/models").await.status, 200);
    let known = without_request_id(&world.get("/api/v1/models").send().await);
    for (callers, method, targets, code) in ORDER {
        for (caller, target) in callers
            .iter()
            .flat_map(|caller| targets.iter().map(move |target| (caller, target)))
        {
            let request = world.request(method, target);
            let request = match caller {
                NoKey => request,
                WrongKey => request.key("wrong"),
                TwoKeys => request.key(&pro).header("X-API-Key", &free),
                Free => request.key(&free),
                Pro => request.key(&pro),
                Spent => request.key(&spent.key),
            };
            let response = request.send().await;
            let row = format!("{method} {target} by {caller:?}");
            if *code == FINE {
                assert!(response.status < 300, "{row}: {}", response.status);
            } else {
                assert_eq!(response.code(), *code, "{row}");
            }
            if *code == "api_key_required" {
                assert_eq!(without_request_id(&response), known, "{row}");
            }
        }
    }
    let limited = "scoregate_limited_total{rule=\"day\",tier=\"free\"}";
    assert_eq!(world.counted(limited).await, 1);
    assert_eq!(world.refused("latest_requires_plan").await, 1);
}

#[tokio::test]
async fn order_admission_before_the_cache_and_the_304() {
    let world = World::new().await;
    let first = world.customer("free").await;
    let stored = world.get_as(&first, "/api/v1/models").await;
    assert_eq!(stored.status, 200);
    // The document is stored and its tag is known, but the minute limit is used up.
    for request in [
        world.get("/api/v1/models"),
        world
            .get("/api/v1/models")
            .header("If-None-Match", stored.header("etag")),
        world.request("HEAD", "/api/v1/models"),
    ] {
        let response = request.key(&first.key).send().await;
        assert_eq!(
            (response.status, response.header("x-ratelimit-resource")),
            (429, "minute")
        );
    }
    assert_eq!(world.backend.count("/api/v1/models"), 1);
    assert_eq!(
        world
            .counted("scoregate_documents_served_total{outcome=\"hit\"}")
            .await,
        0
    );
}
