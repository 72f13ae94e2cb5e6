//! The three rate limit rules as seen by callers: what they grant, when, and their response headers.

use std::{net::Ipv4Addr, time::Duration};

use scoregate_base::routes::Selection;

use crate::{
    backend::respond,
    balances::{own, wide},
    client::Response,
    world::{NOON, World},
};

const MODELS: &str = "/api/v1/models?period=24h";
const NOTHING: &str = "/api/v1/nothing";

/// Noon in seconds since 1970.
fn noon() -> u64 {
    scoregate_base::clock::Wall::parse_rfc3339(NOON)
        .unwrap()
        .seconds()
}

/// The values of the four `X-RateLimit` headers.
fn rate_limit_headers(response: &Response) -> (&str, u64, u64, u64) {
    let number = |name| response.number(name);
    (
        response.header("x-ratelimit-resource"),
        number("x-ratelimit-limit"),
        number("x-ratelimit-remaining"),
        number("x-ratelimit-reset"),
    )
}

#[tokio::test]
async fn the_requests_of_a_minute_can_be_used_in_a_burst_and_are_refilled_one_by_one() {
    let world = World::new().await;
    let customer = world.customer("pro").await;
    for left in (0..60).rev() {
        let response = world.get_as(&customer, MODELS).await;
        assert_eq!(response.status, 200);
        assert!(
            response
                .header("ratelimit")
                .starts_with(&format!("\"minute\";r={left};t={}, ", 60 - left))
        );
    }
    let refused = world.get_as(&customer, MODELS).await;
    assert_eq!(
        (refused.status, refused.code()),
        (429, "rate_limit_exceeded".into())
    );
    assert_eq!(rate_limit_headers(&refused), ("minute", 60, 0, noon() + 1));
    assert_eq!(refused.header("retry-after"), "1");
    let limit = serde_json::json!({"name": "minute", "quota": 60, "remaining": 0, "window_seconds": 60,
        "reset_at": "2026-11-21T12:00:01Z", "retry_after": 1});
    assert_eq!(refused.json()["limit"], limit);

    world.pass(Duration::from_millis(999));
    assert_eq!(world.get_as(&customer, MODELS).await.status, 429);
    world.pass(Duration::from_millis(1));
    assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    assert_eq!(world.get_as(&customer, MODELS).await.status, 429);
    world.pass(Duration::from_mins(1));
    assert_eq!(world.left(&customer).minute, 60);
    world.pass(Duration::from_hours(1));
    assert_eq!(world.left(&customer).minute, 60);
    let counted = world
        .counted("scoregate_limited_total{rule=\"minute\",tier=\"pro\"}")
        .await;
    assert_eq!(counted, 3);
}

#[tokio::test]
async fn a_free_key_has_one_request_a_minute_and_retry_after_is_set() {
    let world = World::new().await;
    let customer = world.customer("free").await;
    assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    world.pass(Duration::from_millis(20_500));
    let refused = world.get_as(&customer, MODELS).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, "40"));
    assert_eq!(rate_limit_headers(&refused), ("minute", 1, 0, noon() + 60));
    assert_eq!(
        refused.header("ratelimit"),
        "\"minute\";r=0;t=40, \"day\";r=9;t=43180"
    );
    world.pass(Duration::from_millis(39_500));
    assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
}

#[tokio::test]
async fn with_the_daily_quota_spent_a_current_copy_is_a_304_and_nothing_is_fetched() {
    let world = World::new().await;
    let customer = world.customer_with("free", own(5, 1)).await;
    let etag = world
        .get_as(&customer, MODELS)
        .await
        .header("etag")
        .to_owned();
    let with = async |target: &str, tag: &str| {
        let before = world.left(&customer);
        let response = world
            .get(target)
            .key(&customer.key)
            .header("If-None-Match", tag)
            .send()
            .await;
        (response.status, before.spent(world.left(&customer)))
    };
    assert_eq!(with(MODELS, &etag).await, (304, (1, 0, 0)));
    assert_eq!(with(MODELS, "\"another\"").await, (429, (0, 0, 0)));
    assert_eq!(
        with("/api/v1/index", &etag).await,
        (429, (0, 0, 0)),
        "a cold cache"
    );
    world.pass(Duration::from_hours(2));
    assert_eq!(
        with(MODELS, &etag).await,
        (304, (1, 0, 0)),
        "an overdue copy"
    );
    assert_eq!(with(MODELS, "\"another\"").await, (429, (0, 0, 0)));
    assert_eq!(world.backend.received().len(), 1);
    assert_eq!(world.refused("quota_exceeded").await, 3);
    assert_eq!(world.counted("scoregate_not_modified_total").await, 2);
}

#[tokio::test]
async fn on_a_cold_cache_with_units_left_a_conditional_request_fetches_and_a_304_spends_none() {
    let world = World::new().await;
    let customer = world.customer_with("free", own(5, 2)).await;
    let etag = world
        .get_as(&customer, MODELS)
        .await
        .header("etag")
        .to_owned();
    assert_eq!(
        world
            .running
            .gateway()
            .engine
            .purge(&Selection::All, true)
            .await,
        1
    );
    let before = world.left(&customer);
    let response = world
        .get(MODELS)
        .key(&customer.key)
        .header("If-None-Match", &etag)
        .send()
        .await;
    assert_eq!(
        (response.status, before.spent(world.left(&customer))),
        (304, (1, 0, 0))
    );
    assert_eq!(world.backend.received().len(), 2);
    assert_eq!(world.served("miss").await, 2);
}

#[tokio::test]
async fn after_sixty_refusals_an_application_is_refused_early_and_no_other_is() {
    let world = World::new().await;
    let [customer, other] = [world.free().await, world.free().await];
    for left in (0..60).rev() {
        let refused = world.get_as(&customer, NOTHING).await;
        assert_eq!(
            (refused.status, refused.code(), refused.closes()),
            (404, "not_found".into(), false)
        );
        let account = world.left(&customer).guard - world.guard_of(Ipv4Addr::LOCALHOST.into());
        assert_eq!(account, left);
    }
    for target in [NOTHING, "/api/v1/me"] {
        let refused = world.get_as(&customer, target).await;
        assert_eq!(
            (refused.status, refused.code()),
            (429, "too_many_refusals".into())
        );
        assert!(refused.closes());
        assert_eq!(rate_limit_headers(&refused), ("guard", 60, 0, noon() + 60));
        assert_eq!(
            (
                refused.header("retry-after"),
                &refused.json()["limit"]["name"]
            ),
            ("1", &"guard".into())
        );
    }
    assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    assert_eq!(world.get_as(&other, NOTHING).await.status, 404);
    assert_eq!(world.get(MODELS).send().await.status, 401);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.get_as(&customer, "/api/v1/me").await.status, 200);
    assert_eq!(world.get_as(&customer, "/api/v1/me").await.status, 429);
    assert_eq!(world.refused("too_many_refusals").await, 3);
}

#[tokio::test]
async fn after_sixty_refusals_an_address_is_refused_and_no_other_address_or_valid_request_is() {
    let world = World::new().await;
    let customer = world.free().await;
    let here = Ipv4Addr::LOCALHOST.into();
    let there = Ipv4Addr::new(127, 0, 0, 2).into();
    for left in (0..60).rev() {
        let refused = world.get(MODELS).key("sg_live_unknown").send().await;
        assert_eq!(
            (refused.status, rate_limit_headers(&refused)),
            (401, ("guard", 60, left, noon() + 60 - left))
        );
        assert_eq!(
            refused.header("ratelimit"),
            format!("\"guard\";r={left};t={}", 60 - left)
        );
        assert_eq!(refused.header("ratelimit-policy"), "\"guard\";q=60;w=60");
    }
    for refused in [
        world.get(MODELS).send().await,
        world.request("PUT", MODELS).key(&customer.key).send().await,
    ] {
        assert_eq!(
            (refused.status, refused.code()),
            (429, "too_many_refusals".into())
        );
        assert_eq!(rate_limit_headers(&refused), ("guard", 60, 0, noon() + 60));
        assert!(refused.closes());
    }
    assert_eq!((world.guard_of(here), world.guard_of(there)), (0, 60));
    assert_eq!(world.get(MODELS).send_from(there).await.status, 401);
    assert_eq!(world.guard_of(there), 59);
    assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    assert_eq!(world.get_as(&customer, NOTHING).await.status, 404);
    assert_eq!(world.get("/docs").send().await.status, 200);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.get(MODELS).send().await.status, 401);
    let counted = world
        .counted("scoregate_limited_total{rule=\"guard\",tier=\"none\"}")
        .await;
    assert_eq!(counted, 2);
}

#[tokio::test]
async fn every_response_names_the_rule_of_its_rate_limit_headers() {
    let world = World::new().await;
    let customer = world.customer_with("pro", wide()).await;
    let midnight = noon() + 43_200;
    for (target, status, resource) in [
        (MODELS, 200, "day"),
        ("/api/v1/me", 200, "day"),
        (NOTHING, 404, "day"),
        ("/api/v1/models/nobody", 404, "day"),
        ("/api/v1/models?period=x", 400, "day"),
        ("/docs", 200, "guard"),
        ("/healthz", 200, "guard"),
    ] {
        let response = world.get_as(&customer, target).await;
        assert_eq!(
            (response.status, rate_limit_headers(&response).0),
            (status, resource),
            "{target}"
        );
        assert_eq!(
            rate_limit_headers(&response).3 == midnight,
            resource == "day",
            "{target}"
        );
    }
    for (request, status) in [
        (world.get(MODELS), 401),
        (world.get(MODELS).key(&customer.key).without_host(), 400),
        (world.request("PUT", MODELS).key(&customer.key), 405),
        (world.request("OPTIONS", MODELS).key(&customer.key), 204),
    ] {
        let response = request.send().await;
        assert_eq!(
            (response.status, rate_limit_headers(&response).0),
            (status, "guard")
        );
    }
}

#[tokio::test]
async fn limits_of_an_application_override_those_of_its_tier() {
    let world = World::new().await;
    let customer = world.customer_with("pro", own(3, 7)).await;
    let response = world.get_as(&customer, MODELS).await;
    assert_eq!(
        response.header("ratelimit-policy"),
        "\"minute\";q=3;w=60, \"day\";q=7;w=86400"
    );
    assert_eq!(
        response.header("ratelimit"),
        "\"minute\";r=2;t=20, \"day\";r=6;t=43200"
    );
    let limits = world.get_as(&customer, "/api/v1/me").await.json()["data"][0]["limits"].clone();
    assert_eq!(
        (
            &limits[0]["limit"],
            &limits[0]["used"],
            &limits[0]["remaining"]
        ),
        (&3.into(), &1.into(), &2.into())
    );
    assert_eq!(
        (
            &limits[1]["limit"],
            &limits[1]["used"],
            &limits[1]["remaining"]
        ),
        (&7.into(), &1.into(), &6.into())
    );
    assert_eq!(limits[0]["reset_at"], "2026-11-21T12:00:20Z");
    for _ in 0..2 {
        assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    }
    let refused = world.get_as(&customer, MODELS).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, "20"));
}

#[tokio::test]
async fn retry_after_of_a_503_that_spent_a_token_is_never_before_the_next_token() {
    for (tier, from_backend, expected) in [
        ("free", None, "60"),
        ("free", Some("7"), "60"),
        ("free", Some("90"), "90"),
        ("pro", None, "5"),
        ("pro", Some("7"), "7"),
    ] {
        let world = World::new().await;
        let customer = world.customer(tier).await;
        let headers: Vec<_> = from_backend
            .map(|seconds| ("retry-after", seconds))
            .into_iter()
            .collect();
        world
            .backend
            .next(respond("503 Service Unavailable", &headers, ""));
        let refused = world.get_as(&customer, MODELS).await;
        assert_eq!(
            (refused.status, refused.header("retry-after")),
            (503, expected),
            "{tier} {from_backend:?}"
        );
        assert_eq!(world.refused("upstream_unavailable").await, 1);
    }
}

#[tokio::test]
async fn the_current_use_of_an_application_is_what_me_shows_its_keys() {
    let world = World::new().await;
    let customer = world.customer("pro").await;
    for _ in 0..3 {
        assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    }
    let me = world.get_as(&customer, "/api/v1/me").await.json();
    let [minute, day] = [0, 1].map(|place| &me["data"][0]["limits"][place]);
    let registrar = &world.running.registrar;
    let used = registrar
        .current_use(&registrar.show(customer.id).await.unwrap())
        .unwrap();
    assert_eq!((used[1].remaining, used[1].limit), (9_997, 10_000));
    for (shown, status) in [minute, day].into_iter().zip(used) {
        assert!(status.remaining < status.limit);
        assert_eq!(
            (&shown["remaining"], &shown["limit"]),
            (&status.remaining.into(), &status.limit.into())
        );
        assert_eq!(shown["reset_at"], status.reset.rfc3339());
    }
}
