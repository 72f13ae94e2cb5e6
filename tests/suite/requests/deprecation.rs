//! `Deprecation`, `Sunset` and `Link`: on every API response if configured, and not on the pages.
//!
//! `Rules` also checks on every response of every test that none of them is present without configuration.

use crate::{
    client::Response,
    requests::request_ids::kinds,
    world::{World, good},
};

const ALL: &str = "service.deprecated_at = \"2026-11-22T00:00:00Z\"\nservice.sunset_at = 2027-06-30T20:00:00Z\n\
                   service.deprecation_link = \"https://example.org/end\"";

fn deprecation_headers(response: &Response) -> [&str; 3] {
    ["deprecation", "sunset", "link"].map(|name| response.header(name))
}

#[tokio::test]
async fn every_api_response_has_the_deprecation_and_sunset_dates() {
    let world = World::with(ALL, good).await;
    for (status, request) in kinds(&world).await {
        let response = request.send().await;
        assert_eq!(response.status, status);
        // The pages have browser security headers instead.
        let is_page =
            !response.header("content-security-policy").is_empty() || response.body == b"alive\n";
        let link = "<https://example.org/end>; rel=\"deprecation\"";
        let all = ["@1795305600", "Wed, 30 Jun 2027 20:00:00 GMT", link];
        assert_eq!(
            deprecation_headers(&response),
            if is_page { [""; 3] } else { all },
            "{status}"
        );
    }
}

#[tokio::test]
async fn deprecation_headers_that_are_not_configured_are_absent() {
    for (settings, expected) in [
        (
            "service.deprecated_at = \"2026-01-01T00:00:00Z\"",
            ["@1767225600", "", ""],
        ),
        (
            "service.sunset_at = \"2027-06-30T20:00:00Z\"",
            ["", "Wed, 30 Jun 2027 20:00:00 GMT", ""],
        ),
        ("", [""; 3]),
    ] {
        let world = World::with(settings, good).await;
        assert_eq!(
            deprecation_headers(&world.get("/api/v1/models").send().await),
            expected,
            "{settings}"
        );
    }
}
