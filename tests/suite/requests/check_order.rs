//! The order of checks: size and syntax, method, pages without key, key, route, values, entitlement, admission,
//! cache. Each request here violates two neighbouring rules and gets the error of the first.

use scoregate_store::OwnLimits;

use crate::backend::{json, respond};
use crate::raw::without_request_id;
use crate::world::{World, good};

/// Allows enough refusals for a whole test.
const WIDE: &str = "guard.per_minute = 100000";

#[tokio::test]
async fn order_size_before_syntax() {
    let world = World::new().await;
    let long = format!("/{}", "x".repeat(2_048));
    let response = world
        .get(&long)
        .header("Content-Length", "5")
        .without_host()
        .send()
        .await;
    assert_eq!(
        (response.status, response.code()),
        (414, "uri_too_long".into())
    );
    let response = world
        .get("/")
        .header("Cookie", &"x".repeat(16_384))
        .header("Host", "second")
        .send()
        .await;
    assert_eq!(
        (response.status, response.code()),
        (431, "headers_too_large".into())
    );
}

#[tokio::test]
async fn order_target_size_before_head_size() {
    let world = World::new().await;
    let long = format!("/{}", "x".repeat(2_048));
    let response = world
        .get(&long)
        .header("Cookie", &"x".repeat(16_384))
        .send()
        .await;
    assert_eq!(
        (response.status, response.code()),
        (414, "uri_too_long".into())
    );
}

#[tokio::test]
async fn order_size_and_syntax_before_method() {
    let world = World::new().await;
    let long = format!("/{}", "x".repeat(2_048));
    assert_eq!(
        world.request("PUT", &long).send().await.code(),
        "uri_too_long"
    );
    assert_eq!(
        world
            .request("PUT", "/")
            .header("Host", "second")
            .send()
            .await
            .code(),
        "bad_request"
    );
    assert_eq!(
        world
            .request("OPTIONS", "/")
            .header("Host", "second")
            .send()
            .await
            .code(),
        "bad_request"
    );
    assert_eq!(
        world
            .counted("scoregate_refusals_total{code=\"method_not_allowed\"}")
            .await,
        0
    );
}

#[tokio::test]
async fn order_method_before_pages_without_a_key() {
    let world = World::new().await;
    for page in ["/", "/docs", "/openapi.json", "/healthz"] {
        assert_eq!(
            world.request("POST", page).send().await.code(),
            "method_not_allowed",
            "{page}"
        );
        assert_eq!(
            world.request("OPTIONS", page).send().await.status,
            204,
            "{page}"
        );
    }
    assert_eq!(
        world
            .counted("scoregate_refusals_total{code=\"method_not_allowed\"}")
            .await,
        4
    );
}

#[tokio::test]
async fn order_method_before_key_and_route() {
    let world = World::new().await;
    let customer = world.customer("pro").await;
    for target in [
        "/api/v1/models",
        "/nothing",
        "/api/v1/models/%00",
        "/api/v1/models?period=7D",
    ] {
        assert_eq!(
            world.request("DELETE", target).send().await.code(),
            "method_not_allowed",
            "{target}"
        );
        assert_eq!(
            world
                .request("DELETE", target)
                .key("wrong")
                .send()
                .await
                .code(),
            "method_not_allowed"
        );
        assert_eq!(
            world
                .request("DELETE", target)
                .key(&customer.key)
                .send()
                .await
                .code(),
            "method_not_allowed"
        );
        assert_eq!(
            world.request("OPTIONS", target).send().await.status,
            204,
            "{target}"
        );
    }
}

#[tokio::test]
async fn order_the_405_is_the_same_for_every_path() {
    let world = World::new().await;
    let customer = world.customer("pro").await;
    let known = world.request("POST", "/api/v1/models").send().await;
    for target in [
        "/",
        "/docs",
        "/healthz",
        "/api/v1/me",
        "/api/v1/models/atlas",
        "/nothing",
        "//",
        "/%2e%2e",
    ] {
        for request in [
            world.request("POST", target),
            world.request("POST", target).key(&customer.key),
        ] {
            let response = request.send().await;
            assert_eq!(
                (response.status, response.header("allow")),
                (405, "GET, HEAD, OPTIONS"),
                "{target}"
            );
            assert_eq!(
                without_request_id(&response),
                without_request_id(&known),
                "{target}"
            );
            let names = |response: &crate::client::Response| {
                response
                    .headers
                    .iter()
                    .map(|(name, _)| name.clone())
                    .collect::<Vec<_>>()
            };
            assert_eq!(names(&response), names(&known), "{target}");
        }
    }
}

#[tokio::test]
async fn order_the_pages_before_the_key() {
    let world = World::new().await;
    for page in ["/", "/docs", "/openapi.json", "/healthz"] {
        assert_eq!(world.get(page).send().await.status, 200, "{page}");
        assert_eq!(
            world.get(page).key("wrong").send().await.status,
            200,
            "{page}"
        );
        assert_eq!(
            world
                .get(page)
                .key("one")
                .header("X-API-Key", "two")
                .send()
                .await
                .status,
            200,
            "{page}"
        );
    }
    assert_eq!(
        world
            .counted("scoregate_requests_total{endpoint=\"page\",class=\"2xx\"}")
            .await,
        12
    );
}

#[tokio::test]
async fn order_an_unknown_path_without_a_key_is_a_401() {
    let world = World::new().await;
    let known = world.get("/api/v1/models").send().await;
    assert_eq!(
        (known.status, known.code()),
        (401, "api_key_required".into())
    );
    for target in [
        "/nothing",
        "/api/v1",
        "/api/v2/models",
        "/api/v1/models/",
        "/docs//",
        "//",
        "/admin",
        "/metrics",
    ] {
        let response = world.get(target).send().await;
        assert_eq!(
            (response.status, without_request_id(&response)),
            (401, without_request_id(&known)),
            "{target}"
        );
        let response = world.get(target).key("wrong").send().await;
        assert_eq!(
            (response.status, response.code()),
            (401, "invalid_api_key".into()),
            "{target}"
        );
    }
    assert_eq!(
        world
            .counted("scoregate_refusals_total{code=\"not_found\"}")
            .await,
        0
    );
}

#[tokio::test]
async fn order_key_before_values_and_entitlement() {
    let world = World::new().await;
    for target in [
        "/api/v1/models?period=7D",
        "/api/v1/models/%00",
        "/api/v1/models?period=latest",
    ] {
        assert_eq!(
            world.get(target).send().await.code(),
            "api_key_required",
            "{target}"
        );
        assert_eq!(
            world.get(target).key("wrong").send().await.code(),
            "invalid_api_key",
            "{target}"
        );
    }
}

#[tokio::test]
async fn order_route_before_values() {
    let world = World::new().await;
    let customer = world.customer("free").await;
    for target in [
        "/api/v1/nothing?period=7D",
        "/api/v1/models/?period=latest",
        "/api/v1/models/%00/nothing",
        "/api/v1/incidents/%00?limit=0",
    ] {
        let response = world.get(target).key(&customer.key).send().await;
        assert_eq!(
            (response.status, response.code()),
            (404, "not_found".into()),
            "{target}"
        );
    }
}

#[tokio::test]
async fn order_values_before_entitlement() {
    let world = World::new().await;
    let free = world.customer("free").await;
    for (target, code) in [
        ("/api/v1/models?period=latest&sortBy=x", "invalid_sort_by"),
        ("/api/v1/incidents?period=latest&limit=0", "invalid_limit"),
        (
            "/api/v1/models/%00/history?period=latest",
            "invalid_model_id",
        ),
        (
            "/api/v1/models?period=latest&period=latest",
            "invalid_period",
        ),
    ] {
        let response = world.get(target).key(&free.key).send().await;
        assert_eq!(
            (response.status, response.code()),
            (400, code.into()),
            "{target}"
        );
    }
    assert_eq!(
        world
            .counted("scoregate_refusals_total{code=\"latest_requires_plan\"}")
            .await,
        0
    );
}

#[tokio::test]
async fn order_path_value_before_query_values() {
    let world = World::new().await;
    let pro = world.customer("pro").await;
    let response = world
        .get("/api/v1/models/%00/history?period=7D")
        .key(&pro.key)
        .send()
        .await;
    assert_eq!(response.code(), "invalid_model_id");
}

#[tokio::test]
async fn order_route_values_and_entitlement_before_admission() {
    let world = World::with(WIDE, good).await;
    let own = OwnLimits {
        minute: Some(1),
        day: Some(1),
    };
    let spent = world.customer_with("free", own).await;
    assert_eq!(
        world
            .get("/api/v1/models")
            .key(&spent.key)
            .send()
            .await
            .status,
        200
    );
    for (target, code) in [
        ("/api/v1/nothing", "not_found"),
        ("/api/v1/models?period=7D", "invalid_period"),
        ("/api/v1/models/%00", "invalid_model_id"),
        ("/api/v1/models?period=latest", "latest_requires_plan"),
        ("/api/v1/models", "quota_exceeded"),
    ] {
        assert_eq!(
            world.get(target).key(&spent.key).send().await.code(),
            code,
            "{target}"
        );
    }
    assert_eq!(
        world
            .counted("scoregate_limited_total{rule=\"day\",tier=\"free\"}")
            .await,
        1
    );
}

#[tokio::test]
async fn order_admission_before_the_cache_and_the_304() {
    let world = World::new().await;
    let first = world.customer("free").await;
    let stored = world.get("/api/v1/models").key(&first.key).send().await;
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

#[tokio::test]
async fn order_admission_before_the_backend() {
    let world = World::with("", |_| respond("500 Internal Server Error", &[], "")).await;
    let own = OwnLimits {
        minute: Some(1),
        day: None,
    };
    let pro = world.customer_with("pro", own).await;
    assert_eq!(
        world
            .get("/api/v1/models")
            .key(&pro.key)
            .send()
            .await
            .code(),
        "upstream_unavailable"
    );
    let response = world
        .get("/api/v1/models/nobody")
        .key(&pro.key)
        .send()
        .await;
    assert_eq!(response.code(), "rate_limit_exceeded");
    assert_eq!(world.backend.received().len(), 1);
}

#[tokio::test]
async fn order_the_cache_before_the_backend_and_the_304_on_the_document() {
    let world = World::new().await;
    let pro = world.customer("pro").await;
    let stored = world.get("/api/v1/index").key(&pro.key).send().await;
    world.backend.set_script(|_| json("{}"));
    assert_eq!(
        world.get("/api/v1/index").key(&pro.key).send().await.status,
        200
    );
    let request = world
        .get("/api/v1/index")
        .key(&pro.key)
        .header("If-None-Match", stored.header("etag"));
    let current = request.send().await;
    assert_eq!((current.status, current.body.len()), (304, 0));
    assert_eq!(world.backend.received().len(), 1);
    assert_eq!(world.counted("scoregate_not_modified_total").await, 1);
}
