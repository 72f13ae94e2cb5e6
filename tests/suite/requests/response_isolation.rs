//! Isolation of responses: on every endpoint and in both forms, different requests get different responses and equal
//! requests share one. No response contains data of another key, under any fault.
//!
//! Spellings of requests are in `params` and `paths`, data hidden from one form in `form_isolation`.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use scoregate::registry::DescriptionChange;
use scoregate_base::routes::{ENDPOINTS, Endpoint, Route};

use crate::{
    backend::{Act, Received, json, respond},
    balances::own,
    client::{Connection, Response},
    world::{Customer, World},
};

const PERIODS: [&str; 4] = ["latest", "24h", "7d", "1m"];
const SORTS: [&str; 7] = [
    "combined",
    "reasoning",
    "speed",
    "price",
    "coding",
    "7axis",
    "tooling",
];
const MODELS: [&str; 2] = ["atlas", "boreas"];

/// A backend whose data contains the requested model and target.
fn echo(received: &Received) -> Act {
    let upstream_target = received.target();
    let item =
        |id: &str| format!(r#"{{"id":"{id}","asked":"{upstream_target}","latestScore":81.5}}"#);
    let requested = MODELS
        .into_iter()
        .find(|id| upstream_target.contains(id))
        .unwrap_or("atlas");
    let items = if upstream_target.contains("/models?") {
        MODELS.map(item).join(",")
    } else {
        item(requested)
    };
    json(&format!(
        r#"{{"generated_at":"2026-11-21T12:00:00Z","data":[{items}]}}"#
    ))
}

fn takes(endpoint: &Endpoint, name: &str) -> bool {
    endpoint.takes.iter().any(|param| param.name() == name)
}

/// The canonical upstream request of a request, built by hand.
fn upstream_target_of(endpoint: &Endpoint, path: &str, period: &str, sort_by: &str) -> String {
    let mut pairs = Vec::new();
    for (name, value) in [("period", period), ("sortBy", sort_by), ("limit", "50")] {
        if takes(endpoint, name) {
            pairs.push(format!("{name}={value}"));
        }
    }
    if pairs.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", pairs.join("&"))
    }
}

#[tokio::test]
async fn isolation_different_requests_get_different_responses_and_equal_requests_share_one() {
    let world = World::with("", echo).await;
    let mut connection = world.connect().await;
    let mut seen = BTreeMap::new();
    let mut refused = 0;
    for customer in [world.paid().await, world.free().await, world.paid().await] {
        let is_free = customer_is_free(&world, &customer, &mut connection).await;
        for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.stored) {
            let models = if endpoint.route.names_a_model() {
                &MODELS[..]
            } else {
                &MODELS[..1]
            };
            let paths = models
                .iter()
                .map(|model| endpoint.documented_path().replace("{id}", model));
            for (path, period, sort_by) in paths.flat_map(|path| spellings(&path)) {
                let target = format!("{path}?sortBy={sort_by}&unknown={sort_by}&period={period}");
                let response = connection.send(world.get(&target).key(&customer.key)).await;
                if is_free && takes(endpoint, "period") && period == "latest" {
                    assert_eq!(response.code(), "latest_requires_plan", "{target}");
                    refused += 1;
                    continue;
                }
                assert_eq!(response.status, 200, "{target}");
                let upstream_target = upstream_target_of(endpoint, &path, period, sort_by);
                let item = &response.json()["data"][0];
                assert_eq!(item["asked"], upstream_target.as_str(), "{target}");
                let is_cut = is_free && endpoint.route == Route::Model;
                assert_eq!(item.get("latestScore").is_none(), is_cut, "{target}");
                let is = (response.header("etag").to_owned(), response.body);
                let was = seen
                    .entry((upstream_target, is_cut))
                    .or_insert_with(|| is.clone());
                assert!(*was == is, "{target}: another response to the same request");
            }
        }
    }
    // Lists: 4 periods of 7 orders; 6 endpoints with a period, one of them for each model; 4 without parameters, and
    // 2 for each model, of which the detail has two forms.
    assert_eq!(
        (seen.len(), refused),
        (4 * 7 + 4 * (5 + 2) + 3 + 2 * 3, 7 * (1 + 5 + 2))
    );
    for part in [
        |is: &(String, Vec<u8>)| is.0.clone().into_bytes(),
        |is: &(String, Vec<u8>)| is.1.clone(),
    ] {
        assert_eq!(
            seen.values().map(part).collect::<BTreeSet<_>>().len(),
            seen.len()
        );
    }
    let upstream_targets: BTreeSet<String> = seen
        .into_keys()
        .map(|(upstream_target, _)| upstream_target)
        .collect();
    let received = world.backend.received();
    assert_eq!(
        received
            .iter()
            .map(|one| one.target().to_owned())
            .collect::<BTreeSet<_>>(),
        upstream_targets
    );
    assert_eq!(
        received.len(),
        upstream_targets.len(),
        "each document was fetched once"
    );
    assert_eq!(world.documents(), upstream_targets.len() as u64);
}

async fn customer_is_free(world: &World, customer: &Customer, connection: &mut Connection) -> bool {
    let me = connection
        .send(world.get("/api/v1/me").key(&customer.key))
        .await;
    me.json()["data"][0]["tier"] == "free"
}

fn spellings(path: &str) -> Vec<(String, &'static str, &'static str)> {
    let sorts = |period| SORTS.map(|sort_by| (path.to_owned(), period, sort_by));
    PERIODS.into_iter().flat_map(sorts).collect()
}

/// A key and the fragments that would show another caller's response.
struct Canary {
    customer: Customer,
    marks: Vec<String>,
}

impl Canary {
    async fn new(world: &World, tier: &str, name: &str, day: u32) -> Self {
        let customer = world.customer_with(tier, own(100_000, day)).await;
        let change = DescriptionChange {
            name: Some(name.to_owned()),
            ..DescriptionChange::default()
        };
        world
            .running
            .registrar
            .describe("test", customer.id, change)
            .await
            .unwrap();
        let me = world.get_as(&customer, "/api/v1/me").await.json();
        let prefix = me["data"][0]["key_prefix"].as_str().unwrap().to_owned();
        let marks = vec![
            customer.key.clone(),
            prefix,
            customer.id.to_string(),
            name.to_owned(),
            day.to_string(),
        ];
        Self { customer, marks }
    }

    /// Sends a request and searches the response for data of the others.
    async fn get_as(&self, world: &World, target: &str, others: &[&Self]) -> Response {
        let response = world.get_as(&self.customer, target).await;
        let all = format!(
            "{:?} {}",
            response.headers,
            String::from_utf8_lossy(&response.body)
        );
        for mark in others.iter().flat_map(|other| &other.marks) {
            assert!(!all.contains(mark), "{target}: {mark} in {all}");
        }
        assert!(
            all.contains(self.marks.last().unwrap()),
            "{target}: its own quota"
        );
        response
    }
}

/// Requests every endpoint with one key, another and the first again, and returns the responses.
async fn round(world: &World, [one, two]: [&Canary; 2]) -> Vec<(Route, [Response; 3])> {
    let mut by_route = Vec::new();
    for endpoint in &ENDPOINTS {
        let target = endpoint.documented_path().replace("{id}", "atlas");
        let responses = [
            one.get_as(world, &target, &[two]).await,
            two.get_as(world, &target, &[one]).await,
            one.get_as(world, &target, &[two]).await,
        ];
        if endpoint.route == Route::Me {
            assert!(
                responses
                    .iter()
                    .all(|response| response.header("cache-control") == "private, no-store")
            );
            let ids = responses
                .each_ref()
                .map(|me| me.json()["data"][0]["application"]["id"].clone());
            assert_eq!(
                ids,
                [one, two, one].map(|canary| canary.customer.id.to_string())
            );
        }
        by_route.push((endpoint.route, responses));
    }
    by_route
}

#[tokio::test]
async fn isolation_no_response_contains_data_of_another_key_under_any_fault() {
    for tier in ["free", "pro"] {
        let world = World::with("", echo).await;
        let one = Canary::new(&world, tier, "The first canary", 31_337_001).await;
        let two = Canary::new(&world, tier, "The second canary", 42_424_002).await;
        let both = [&one, &two];
        // The list first, so that the models are known.
        one.get_as(&world, "/api/v1/models", &[&two]).await;
        for outcome in ["miss", "hit"] {
            for (route, responses) in round(&world, both).await {
                assert!(
                    responses.iter().all(|response| response.status == 200),
                    "{tier} {outcome} {route:?}"
                );
                assert!(
                    route == Route::Me || responses[0].body == responses[1].body,
                    "one document is shared"
                );
            }
        }
        let stored = ENDPOINTS.len() as u64 - 1;
        assert_eq!(world.documents(), stored);
        // Under faults more is served stale, but nothing else is stored.
        world
            .backend
            .set_script(|_| respond("503 Service Unavailable", &[("retry-after", "5")], ""));
        for (hours, served) in [(2, 200), (30, 200), (24 * 8, 503)] {
            world.pass(Duration::from_hours(hours));
            for (route, responses) in round(&world, both).await {
                let expected = if route == Route::Me { 200 } else { served };
                assert!(
                    responses.iter().all(|response| response.status == expected),
                    "{tier} {hours} {route:?}"
                );
            }
            world.settled().await;
            let left = world.documents();
            assert!(left <= stored, "{left}");
        }
        assert_eq!(world.backend.count("/api/v1/me"), 0);
    }
}
