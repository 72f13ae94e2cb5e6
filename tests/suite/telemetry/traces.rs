//! Traces (W3C `traceparent`): a fetch is part of the trace of the request that started it, and forwards no other
//! trace header.

use std::time::Duration;

use futures_util::future::join_all;
use scoregate_base::keys::Digest;

use crate::backend::{Act, Received, respond};
use crate::client::RequestBuilder;
use crate::world::{World, good};

const MODELS: &str = "/api/v1/models?period=24h";
const PARENT: &str = "b7ad6b7169203331";

/// The header of a request in the trace of this number.
fn traced(request: RequestBuilder, number: u32) -> RequestBuilder {
    request.header("traceparent", &format!("00-{}-{PARENT}-01", id(number)))
}

fn id(number: u32) -> String {
    format!("0af7651916cd43dd8448eb21{number:08x}")
}

/// The one trace header that the backend got, in its parts.
fn trace_parts(received: &Received) -> Option<Vec<String>> {
    let mut headers = received
        .headers
        .iter()
        .filter(|(name, _)| name == "traceparent");
    let parent = headers
        .next()
        .map(|(_, value)| value.split('-').map(str::to_owned).collect());
    assert!(headers.next().is_none(), "{received:?}");
    parent
}

/// Checks the trace header that the backend got against the trace of a number, and returns the parent id.
fn is_of(received: &Received, number: u32) -> String {
    let parts = trace_parts(received).unwrap_or_else(|| panic!("no trace: {received:?}"));
    let [version, trace, parent, flags] = parts.try_into().unwrap();
    assert_eq!(
        (version.as_str(), trace, flags.as_str()),
        ("00", id(number), "01")
    );
    assert!(
        parent != PARENT && parent.len() == 16 && parent.bytes().any(|digit| digit != b'0'),
        "{parent}"
    );
    parent
}

/// A backend whose data never changes, by its entity tag.
fn tagged(received: &Received) -> Act {
    if received
        .headers
        .contains(&("if-none-match".into(), "\"v1\"".into()))
    {
        return Act::Raw(b"HTTP/1.1 304 Not Modified\r\n\r\n".into());
    }
    respond(
        "200 OK",
        &[("etag", "\"v1\""), ("content-type", "application/json")],
        r#"[{"id":"atlas"}]"#,
    )
}

#[tokio::test]
async fn a_fetch_is_part_of_the_trace_of_the_request_that_started_it_with_its_own_parent_id() {
    let world = World::new().await;
    let customer = world.paid().await;
    let mut parents = Vec::new();
    for (number, target) in (1..).zip([MODELS, "/api/v1/index", "/api/v1/models/atlas"]) {
        let request = traced(world.get(target).key(&customer.key), number);
        let request = request
            .header("tracestate", "canary=1")
            .header("baggage", "canary=2");
        assert_eq!(request.send().await.status, 200);
        let received = world.backend.received().pop().unwrap();
        parents.push(is_of(&received, number));
        assert!(!format!("{received:?}").contains("canary"));
        assert!(received.headers.len() <= 7, "{received:?}");
    }
    parents.dedup();
    assert_eq!((parents.len(), world.backend.received().len()), (3, 3));
}

#[tokio::test]
async fn without_one_well_formed_header_no_trace_is_sent_to_the_backend() {
    let world = World::new().await;
    let customer = world.paid().await;
    let good = format!("00-{}-{PARENT}-01", id(1));
    let cases: [&[&str]; 7] = [
        &[],
        &["canary"],
        &[&good[1..]],
        &[&good.to_uppercase()],
        &[&good.replace(&id(1), &"0".repeat(32))],
        &[&format!("{good}-more")],
        &[&good, &good],
    ];
    for (number, case) in cases.into_iter().enumerate() {
        let request = world
            .get(&format!("/api/v1/incidents?limit={}", number + 1))
            .key(&customer.key);
        let request = case.iter().fold(request, |request, value| {
            request.header("traceparent", value)
        });
        assert_eq!(request.send().await.status, 200);
        assert_eq!(
            (
                world.backend.received().len(),
                trace_parts(&world.backend.received()[number])
            ),
            (number + 1, None)
        );
    }
}

#[tokio::test]
async fn a_key_in_the_trace_header_does_not_reach_the_backend() {
    let token = "a-token-of-the-side-port";
    let settings = format!("keys.accept_imported = true\nadmin.token = \"{token}\"");
    let world = World::with(&settings, good).await;
    let key = id(7);
    let body = format!(
        r#"{{"keys":[{{"sha256":"{}","name":"imported","tier":"pro"}}]}}"#,
        Digest::of(&key)
    );
    let headers = [("Authorization", &*format!("Bearer {token}"))];
    assert_eq!(
        world
            .side("POST", "/v1/keys/import", &body, &headers)
            .await
            .json()["imported"],
        1
    );
    assert_eq!(
        traced(world.get(MODELS).key(&key), 7).send().await.status,
        200
    );
    assert!(!format!("{:?}", world.backend.received()).contains(&key));
    assert_eq!(
        traced(world.get("/api/v1/index").key(&key), 8)
            .send()
            .await
            .status,
        200
    );
    is_of(&world.backend.received()[1], 8);
}

#[tokio::test]
async fn ten_requests_that_share_a_fetch_cause_one_upstream_request_in_the_trace_of_the_first() {
    let world = World::new().await;
    let customer = world.paid().await;
    // The list is fetched before, so that only the document is fetched.
    assert_eq!(world.get_as(&customer, "/api/v1/index").await.status, 200);
    world.backend.hold();
    let request = |number| traced(world.get(MODELS).key(&customer.key), number).send();
    let (first, others, ()) = tokio::join!(
        request(1),
        async {
            world.backend.has_received(2).await;
            join_all((2..=10).map(request)).await
        },
        async {
            world.backend.has_received(2).await;
            world.has_waiters(10).await;
            world.backend.open();
        }
    );
    assert!(
        others
            .iter()
            .chain([&first])
            .all(|response| response.status == 200)
    );
    let received = world.backend.received();
    assert_eq!(
        (received.len(), world.backend.count("/api/v1/models")),
        (2, 1)
    );
    assert_eq!(trace_parts(&received[0]), None);
    is_of(&received[1], 1);
}

#[tokio::test]
async fn a_refresh_is_part_of_the_trace_of_the_request_that_got_the_stale_document() {
    let world = World::with("", tagged).await;
    let customer = world.paid().await;
    traced(world.get(MODELS).key(&customer.key), 1).send().await;
    world.pass(Duration::from_hours(2));
    let stale = traced(world.get(MODELS).key(&customer.key), 2).send().await;
    assert!(
        stale.header("cache-status").ends_with("detail=stale"),
        "{}",
        stale.header("cache-status")
    );
    world.fetched(2).await;
    let received = world.backend.received();
    assert!(
        received[1]
            .headers
            .iter()
            .any(|(name, _)| name == "if-none-match"),
        "{received:?}"
    );
    is_of(&received[1], 2);
    // Once more without a trace: nothing is left of the previous one.
    world.pass(Duration::from_hours(2));
    world.get_as(&customer, MODELS).await;
    world.fetched(3).await;
    assert_eq!(trace_parts(&world.backend.received()[2]), None);
}

#[tokio::test]
async fn a_list_that_is_fetched_for_a_model_is_part_of_the_same_trace() {
    let world = World::new().await;
    let customer = world.paid().await;
    for number in [1, 2] {
        let request = world
            .get(&format!("/api/v1/models/m{number}"))
            .key(&customer.key);
        assert_eq!(traced(request, number).send().await.status, 200);
    }
    let received = world.backend.received();
    let [first, list, second] = received.as_slice() else {
        panic!("{received:?}")
    };
    assert!(list.target().starts_with("/api/v1/models?"), "{list:?}");
    is_of(first, 1);
    assert_ne!(is_of(list, 2), is_of(second, 2));
}

#[tokio::test]
async fn fetches_without_a_request_are_part_of_no_trace() {
    let world = World::with("freshness.probe = true", tagged).await;
    let customer = world.paid().await;
    traced(world.get(MODELS).key(&customer.key), 1).send().await;
    world.pass(Duration::from_hours(1));
    world.backend.has_received(2).await;
    world.settled().await;
    let received = world.backend.received();
    is_of(&received[0], 1);
    assert!(
        received[1..].iter().all(|one| trace_parts(one).is_none()),
        "{received:?}"
    );
}
