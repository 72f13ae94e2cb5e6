//! CORS: pages of listed origins can read every response in a browser, pages of others none; without listed origins,
//! no CORS header is sent.
//!
//! `Rules` also checks every response of every test: without configuration none of these headers is present, `Vary`
//! contains `Origin` exactly if origins are listed, and credentials are never allowed.

use scoregate_base::routes::headers::for_scripts;

use crate::{
    client::Response,
    requests::request_ids::kinds,
    world::{World, good},
};

const LISTED: &str = "cors.origins = [\"https://dash.example.org\", \"http://localhost:3000\"]\ncors.max_age = \"10m\"";
const ANY: &str = "cors.origins = [\"*\"]";
const ORIGIN: &str = "https://dash.example.org";
const OTHER: &str = "https://dash.example.com";

/// The CORS headers of a response.
fn cors_headers(response: &Response) -> Vec<(&str, &str)> {
    let of_cors = response
        .headers
        .iter()
        .filter(|(name, _)| name.starts_with("access-control-"));
    of_cors
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

fn names(response: &Response) -> Vec<&str> {
    response
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .collect()
}

#[tokio::test]
async fn every_kind_of_response_is_readable_from_listed_origins_only() {
    let world = World::with(LISTED, good).await;
    for (status, request) in kinds(&world).await {
        let bare = request.clone().send().await;
        let other = request.clone().header("Origin", OTHER).send().await;
        for response in [&bare, &other] {
            assert_eq!((response.status, cors_headers(response)), (status, vec![]));
        }
        assert_eq!(
            (names(&bare), bare.header("etag")),
            (names(&other), other.header("etag")),
            "{status}"
        );
        let listed = request.header("Origin", ORIGIN).send().await;
        assert_eq!(listed.status, status);
        let exposed = for_scripts();
        let may_read = vec![
            ("access-control-allow-origin", ORIGIN),
            ("access-control-expose-headers", exposed.as_str()),
        ];
        assert_eq!(cors_headers(&listed), may_read, "{status}");
        assert_eq!(names(&listed).len(), names(&bare).len() + 2, "{status}");
    }
}

#[tokio::test]
async fn a_preflight_request_lists_what_is_allowed_and_is_free() {
    let world = World::with(LISTED, good).await;
    let guard = world.guard_of(std::net::Ipv4Addr::LOCALHOST.into());
    let before = |target: &str, origin: &str| {
        let request = world.request("OPTIONS", target).header("Origin", origin);
        request
            .header("Access-Control-Request-Method", "GET")
            .header("Access-Control-Request-Headers", "authorization,x-api-key")
    };
    for target in ["/api/v1/models", "/api/v1/me", "/docs", "/nothing"] {
        let response = before(target, "http://localhost:3000").send().await;
        assert_eq!(
            (response.status, response.header("allow")),
            (204, "GET, HEAD, OPTIONS"),
            "{target}"
        );
        let exposed = for_scripts();
        let may_ask = vec![
            ("access-control-allow-origin", "http://localhost:3000"),
            ("access-control-expose-headers", exposed.as_str()),
            ("access-control-allow-methods", "GET, HEAD"),
            (
                "access-control-allow-headers",
                "Authorization, X-API-Key, If-None-Match, X-Request-Id",
            ),
            ("access-control-max-age", "600"),
        ];
        assert_eq!(cors_headers(&response), may_ask, "{target}");
        let other = before(target, OTHER).send().await;
        assert_eq!(
            (other.status, cors_headers(&other)),
            (204, vec![]),
            "{target}"
        );
    }
    assert_eq!(world.guard_of(std::net::Ipv4Addr::LOCALHOST.into()), guard);
    assert_eq!(
        world
            .counted("scoregate_requests_total{endpoint=\"options\",class=\"2xx\"}")
            .await,
        8
    );
}

#[tokio::test]
async fn with_a_wildcard_the_response_does_not_depend_on_the_origin() {
    let world = World::with(ANY, good).await;
    for (status, request) in kinds(&world).await {
        for origin in [None, Some("https://any.example"), Some("null")] {
            let request = request.clone();
            let response = origin
                .map_or(request.clone(), |origin| request.header("Origin", origin))
                .send()
                .await;
            assert_eq!(
                (
                    response.status,
                    response.header("access-control-allow-origin")
                ),
                (status, "*")
            );
            assert_eq!(
                response.header("access-control-expose-headers"),
                for_scripts()
            );
        }
    }
}

#[tokio::test]
async fn without_configuration_an_origin_header_changes_no_byte() {
    let world = World::new().await;
    for request in [
        world.get("/"),
        world.get("/healthz"),
        world.request("OPTIONS", "/api/v1/models"),
        world.request("HEAD", "/openapi.json"),
    ] {
        let bare = request.clone().send().await;
        let response = request
            .header("Origin", ORIGIN)
            .header("Access-Control-Request-Method", "GET")
            .send()
            .await;
        assert_eq!(response.fingerprint, bare.fingerprint);
    }
    for (status, request) in kinds(&world).await {
        let bare = request.clone().send().await;
        let response = request.header("Origin", ORIGIN).send().await;
        assert_eq!((response.status, names(&response)), (status, names(&bare)));
    }
}

#[tokio::test]
async fn an_origin_is_not_part_of_the_cache_key() {
    let world = World::with(LISTED, good).await;
    let customer = world.paid().await;
    for origin in [ORIGIN, OTHER, "http://localhost:3000", "null"] {
        let request = world
            .get("/api/v1/index")
            .key(&customer.key)
            .header("Origin", origin);
        assert_eq!(request.send().await.status, 200, "{origin}");
    }
    assert_eq!(world.backend.received().len(), 1);
    assert!(
        world.backend.received()[0]
            .headers
            .iter()
            .all(|(name, _)| name != "origin")
    );
}
