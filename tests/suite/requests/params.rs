//! Parameters: canonical spelling, defaults, entitlement, and what is ignored.

use std::collections::BTreeSet;

use crate::{
    client::Connection,
    requests::queries::{BAD_PERIODS, BAD_SORTS, MODELS, SAME_AS_NONE},
    world::{Customer, World, good},
};

/// A customer whose limits allow every row of a table with one key.
async fn wide(tier: &str) -> (World, Customer, Connection) {
    let world = World::with("guard.per_minute = 100000", good).await;
    let customer = world
        .customer_with(tier, crate::balances::own(10_000, 10_000))
        .await;
    let connection = world.connect().await;
    (world, customer, connection)
}

/// The upstream targets, relative to the base URL.
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
    // For all spellings together, one upstream request per document, with its canonical target.
    let upstream_targets = upstream_targets(&world);
    assert_eq!(upstream_targets.len(), documents.len());
    assert_eq!(
        upstream_targets.into_iter().collect::<BTreeSet<_>>(),
        documents
    );
}
