//! Parameters: canonical spelling, defaults, entitlement, and what is ignored.

use std::collections::BTreeSet;
use std::time::Duration;

use scoregate_base::routes::ENDPOINTS;

use crate::client::Connection;
use crate::requests::queries::{
    BAD_LIMITS, BAD_PERIODS, BAD_SORTS, GOOD_LIMITS, MODELS, SAME_AS_NONE,
};
use crate::world::{Customer, World, good};

async fn wide(tier: &str) -> (World, Customer, Connection) {
    let world = World::with("guard.per_minute = 100000", good).await;
    let customer = world
        .customer_with(tier, crate::balances::own(10_000, 10_000))
        .await;
    let connection = world.connect().await;
    (world, customer, connection)
}

/// The upstream targets, below the base.
fn upstream_targets(world: &World) -> Vec<String> {
    let targets = world.backend.received();
    targets
        .iter()
        .map(|received| received.target().trim_start_matches("/api/v1").to_owned())
        .collect()
}

#[tokio::test]
async fn params_every_query_is_one_document_or_one_error() {
    let (world, customer, mut connection) = wide("pro").await;
    let mut documents = BTreeSet::new();
    let same = SAME_AS_NONE.split_whitespace().chain([""]);
    let same = same.map(|query| (query, "period=latest&sortBy=combined"));
    for (query, meaning) in MODELS.into_iter().chain(same) {
        let target = format!("/api/v1/models?{query}");
        let response = connection.send(world.get(&target).key(&customer.key)).await;
        assert_eq!(response.status, 200, "{query}");
        let body = response.json();
        let [period, sort_by] = ["period", "sort_by"].map(|name| body[name].as_str().unwrap());
        assert_eq!(
            format!("period={period}&sortBy={sort_by}"),
            meaning,
            "{query}"
        );
        documents.insert(format!("/models?{meaning}"));
    }
    for (queries, code) in [
        (BAD_PERIODS, "invalid_period"),
        (BAD_SORTS, "invalid_sort_by"),
    ] {
        let mut refused = 0;
        for query in queries.split_whitespace() {
            let target = format!("/api/v1/models?{query}");
            let response = connection.send(world.get(&target).key(&customer.key)).await;
            assert_eq!(
                (response.status, response.code().as_str()),
                (400, code),
                "{query}"
            );
            refused += 1;
        }
        assert_eq!(world.refused(code).await, refused);
    }
    // For any spelling, one upstream request for each document, with its canonical target.
    let upstream_targets = upstream_targets(&world);
    assert_eq!(upstream_targets.len(), documents.len());
    assert_eq!(
        upstream_targets.into_iter().collect::<BTreeSet<_>>(),
        documents
    );
}

#[tokio::test]
async fn params_a_refused_query_costs_neither_minute_nor_day() {
    let (world, customer, mut connection) = wide("pro").await;
    for query in ["period=7D", "sortBy=x", "period=24h&period=24h"] {
        let request = world
            .get(&format!("/api/v1/models?{query}"))
            .key(&customer.key);
        let response = connection.send(request).await;
        assert_eq!(response.header("x-ratelimit-remaining"), "10000", "{query}");
        assert!(
            response
                .header("ratelimit")
                .starts_with("\"minute\";r=10000;"),
            "{query}"
        );
    }
}

#[tokio::test]
async fn params_a_limit_is_a_plain_decimal_from_1_to_100_and_50_by_default() {
    let (world, customer, mut connection) = wide("pro").await;
    let mut limits = BTreeSet::new();
    for (query, limit) in GOOD_LIMITS {
        let request = world
            .get(&format!("/api/v1/incidents?{query}"))
            .key(&customer.key);
        assert_eq!(connection.send(request).await.status, 200, "{query}");
        limits.insert(format!("/incidents?period=latest&limit={limit}"));
    }
    for query in BAD_LIMITS.split_whitespace() {
        let response = connection
            .send(
                world
                    .get(&format!("/api/v1/incidents?{query}"))
                    .key(&customer.key),
            )
            .await;
        assert_eq!(
            (response.status, response.code()),
            (400, "invalid_limit".into()),
            "{query}"
        );
        assert_eq!(response.json()["param"], "limit", "{query}");
    }
    assert_eq!(
        upstream_targets(&world)
            .into_iter()
            .collect::<BTreeSet<_>>(),
        limits
    );
    assert_eq!(world.backend.received().len(), limits.len());
}

#[tokio::test]
async fn params_the_default_period_is_24h_for_a_free_key_and_latest_for_a_paid_key() {
    for (tier, period) in [
        ("free", "24h"),
        ("pro", "latest"),
        ("developer", "latest"),
        ("teams", "latest"),
        ("enterprise", "latest"),
    ] {
        let (world, customer, mut connection) = wide(tier).await;
        for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.stored) {
            let target = endpoint.documented_path().replace("{id}", "atlas");
            let body = connection
                .send(world.get(&target).key(&customer.key))
                .await
                .json();
            let takes = |name| endpoint.takes.iter().any(|param| param.name() == name);
            let expected = if takes("period") {
                period.into()
            } else {
                serde_json::Value::Null
            };
            assert_eq!(body["period"], expected, "{tier} {target}");
            let expected = if takes("sortBy") {
                "combined".into()
            } else {
                serde_json::Value::Null
            };
            assert_eq!(body["sort_by"], expected, "{tier} {target}");
        }
    }
}

#[tokio::test]
async fn params_latest_is_refused_to_a_free_key_on_every_endpoint_with_a_period() {
    let (world, free, mut connection) = wide("free").await;
    for endpoint in &ENDPOINTS {
        let target = endpoint.documented_path().replace("{id}", "atlas");
        let takes_period = endpoint.takes.iter().any(|param| param.name() == "period");
        let response = connection
            .send(world.get(&format!("{target}?period=latest")).key(&free.key))
            .await;
        assert_eq!(
            response.status,
            if takes_period { 403 } else { 200 },
            "{target}"
        );
        if takes_period {
            assert_eq!(response.code(), "latest_requires_plan", "{target}");
            let spelled = format!("{target}?p%65riod=%6catest&x=1");
            assert_eq!(
                connection
                    .send(world.get(&spelled).key(&free.key))
                    .await
                    .status,
                403,
                "{target}"
            );
        }
    }
    assert!(
        !upstream_targets(&world)
            .iter()
            .any(|target| target.contains("latest"))
    );
    let counted = world.refused("latest_requires_plan").await;
    let with_period = ENDPOINTS
        .iter()
        .filter(|endpoint| !endpoint.takes.is_empty())
        .count();
    assert_eq!(usize::try_from(counted).unwrap(), 2 * with_period);
}

#[tokio::test]
async fn params_an_invalid_value_is_a_400_even_for_a_free_key() {
    let (world, free, mut connection) = wide("free").await;
    for query in [
        "period=Latest",
        "period=latest&period=latest",
        "period=latest%20",
        "period=LATEST",
        "period=7D",
    ] {
        let response = connection
            .send(world.get(&format!("/api/v1/models?{query}")).key(&free.key))
            .await;
        assert_eq!(
            (response.status, response.code()),
            (400, "invalid_period".into()),
            "{query}"
        );
        // The allowed values of a 400 are those of the parameter; only a 403 is about this key.
        assert_eq!(response.json()["param"], "period", "{query}");
    }
    assert!(world.backend.received().is_empty());
}

#[tokio::test]
async fn params_unknown_parameters_are_ignored_with_any_value() {
    let (world, customer, mut connection) = wide("pro").await;
    let invalid = "period=7D&period=latest&sortBy=x&limit=0&limit=%zz&x=1";
    for endpoint in ENDPOINTS
        .iter()
        .filter(|endpoint| endpoint.takes.is_empty())
    {
        let target = endpoint.documented_path().replace("{id}", "atlas");
        world.pass(Duration::from_secs(1));
        for query in [
            "",
            "?period=7D",
            "?limit=0",
            "?sortBy=",
            &format!("?{invalid}"),
        ] {
            let response = connection
                .send(world.get(&format!("{target}{query}")).key(&customer.key))
                .await;
            assert_eq!(response.status, 200, "{target}{query}");
        }
    }
    let stored = ENDPOINTS
        .iter()
        .filter(|endpoint| endpoint.takes.is_empty() && endpoint.stored);
    let paths: Vec<String> = stored
        .map(|endpoint| {
            endpoint
                .documented_path()
                .replace("{id}", "atlas")
                .replacen("/api/v1", "", 1)
        })
        .collect();
    assert_eq!(upstream_targets(&world), paths);
}

#[tokio::test]
async fn params_two_spellings_of_one_query_cause_one_upstream_request_and_return_the_same_bytes() {
    let (world, customer, mut connection) = wide("pro").await;
    let mut tags = BTreeSet::new();
    for query in [
        "period=7d",
        "x=1&period=%37d",
        "sortBy=combined&period=7d",
        "period=7d&limit=9",
        "p%65riod=7d&&",
    ] {
        let response = connection
            .send(
                world
                    .get(&format!("/api/v1/models?{query}"))
                    .key(&customer.key),
            )
            .await;
        tags.insert((response.header("etag").to_owned(), response.body));
    }
    assert_eq!(
        (tags.len(), upstream_targets(&world)),
        (1, vec!["/models?period=7d&sortBy=combined".to_owned()])
    );
    assert_eq!(
        world
            .counted("scoregate_documents_served_total{outcome=\"hit\"}")
            .await,
        4
    );
    assert_eq!(world.documents(), 1);
}

#[tokio::test]
async fn params_a_plus_is_a_plus_in_a_path_and_a_space_in_a_query() {
    let (world, customer, mut connection) = wide("pro").await;
    let response = connection
        .send(world.get("/api/v1/models/a+b").key(&customer.key))
        .await;
    assert_eq!(response.code(), "invalid_model_id");
    // A plus in a name makes another, unknown name, whether it means a plus or a space. In a value neither is valid.
    let response = connection
        .send(world.get("/api/v1/models?+period=7D").key(&customer.key))
        .await;
    assert_eq!(response.status, 200);
    let response = connection
        .send(world.get("/api/v1/models?period=+24h").key(&customer.key))
        .await;
    assert_eq!(response.code(), "invalid_period");
}

#[tokio::test]
async fn params_a_model_id_is_decoded_once_and_sent_to_the_backend_in_canonical_form() {
    let (world, customer, mut connection) = wide("pro").await;
    let longest = "x".repeat(128);
    for (raw, id) in [
        ("atlas", "atlas"),
        ("%61tlas", "atlas"),
        ("atl%61s", "atlas"),
        ("a:b.c_d-e", "a:b.c_d-e"),
        ("a%3Ab%2ec%5fd%2De", "a:b.c_d-e"),
        ("7", "7"),
        ("a.", "a."),
        ("a..b", "a..b"),
        (&longest, &longest),
    ] {
        // Unknown models are fetched once a second.
        world.pass(Duration::from_secs(1));
        let response = connection
            .send(
                world
                    .get(&format!("/api/v1/drift/{raw}"))
                    .key(&customer.key),
            )
            .await;
        assert_eq!(response.status, 200, "{raw}");
        assert_eq!(
            upstream_targets(&world).last().unwrap(),
            &format!("/drift/{id}"),
            "{raw}"
        );
    }
    assert_eq!(world.backend.received().len(), 6);
}

#[tokio::test]
async fn params_range_and_if_modified_since_are_ignored() {
    let (world, customer, mut connection) = wide("pro").await;
    let whole = connection
        .send(world.get("/api/v1/models").key(&customer.key))
        .await;
    for (name, value) in [
        ("Range", "bytes=0-3"),
        ("If-Modified-Since", "Sat, 21 Nov 2099 12:00:00 GMT"),
        ("If-Range", whole.header("etag")),
        ("If-Match", "\"other\""),
    ] {
        let response = connection
            .send(
                world
                    .get("/api/v1/models")
                    .key(&customer.key)
                    .header(name, value),
            )
            .await;
        assert_eq!(
            (response.status, &response.body),
            (200, &whole.body),
            "{name}"
        );
    }
}
