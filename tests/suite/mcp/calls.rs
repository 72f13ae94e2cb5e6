//! Calls of tools: the same data, limits and prices as the corresponding requests.

use scoregate_base::{
    limits::{LimitSetting, OwnLimits},
    routes::{ENDPOINTS, Route},
};
use serde_json::{Value, json};

use super::session::{call, gateway, gateway_of, result, send};
use crate::backend::json as json_response;

fn arguments(route: Route) -> Value {
    if route.names_a_model() {
        json!({"id": "atlas"})
    } else {
        json!({})
    }
}

#[tokio::test]
async fn every_tool_answers_with_the_document_of_its_endpoint_for_the_same_price() {
    let world = gateway("").await;
    let agent = world.paid().await;
    let reader = world.paid().await;
    for row in &ENDPOINTS {
        let tool = format!("get_{}", row.name);
        let path = row.documented_path().replace("{id}", "atlas");
        let read = world.get_as(&reader, &path).await;
        let called = send(
            &world,
            &call(&tool, &arguments(row.route)),
            &[("X-API-Key", &agent.key), ("Accept-Encoding", "gzip")],
        )
        .await;
        let result = called.json()["result"].clone();
        assert_eq!(
            (called.status, &result["isError"]),
            (200, &json!(false)),
            "{tool}"
        );
        assert_eq!(called.json()["id"], 7);
        assert_eq!(
            called.header("x-ratelimit-remaining"),
            read.header("x-ratelimit-remaining"),
            "{tool}"
        );
        assert_eq!(
            (called.header("etag"), called.header("content-encoding")),
            ("", "")
        );
        if row.route != Route::Me {
            assert_eq!(result["structuredContent"], read.json(), "{tool}");
        }
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains(&format!("\n{}\n", row.brief.join("|"))),
            "{tool}: {text}"
        );
    }
    let counted = "scoregate_mcp_requests_total{result=\"answered\"}";
    assert_eq!(
        world.counted(counted).await,
        u32::try_from(ENDPOINTS.len()).unwrap()
    );
}

#[tokio::test]
async fn arguments_are_those_of_the_request() {
    let world = gateway("").await;
    let customer = world.paid().await;
    let one = result(
        &world,
        &customer.key,
        "get_incidents",
        &json!({"period": "7d", "limit": 5}),
    )
    .await;
    assert_eq!(one["structuredContent"]["period"], "7d");
    let bad = result(
        &world,
        &customer.key,
        "get_models",
        &json!({"period": "7d&sortBy=price"}),
    )
    .await;
    assert_eq!(
        (&bad["isError"], &bad["structuredContent"]["code"]),
        (&json!(true), &json!("invalid_period"))
    );
    let text = bad["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("Allowed: latest, 24h, 7d, 1m."), "{text}");
    let unknown = send(
        &world,
        &call("get_models", &json!({"id": "atlas"})),
        &[("X-API-Key", &customer.key)],
    )
    .await;
    assert_eq!(unknown.json()["error"]["code"], -32_602);
}

#[tokio::test]
async fn a_call_is_never_a_304() {
    let world = gateway("").await;
    let customer = world.paid().await;
    let tag = world
        .get_as(&customer, "/api/v1/index")
        .await
        .header("etag")
        .to_owned();
    let fields = [
        ("X-API-Key", customer.key.as_str()),
        ("If-None-Match", &tag),
    ];
    let called = send(&world, &call("get_index", &json!({})), &fields).await;
    assert_eq!(called.json()["result"]["isError"], false);
}

#[tokio::test]
async fn refusals_are_results_that_state_what_to_do_and_a_missing_key_is_a_401() {
    let world = gateway("site.upgrade_url = \"https://example.org/plans\"\n").await;
    let spent = world
        .customer_with("pro", OwnLimits::NONE.with(LimitSetting::Minute, 1))
        .await;
    let free = world.customer("free").await;
    assert_eq!(
        result(&world, &spent.key, "get_index", &json!({})).await["isError"],
        false
    );
    let refused = result(&world, &spent.key, "get_index", &json!({})).await;
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(
        refused["isError"] == true
            && text.starts_with("Wait ")
            && text.contains("example.org/plans"),
        "{text}"
    );
    let latest = result(
        &world,
        &free.key,
        "get_models",
        &json!({"period": "latest"}),
    )
    .await;
    assert_eq!(latest["structuredContent"]["code"], "latest_requires_plan");
    for headers in [vec![], vec![("X-API-Key", "sg_live_wrong")]] {
        let response = send(&world, &call("get_index", &json!({})), &headers).await;
        assert_eq!(
            (response.status, &response.json()["error"]["code"]),
            (401, &json!(401))
        );
        assert!(!response.header("www-authenticate").is_empty() && !response.closes());
    }
    world
        .running
        .registrar
        .revoke("test", spent.id, None)
        .await
        .unwrap();
    let revoked = send(
        &world,
        &call("get_index", &json!({})),
        &[("X-API-Key", &spent.key)],
    )
    .await;
    assert_eq!(
        (revoked.status, &revoked.json()["error"]["data"]["code"]),
        (401, &json!("invalid_api_key"))
    );
    for (result, number) in [("tool_error", 2), ("unauthenticated", 3)] {
        let counted = world
            .counted(&format!(
                "scoregate_mcp_requests_total{{result=\"{result}\"}}"
            ))
            .await;
        assert_eq!(counted, number, "{result}");
    }
}

#[tokio::test]
async fn a_text_is_that_of_the_form_and_of_the_newest_document() {
    let version = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(1));
    let shown = std::sync::Arc::clone(&version);
    let world = gateway_of("", move |_| {
        let score = shown.load(std::sync::atomic::Ordering::Relaxed);
        json_response(&format!(
            r#"{{"success":true,"generated_at":"2026-11-21T{}:00:00Z","data":[{{"id":"atlas","latestScore":{},"currentScore":{score}}}]}}"#,
            10 + 2 * score,
            score + 90
        ))
    })
    .await;
    let free = world.customer("free").await;
    let paid = world.paid().await;
    for score in 1..3 {
        version.store(score, std::sync::atomic::Ordering::Relaxed);
        for (customer, sees_latest) in [(&paid, true), (&free, false)] {
            let result = result(&world, &customer.key, "get_model", &json!({"id": "atlas"})).await;
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(
                text.ends_with(&format!("\natlas||{score}|||||")),
                "{score}: {text}"
            );
            assert_eq!(result.to_string().contains("latestScore"), sees_latest);
            assert_eq!(
                result.to_string().contains(&(score + 90).to_string()),
                sees_latest
            );
        }
        world.pass(std::time::Duration::from_hours(72));
    }
}
