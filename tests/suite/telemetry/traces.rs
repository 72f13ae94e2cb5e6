//! Traces (W3C `traceparent`): a fetch belongs to the trace of the request that started it, and forwards no other trace
//! header.

use std::time::Duration;

use crate::{
    backend::{Act, Received, respond},
    client::RequestBuilder,
    world::World,
};

const MODELS: &str = "/api/v1/models?period=24h";
const PARENT: &str = "b7ad6b7169203331";

/// The header of a request in the trace of this number.
fn traced(request: RequestBuilder, number: u32) -> RequestBuilder {
    request.header("traceparent", &format!("00-{}-{PARENT}-01", id(number)))
}

fn id(number: u32) -> String {
    format!("0af7651916cd43dd8448eb21{number:08x}")
}

/// The parts of the only trace header that the backend got.
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
    // A further fetch without a trace sends nothing of the previous trace.
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
