//! The whole gateway with the built-in backend: responses of all endpoints have the documented fields.

use std::collections::BTreeSet;

use scoregate_base::routes::shapes::ItemField;
use scoregate_base::routes::{ENDPOINTS, Endpoint, Param, Period};
use serde_json::Value;

use crate::client::Response;
use crate::world::World;

/// Required and permitted fields of an item of an endpoint, for a caller with or without full access.
fn documented(endpoint: &Endpoint, sees_everything: bool) -> [BTreeSet<String>; 2] {
    let seen = || {
        endpoint
            .item
            .iter()
            .filter(|field| sees_everything || !field.paid_only)
    };
    let names = |fields: &mut dyn Iterator<Item = &ItemField>| {
        fields.map(|field| field.name.to_owned()).collect()
    };
    [
        names(&mut seen().filter(|field| !field.presence.may_be_absent())),
        names(&mut seen()),
    ]
}

fn fields_of_the_items(response: &Response) -> BTreeSet<BTreeSet<String>> {
    let data = response.json()["data"].clone();
    data.as_array()
        .unwrap()
        .iter()
        .map(|item| item.as_object().unwrap().keys().cloned().collect())
        .collect()
}

#[tokio::test]
async fn builtin_every_endpoint_returns_the_documented_fields_for_every_tier() {
    let world = World::built_in().await;
    for tier in ["pro", "free"] {
        for endpoint in &ENDPOINTS {
            // One customer each, since a Free key has one request a minute.
            let customer = world.customer(tier).await;
            let path = endpoint.documented_path().replace("{id}", "atlas-4-large");
            let response = world.get_as(&customer, &path).await;
            assert_eq!(response.status, 200, "{tier} {path}");
            assert_eq!(
                response.json()["count"],
                response.json()["data"].as_array().unwrap().len(),
                "{path}"
            );
            let [needed, allowed] = documented(endpoint, tier == "pro");
            for fields in fields_of_the_items(&response) {
                assert!(
                    needed.is_subset(&fields) && fields.is_subset(&allowed),
                    "{tier} {path}: {fields:?}"
                );
            }
        }
    }
}

/// The paths of every null in a value.
fn nulls(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Null => found.push(at.to_owned()),
        Value::Array(items) => items
            .iter()
            .for_each(|item| nulls(item, &format!("{at}[]"), found)),
        Value::Object(fields) => {
            fields
                .iter()
                .for_each(|(name, value)| nulls(value, &format!("{at}.{name}"), found));
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn builtin_a_field_without_a_value_is_absent_and_never_null() {
    let world = World::built_in().await;
    let customer = world.paid().await;
    let mut found = Vec::new();
    let mut without_a_score = 0;
    let listed = world
        .get_as(&customer, "/api/v1/models?period=24h")
        .await
        .json();
    let has_no_score = |item: &&Value| item["status"] == "unavailable";
    let away = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(has_no_score)
        .unwrap()["id"]
        .as_str()
        .unwrap();
    for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.stored) {
        let mut targets = vec![endpoint.documented_path()];
        for period in Period::ALL
            .iter()
            .filter(|_| endpoint.takes.contains(&Param::Period))
        {
            targets.push(format!(
                "{}?period={}",
                endpoint.documented_path(),
                period.word()
            ));
        }
        for target in targets {
            for id in ["atlas-4-large", away]
                .into_iter()
                .take(if target.contains("{id}") { 2 } else { 1 })
            {
                let target = target.replace("{id}", id);
                let response = world.get_as(&customer, &target).await;
                assert_eq!(response.status, 200, "{target}");
                let data = &response.json()["data"];
                nulls(data, &target, &mut found);
                for item in data
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter(|_| !target.contains("analytics"))
                {
                    if item
                        .get("status")
                        .is_some_and(|status| status == "unavailable")
                    {
                        without_a_score += 1;
                        for name in ["currentScore", "confidenceLower", "confidenceUpper"] {
                            assert!(item.get(name).is_none(), "{target}: {name} of {item}");
                        }
                    }
                    let is_a_model =
                        item.get("currentScore").is_some() || item.get("trend").is_some();
                    if is_a_model
                        && item.get("bestModel").is_none()
                        && item.get("modelId").is_none()
                    {
                        assert!(item["lastUpdated"].is_string(), "{target}: {item}");
                    }
                }
            }
        }
    }
    assert_eq!(found, Vec::<String>::new());
    assert!(without_a_score > 0);
}

#[tokio::test]
async fn builtin_the_hourly_refresh_is_detected_and_an_unknown_model_is_not_found() {
    let world = World::built_in().await;
    let pro = world.customer("pro").await;
    let before = world.get_as(&pro, "/api/v1/models").await;
    assert_eq!(before.json()["generated_at"], "2026-11-21T12:00:00Z");
    let missing = world.get_as(&pro, "/api/v1/models/nobody").await;
    assert_eq!(
        (missing.status, missing.code().as_str()),
        (404, "model_not_found")
    );

    world.pass(std::time::Duration::from_secs(3_601));
    let stale = world.get_as(&pro, "/api/v1/models").await;
    assert!(stale.header("cache-status").ends_with("detail=stale"));
    assert_eq!(stale.header("etag"), before.header("etag"));
    // The refresh belongs to no request; later requests see it once it is stored.
    world.settled().await;
    let after = world.get_as(&pro, "/api/v1/models").await;
    assert_eq!(after.json()["generated_at"], "2026-11-21T13:00:00Z");
    assert_ne!(after.header("etag"), before.header("etag"));
}
