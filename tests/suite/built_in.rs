//! The whole of it with the backend that is built in: real answers of all endpoints, as the documents describe them.

use std::collections::BTreeSet;

use scoregate::routes::{ENDPOINTS, Endpoint};

use crate::client::Answer;
use crate::world::World;

/// The fields that an item of an endpoint has to have for a caller who sees everything, or not.
fn documented(endpoint: &Endpoint, sees_everything: bool) -> BTreeSet<String> {
    let seen = endpoint.item.iter().filter(|field| sees_everything || !field.paid_only);
    seen.map(|field| field.name.to_owned()).collect()
}

fn fields_of_the_items(answer: &Answer) -> BTreeSet<BTreeSet<String>> {
    let data = answer.json()["data"].clone();
    data.as_array().unwrap().iter().map(|item| item.as_object().unwrap().keys().cloned().collect()).collect()
}

#[tokio::test]
async fn built_in_every_endpoint_answers_every_tier_with_exactly_the_documented_fields() {
    let world = World::built_in().await;
    for tier in ["pro", "free"] {
        for endpoint in &ENDPOINTS {
            // A customer each, since a Free key has one request a minute.
            let customer = world.customer(tier).await;
            let path = endpoint.documented_path().replace("{id}", "atlas-4-large");
            let answer = world.get(&path).key(&customer.key).send().await;
            assert_eq!(answer.status, 200, "{tier} {path}");
            assert_eq!(answer.json()["count"], answer.json()["data"].as_array().unwrap().len(), "{path}");
            let expected = documented(endpoint, tier == "pro");
            for fields in fields_of_the_items(&answer) {
                assert_eq!(fields, expected, "{tier} {path}");
            }
        }
    }
}

#[tokio::test]
async fn built_in_a_refresh_of_the_hour_is_seen_and_an_unknown_model_is_not_found() {
    let world = World::built_in().await;
    let pro = world.customer("pro").await;
    let before = world.get("/api/v1/models").key(&pro.key).send().await;
    assert_eq!(before.json()["generated_at"], "2026-11-21T12:00:00Z");
    let missing = world.get("/api/v1/models/nobody").key(&pro.key).send().await;
    assert_eq!((missing.status, missing.code().as_str()), (404, "model_not_found"));

    world.pass(std::time::Duration::from_secs(3_601));
    let stale = world.get("/api/v1/models").key(&pro.key).send().await;
    assert!(stale.header("cache-status").ends_with("detail=stale"));
    assert_eq!(stale.header("etag"), before.header("etag"));
    // The refresh belongs to no request; the next ones see it when it is there.
    world.settled().await;
    let after = world.get("/api/v1/models").key(&pro.key).send().await;
    assert_eq!(after.json()["generated_at"], "2026-11-21T13:00:00Z");
    assert_ne!(after.header("etag"), before.header("etag"));
}
