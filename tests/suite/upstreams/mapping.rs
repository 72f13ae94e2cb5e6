//! A backend with other paths and shapes, and the shipped configuration for it: the requests it gets, the mapping of
//! its responses, and its three ways to report an unknown model.

use std::time::Duration;

use scoregate::config::{UpstreamConfig, read_text, resolve};
use scoregate_base::routes::{ENDPOINTS, Period, SortBy};

use crate::{
    backend::{Act, Received, json, respond},
    program::run,
    world::World,
};

/// The shipped configuration.
const SHIPPED: &str = include_str!("../../../deploy/backends/dashboard.toml");
const SHIPPED_AT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/deploy/backends/dashboard.toml"
);

/// An endpoint: our target, the backend's target, its response, and the resulting items.
struct Row {
    ours: &'static str,
    theirs: &'static str,
    sends: &'static str,
    items: &'static str,
}

const fn row(
    ours: &'static str,
    theirs: &'static str,
    sends: &'static str,
    items: &'static str,
) -> Row {
    Row {
        ours,
        theirs,
        sends,
        items,
    }
}

#[rustfmt::skip]
const ROWS: [Row; 12] = [
    row("/models?period={period}&sortBy={sortBy}", "/dashboard/scores?period={period}&sortBy={sortBy}",
        r#"{"success":true,"data":[{"id":"17","currentScore":80.10},{"id":"18","currentScore":"unavailable"}],"cached":true}"#,
        r#"[{"id":"17","currentScore":80.10},{"id":"18","currentScore":"unavailable"}]"#),
    row("/models/17", "/api/models/17",
        r#" {"id":"17","name":"Atlas","data":null,"usesReasoning":1,"price":1E+2}"#,
        r#"[{"id":"17","name":"Atlas","data":null,"usesReasoning":1,"price":1E+2}]"#),
    row("/models/17/history?period={period}", "/dashboard/history/17?period={period}",
        r#"{"success":true,"period":"x","data":[{"score":1.0},{"score":null}]}"#, r#"[{"score":1.0},{"score":null}]"#),
    row("/index", "/dashboard/global-index",
        r#"{"success":true,"data":{"globalScore":62.0,"history":[]}}"#, r#"[{"globalScore":62.0,"history":[]}]"#),
    row("/alerts", "/dashboard/alerts", r#"{"success":true,"data":[]}"#, "[]"),
    row("/incidents?period={period}&limit={limit}", "/dashboard/incidents?period={period}&limit={limit}",
        r#"{"data":[{"id":"x","stack":"\u00e9"}],"success":true}"#, r#"[{"id":"x","stack":"\u00e9"}]"#),
    row("/providers", "/providers",
        r#"{"success":true,"data":{"openai":{"n":1.10},"x\/ai":{},"google":{"provider":"Google","n":2}}}"#,
        r#"[{"provider":"openai","n":1.10},{"provider":"x\/ai"},{"provider":"Google","n":2}]"#),
    row("/analytics/degradations?period={period}", "/analytics/degradations?period={period}",
        r#"{"success":true,"data":[{"modelId":"17"}]}"#, r#"[{"modelId":"17"}]"#),
    row("/analytics/recommendations?period={period}", "/analytics/recommendations?period={period}",
        r#"{"success":true,"data":{"bestForCode":{"id":"17"}}}"#, r#"[{"bestForCode":{"id":"17"}}]"#),
    row("/analytics/provider-reliability?period={period}", "/analytics/provider-reliability?period={period}",
        r#"{"success":true,"data":[{"provider":"openai","trustScore":91}]}"#, r#"[{"provider":"openai","reliability":91}]"#),
    row("/analytics/transparency?period={period}", "/analytics/transparency?period={period}",
        r#"{"success":true,"data":{"summary":{"coverage":99.90}}}"#, r#"[{"summary":{"coverage":99.90}}]"#),
    row("/drift/17", "/api/drift/signature/17",
        r#"{"success":true,"data":{"driftSignature":"STABLE","phScore":0.0}}"#, r#"[{"driftSignature":"STABLE","phScore":0.0}]"#),
];

const BUSY: &str = r#"{"success":false,"error":"SQLITE_BUSY: database is locked"}"#;
/// The fake backend's response to an unknown route. It reveals a wrong upstream request.
const NO_ROUTE: (&str, &str) = (
    "500 Internal Server Error",
    r#"{"message":"there is no such route"}"#,
);

fn path(target: &str) -> &str {
    target.split('?').next().unwrap()
}

/// That backend with all of its data.
fn dashboard(received: &Received) -> Act {
    let known = ROWS
        .iter()
        .find(|row| path(row.theirs) == path(received.target()));
    known.map_or_else(
        || respond(NO_ROUTE.0, &[], NO_ROUTE.1),
        |row| json(row.sends),
    )
}

async fn world() -> World {
    World::with(&SHIPPED.replace("127.0.0.1:4000", "{address}"), dashboard).await
}

/// A target with every value in each position.
fn all(template: &str) -> Vec<String> {
    let periods = Period::ALL.map(|period| period.word().to_owned());
    let orders = SortBy::ALL.map(|order| order.word().to_owned());
    let limits: Vec<String> = (1..=100).map(|limit| limit.to_string()).collect();
    let mut targets = vec![template.to_owned()];
    for (placeholder, values) in [
        ("{period}", &periods[..]),
        ("{sortBy}", &orders[..]),
        ("{limit}", &limits[..]),
    ] {
        if template.contains(placeholder) {
            let fill = |target: String| {
                values
                    .iter()
                    .map(move |value| target.replace(placeholder, value))
            };
            targets = targets.into_iter().flat_map(fill).collect();
        }
    }
    targets
}

#[test]
fn the_shipped_configuration_maps_every_endpoint_and_is_valid() {
    let checked = run(&["check", "--config", SHIPPED_AT]).with(0);
    assert_eq!(
        (checked.out, checked.err),
        (String::new(), format!("{SHIPPED_AT}: ok\n"))
    );
    for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.stored) {
        assert!(
            SHIPPED.contains(&format!("[mapping.{}]\npath = ", endpoint.name)),
            "{}",
            endpoint.name
        );
    }
    let UpstreamConfig::Http(http) = resolve(&read_text(SHIPPED).unwrap()).unwrap().upstream else {
        panic!("it names a backend")
    };
    assert!(!http.mapping.lists_all_models, "not configured");
}

#[tokio::test]
async fn mapping_every_endpoint_requests_the_mapped_target_and_returns_the_backend_s_items() {
    let world = world().await;
    let customer = world.paid().await;
    for row in &ROWS {
        for (ours, theirs) in all(row.ours).into_iter().zip(all(row.theirs)) {
            let before = world.backend.received().len();
            let got = world.get_as(&customer, &format!("/api/v1{ours}")).await;
            let text = String::from_utf8(got.body.clone()).unwrap();
            assert_eq!(got.status, 200, "{ours}: {text}");
            assert!(
                text.ends_with(&format!(r#","data":{}}}"#, row.items)),
                "{ours}: {text}"
            );
            let count = got.json()["data"].as_array().unwrap().len();
            assert_eq!(got.json()["count"], count, "{ours}");
            let received = world.backend.received();
            assert_eq!(received.len(), before + 1, "{ours}");
            assert_eq!(received[before].line, format!("GET {theirs} HTTP/1.1"));
        }
    }
    let calls = world.backend.received().len();
    assert_eq!(calls, 4 * 7 + 1 + 4 + 1 + 1 + 4 * 100 + 1 + 4 * 4 + 1);
    let good = world
        .counted("scoregate_upstream_requests_total{result=\"success\"}")
        .await;
    assert_eq!(u32::try_from(calls), Ok(good));
}

#[tokio::test]
async fn mapping_every_way_of_reporting_an_unknown_model_is_a_404() {
    let world = world().await;
    let customer = world.paid().await;
    let words = r#"{"success":false,"error":"Model 99 not found"}"#;
    let typed = [("content-type", "application/json; charset=utf-8")];
    let by_status = || respond("404 Not Found", &typed, r#"{"error":"Model not found"}"#);
    let ways = [
        ("/models/{id}", by_status()),
        ("/models/{id}", json(words)),
        ("/models/{id}", json(r#"{"error":"Model not found"}"#)),
        ("/models/{id}", respond("404 Not Found", &typed, words)),
        ("/models/{id}/history", by_status()),
        ("/models/{id}/history", json(words)),
        (
            "/models/{id}/history",
            json(r#"{"success":true,"data":[],"period":"24h"}"#),
        ),
        ("/drift/{id}", by_status()),
        ("/drift/{id}", json(words)),
    ];
    let count = u32::try_from(ways.len()).unwrap();
    for (id, (template, act)) in (90..).zip(ways) {
        let ours = format!("/api/v1{}", template.replace("{id}", &format!("{id}")));
        // Unknown models are fetched once a second.
        world.pass(Duration::from_secs(1));
        world.backend.next(act.clone());
        let got = world.get_as(&customer, &ours).await;
        assert_eq!(
            (got.status, got.code().as_str()),
            (404, "model_not_found"),
            "{ours} {act:?}"
        );
    }
    let series = "scoregate_upstream_requests_total{result=\"not_found\"}";
    assert_eq!(world.counted(series).await, count);
}

#[tokio::test]
async fn mapping_a_response_that_resembles_an_unknown_model_is_a_failure() {
    let world = world().await;
    let customer = world.paid().await;
    let page = respond(
        "404 Not Found",
        &[("content-type", "text/html")],
        "<h1>Not found</h1>",
    );
    for (ours, act) in [
        ("/models/90", page),
        ("/models/91", json(BUSY)),
        ("/models/92/history", json(BUSY)),
        (
            "/models/93/history",
            json(r#"{"success":true,"period":"24h"}"#),
        ),
        ("/drift/94", json(r#"{"success":true,"data":[]}"#)),
        ("/models/95", json(r#"{"error":"out of memory"}"#)),
        // An endpoint without a model cannot report a missing one.
        (
            "/index",
            json(r#"{"success":false,"error":"index not found"}"#),
        ),
        ("/alerts", respond("404 Not Found", &[], "")),
    ] {
        world.pass(Duration::from_secs(1));
        world.backend.next(act);
        let got = world.get_as(&customer, &format!("/api/v1{ours}")).await;
        assert_eq!(
            (got.status, got.code().as_str()),
            (502, "upstream_invalid"),
            "{ours}"
        );
    }
    assert_eq!(
        world
            .counted("scoregate_upstream_requests_total{result=\"invalid\"}")
            .await,
        8
    );
}

#[tokio::test]
async fn mapping_a_404_needs_the_configured_message_and_unsupported_parameters_are_not_sent() {
    let settings = "[upstream]\nurl = \"{backend}\"\n[mapping.drift]\npath = \"/d?id={id}\"\nnot_found = [\"error\"]\n\
                    [mapping.history]\nnot_found = []\n[mapping.incidents]\nunsupported = [\"limit\"]";
    let world = World::with(settings, |_| json("[]")).await;
    let customer = world.paid().await;
    let words = r#"{"success":false,"error":"Model not found"}"#;
    for (ours, body, status) in [
        ("/drift/1", words, 404),
        (
            "/drift/2",
            r#"{"success":false,"error":"no such route"}"#,
            502,
        ),
        ("/drift/3", r#"{"statusCode":404,"error":"Not Found"}"#, 502),
        ("/drift/4", "", 502),
        ("/models/1/history", words, 502),
    ] {
        world.pass(Duration::from_secs(1));
        world.backend.next(respond("404 Not Found", &[], body));
        assert_eq!(
            world
                .get_as(&customer, &format!("/api/v1{ours}"))
                .await
                .status,
            status,
            "{ours}"
        );
    }
    world
        .get_as(&customer, "/api/v1/incidents?period=7d&limit=3")
        .await;
    let received = world.backend.received();
    assert_eq!(
        (received[0].target(), received[5].target()),
        ("/api/v1/d?id=1", "/api/v1/incidents?period=7d")
    );
}

#[tokio::test]
async fn mapping_an_empty_history_is_data_for_a_known_model_and_a_404_for_others() {
    let world = world().await;
    let customer = world.paid().await;
    assert_eq!(world.get_as(&customer, "/api/v1/models").await.status, 200);
    world.backend.next(json(r#"{"success":true,"data":[]}"#));
    let listed = world
        .get_as(&customer, "/api/v1/models/18/history?period=7d")
        .await;
    assert_eq!((listed.status, &listed.json()["count"]), (200, &0.into()));
    world.backend.next(json(r#"{"success":true,"data":[]}"#));
    let unlisted = world
        .get_as(&customer, "/api/v1/models/19/history?period=7d")
        .await;
    assert_eq!(unlisted.code(), "model_not_found");
    assert_eq!(world.documents(), 2);
}
