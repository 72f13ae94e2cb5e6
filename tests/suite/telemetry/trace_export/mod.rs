//! Export of spans to an OpenTelemetry collector: which requests are recorded, and how their spans are related.

mod delivery;
mod endless_replies;
mod receiver;
mod secrets;

use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::Span;
use scoregate_base::clock::Wall;

use crate::{
    backend::{Received, respond},
    balances::own,
    client::RequestBuilder,
    world::{Customer, NOON, World, good},
};

use receiver::{Collector, LEASE_WAIT, hex, text};

const MODELS: &str = "/api/v1/models?period=24h";
const PARENT: &str = "b7ad6b7169203331";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

const INTERNAL: i32 = 1;
const SERVER: i32 = 2;
const CLIENT: i32 = 3;
const ERROR: i32 = 2;

/// A gateway that exports to a collector.
async fn world(one_in: u32) -> (World, Collector) {
    let collector = Collector::start().await;
    (
        World::with(&collector.settings(one_in), good).await,
        collector,
    )
}

fn with_flags(request: RequestBuilder, flags: &str) -> RequestBuilder {
    request.header("traceparent", &format!("00-{TRACE}-{PARENT}-{flags}"))
}

/// A request that its caller has sampled.
fn sampled(world: &World, customer: &Customer, target: &str) -> RequestBuilder {
    with_flags(world.get(target).key(&customer.key), "01")
}

/// The parts of the trace header that the backend got.
fn trace_header(received: &Received) -> Option<Vec<String>> {
    let header = received
        .headers
        .iter()
        .find(|(name, _)| name == "traceparent");
    header.map(|(_, value)| value.split('-').map(str::to_owned).collect())
}

fn of_kind(spans: &[Span], kind: i32) -> &Span {
    let mut found = spans.iter().filter(|span| span.kind == kind);
    let first = found
        .next()
        .unwrap_or_else(|| panic!("no span of kind {kind}: {spans:#?}"));
    assert!(found.next().is_none(), "{spans:#?}");
    first
}

fn took(span: &Span) -> Duration {
    Duration::from_nanos(span.end_time_unix_nano - span.start_time_unix_nano)
}

fn attribute(span: &Span, name: &str) -> String {
    text(&span.attributes, name).unwrap_or_default()
}

async fn counted(world: &World, result: &str) -> u32 {
    world
        .counted(&format!(
            "scoregate_trace_spans_total{{result=\"{result}\"}}"
        ))
        .await
}

#[tokio::test]
async fn a_sampled_hit_has_one_span_in_the_trace_of_its_caller() {
    let (world, collector) = world(0).await;
    let customer = world.paid().await;
    assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    let response = sampled(&world, &customer, MODELS)
        .header("x-request-id", "request-7")
        .send()
        .await;
    assert_eq!(response.status, 200);
    let spans = collector.has_spans(&world, 1).await;
    let span = of_kind(&spans, SERVER);
    assert_eq!(
        (
            hex(&span.trace_id).as_str(),
            hex(&span.parent_span_id).as_str()
        ),
        (TRACE, PARENT)
    );
    assert_eq!(
        (span.name.as_str(), span.flags),
        ("GET /api/v1/models", 0x301)
    );
    assert_eq!(
        span.start_time_unix_nano,
        Wall::parse_rfc3339(NOON).unwrap().nanos()
    );
    assert!(span.status.is_none());
    for (name, value) in [
        ("http.request.method", "GET"),
        ("http.route", "/api/v1/models"),
        ("url.scheme", "http"),
        ("url.path", "/api/v1/models"),
        ("url.query", "period=24h&sortBy=combined"),
        ("http.response.status_code", "200"),
        ("scoregate.cache", "hit"),
        ("scoregate.application", &customer.id.to_string()),
        ("scoregate.request_id", "request-7"),
    ] {
        assert_eq!(attribute(span, name), value, "{name}");
    }
    // A request that waited for its lease also has a span for this wait.
    assert_eq!(
        usize::try_from(counted(&world, "exported").await).unwrap(),
        collector.spans().len()
    );
}

#[tokio::test]
async fn a_fetch_is_a_child_of_its_request_and_the_parent_of_what_the_backend_does() {
    let (world, collector) = world(0).await;
    let customer = world.paid().await;
    world.backend.hold();
    let (response, ()) = tokio::join!(sampled(&world, &customer, MODELS).send(), async {
        world.backend.has_received(1).await;
        world.pass(Duration::from_secs(3));
        world.backend.open();
    });
    assert_eq!(response.status, 200);
    let spans = collector.has_spans(&world, 2).await;
    let request = of_kind(&spans, SERVER);
    let fetch = of_kind(&spans, CLIENT);
    assert_eq!(fetch.parent_span_id, request.span_id);
    assert_eq!((&fetch.trace_id, fetch.flags), (&request.trace_id, 0x101));
    assert_eq!(
        (took(fetch), took(request)),
        (Duration::from_secs(3), Duration::from_secs(3))
    );
    let header = trace_header(&world.backend.received()[0]).unwrap();
    assert_eq!(header, ["00", TRACE, &hex(&fetch.span_id), "01"]);
    let port = world.backend.address.port().to_string();
    for (name, value) in [
        ("server.address", "127.0.0.1"),
        ("server.port", port.as_str()),
        ("http.request.method", "GET"),
        ("http.response.status_code", "200"),
        ("scoregate.result", "success"),
        ("scoregate.waiters", "1"),
    ] {
        assert_eq!(attribute(fetch, name), value, "{name}");
    }
    assert_eq!(attribute(request, "scoregate.cache"), "miss");
}

#[tokio::test]
async fn a_wait_for_a_lease_is_a_child_of_its_request() {
    let (world, collector) = world(0).await;
    let free = world.customer_with("free", own(1_000, 10)).await;
    assert_eq!(
        sampled(&world, &free, "/api/v1/index").send().await.status,
        200
    );
    assert_eq!(world.counted("scoregate_lease_waits_total").await, 1);
    let spans = collector.has_spans(&world, 2).await;
    let request = of_kind(&spans, SERVER);
    let all = collector.spans();
    let wait = of_kind(&all, INTERNAL);
    assert_eq!(
        (wait.name.as_str(), &wait.parent_span_id),
        (LEASE_WAIT, &request.span_id)
    );
    assert_eq!(wait.trace_id, request.trace_id);
}

#[tokio::test]
async fn requests_without_a_trace_are_recorded_by_the_configured_ratio() {
    let (world, collector) = world(1).await;
    let customer = world.paid().await;
    for _ in 0..2 {
        assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    }
    let spans = collector.has_spans(&world, 3).await;
    let requests: Vec<&Span> = spans.iter().filter(|span| span.kind == SERVER).collect();
    assert_ne!(requests[0].trace_id, requests[1].trace_id);
    assert!(
        requests
            .iter()
            .all(|span| span.parent_span_id.is_empty() && span.flags == 0x103)
    );
    let header = trace_header(&world.backend.received()[0]).unwrap();
    let fetch = of_kind(&spans, CLIENT);
    assert_eq!(
        header,
        [
            "00",
            &hex(&requests[0].trace_id),
            &hex(&fetch.span_id),
            "03"
        ]
    );

    let (world, collector) = self::world(0).await;
    let customer = world.paid().await;
    for _ in 0..50 {
        assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    }
    assert_eq!(trace_header(&world.backend.received()[0]), None);
    assert!(world.running.stop().await.all_finished);
    assert_eq!(collector.requests(), 0);
}

#[tokio::test]
async fn a_trace_that_its_caller_has_not_sampled_is_not_recorded() {
    let (world, collector) = world(1).await;
    let customer = world.paid().await;
    let request = with_flags(world.get(MODELS).key(&customer.key), "02");
    assert_eq!(request.send().await.status, 200);
    let header = trace_header(&world.backend.received()[0]).unwrap();
    assert_eq!((header[1].as_str(), header[3].as_str()), (TRACE, "02"));
    assert_ne!(header[2], PARENT);
    assert!(world.running.stop().await.all_finished);
    assert_eq!(collector.requests(), 0);
}

#[tokio::test]
async fn requests_without_a_valid_key_are_never_recorded() {
    let (world, collector) = world(1).await;
    let customer = world.paid().await;
    for request in [
        world.get(MODELS),
        world.get(MODELS).key("sg_live_unknown"),
        world.get("/healthz"),
    ] {
        with_flags(request, "01").send().await;
    }
    assert_eq!(world.get_as(&customer, "/api/v1/me").await.status, 200);
    let spans = collector.has_spans(&world, 1).await;
    assert_eq!(spans[0].name, "GET /api/v1/me");
}

#[tokio::test]
async fn failures_of_the_backend_are_errors_and_those_of_the_caller_are_not() {
    let collector = Collector::start().await;
    let world = World::with(&collector.settings(1), |_| respond("500 Oops", &[], "")).await;
    let customer = world.paid().await;
    let response = world.get_as(&customer, MODELS).await;
    assert_eq!(response.status, 503);
    assert_eq!(world.get_as(&customer, "/api/v1/nothing").await.status, 404);
    let spans = collector.has_spans(&world, 3).await;
    let fetch = of_kind(&spans, CLIENT);
    assert_eq!(fetch.status.as_ref().map(|status| status.code), Some(ERROR));
    assert_eq!(attribute(fetch, "error.type"), "error_status");
    assert_eq!(attribute(fetch, "http.response.status_code"), "500");
    let of_status = |status: &str| {
        spans.iter().find(|span| {
            span.kind == SERVER && attribute(span, "http.response.status_code") == status
        })
    };
    let failed = of_status("503").unwrap();
    let unknown = of_status("404").unwrap();
    assert_eq!(
        failed.status.as_ref().map(|status| status.code),
        Some(ERROR)
    );
    assert_eq!(attribute(failed, "error.type"), response.code());
    assert!(unknown.status.is_none() && attribute(unknown, "error.type").is_empty());
    assert_eq!(
        (
            unknown.name.as_str(),
            attribute(unknown, "scoregate.error_code").as_str()
        ),
        ("GET", "not_found")
    );
}

#[tokio::test]
async fn without_an_endpoint_nothing_is_recorded() {
    let world = World::new().await;
    let customer = world.paid().await;
    assert_eq!(sampled(&world, &customer, MODELS).send().await.status, 200);
    assert!(world.running.gateway().recorders.tracer.is_none());
    let header = trace_header(&world.backend.received()[0]).unwrap();
    assert_eq!((header[1].as_str(), header[3].as_str()), (TRACE, "01"));
    for result in ["exported", "dropped", "failed"] {
        assert_eq!(counted(&world, result).await, 0);
    }
}
