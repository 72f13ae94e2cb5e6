//! The cost of a request by its outcome: every row of the price table, and outcomes that need concurrent requests.

use std::{net::Ipv4Addr, time::Duration};

use http::Request;
use scoregate::gateway::{ConnectionTrust, Peer};
use scoregate_base::routes::{
    Selection,
    codes::ErrorCode,
    prices::{PRICES, Price, PricedEnding},
};

use crate::{
    backend::{Act, json, respond},
    balances::{own, wide},
    client::{RequestBuilder, Response},
    requests::codes::check_error,
    world::{Customer, REGIONS, World, good},
};

const MODELS: &str = "/api/v1/models";
/// The standard tiers of the test. The first tier lacks a right of the second.
const TIERS: &str = "[tiers.free]\nminute = 1\nday = 10\npaid = false\nincidents = \"7d\"\n\
                     [tiers.pro]\nminute = 60\nday = 10000\npaid = true\n";

/// A request's method and the kind of body that it accepts.
const VARIANTS: [(&str, &str); 3] = [
    ("GET", "application/json"),
    ("HEAD", "application/json"),
    ("GET", "application/problem+json"),
];

#[tokio::test]
async fn every_outcome_costs_what_its_row_defines_and_every_error_has_its_status_body_and_headers()
{
    let world = World::with(&[TIERS, REGIONS].concat(), good).await;
    for price in &PRICES {
        for &ending in price.endings {
            let variants = if error_of(ending).is_some() { 3 } else { 2 };
            for (method, kind) in &VARIANTS[..variants] {
                check_outcome(&world, price, ending, method, kind).await;
            }
        }
    }
    let panics = world.counted("scoregate_panics_total").await;
    assert_eq!(panics, 3, "the variants of `internal_error`");
}

async fn check_outcome(
    world: &World,
    price: &Price,
    ending: PricedEnding,
    method: &str,
    kind: &str,
) {
    let code = error_of(ending);
    let customer = customer_for(world, ending).await;
    let mut request = prepared(world, ending, method, &customer).await;
    if code.is_some() {
        request = request.header("Accept", kind);
    }
    let before = world.left(&customer);
    let refused = refusals(world, ending).await;
    let response = ended(world, ending, request, &customer).await;
    let spent = before.spent(world.left(&customer));
    let expected = (price.minute.into(), price.day.into(), price.guard.into());
    assert_eq!(spent, expected, "{method} {ending:?}: minute, day, guard");
    let counted = refusals(world, ending).await - refused;
    let status = status_of(ending);
    assert_eq!(counted, u32::from(status >= 400), "{method} {ending:?}");
    if let Some(response) = response {
        assert_eq!(response.status, status, "{method} {ending:?}");
        if let Some(code) = code {
            // A POST and a DELETE cause `method_not_allowed`; a HEAD cannot.
            let is_head = method == "HEAD" && code != ErrorCode::MethodNotAllowed;
            check_error(code.row(), &response, kind, is_head);
        }
    }
    if code == Some(ErrorCode::Overloaded) {
        world.ledger_returns().await;
    }
}

fn error_of(ending: PricedEnding) -> Option<ErrorCode> {
    match ending {
        PricedEnding::Error(code) => Some(code),
        PricedEnding::Data
        | PricedEnding::NotModified
        | PricedEnding::Me
        | PricedEnding::Options
        | PricedEnding::Page
        | PricedEnding::Unlisted => None,
    }
}

fn status_of(ending: PricedEnding) -> u16 {
    match ending {
        PricedEnding::Data | PricedEnding::Me | PricedEnding::Page => 200,
        PricedEnding::NotModified => 304,
        PricedEnding::Options => 204,
        PricedEnding::Unlisted => ErrorCode::ModelNotFound.row().status.as_u16(),
        PricedEnding::Error(code) => code.row().status.as_u16(),
    }
}

async fn refusals(world: &World, ending: PricedEnding) -> u32 {
    let code = match ending {
        PricedEnding::Error(code) => code,
        PricedEnding::Unlisted => ErrorCode::ModelNotFound,
        PricedEnding::Data
        | PricedEnding::NotModified
        | PricedEnding::Me
        | PricedEnding::Options
        | PricedEnding::Page => return 0,
    };
    world.refused(code.row().word).await
}

async fn customer_for(world: &World, ending: PricedEnding) -> Customer {
    if ending == PricedEnding::Error(ErrorCode::QuotaExceeded) {
        world.customer_with("free", own(5, 1)).await
    } else if ending == PricedEnding::Error(ErrorCode::InternalError) {
        // Many units are leased in advance, so that its next request needs no lease.
        world.busy().await
    } else {
        world.customer("free").await
    }
}

/// Prepares the state for this outcome, and returns the request.
async fn prepared(
    world: &World,
    ending: PricedEnding,
    method: &str,
    customer: &Customer,
) -> RequestBuilder {
    let request = |target: &str| world.request(method, target).key(&customer.key);
    match ending {
        PricedEnding::Data => request(MODELS),
        PricedEnding::NotModified => {
            let other = world.free().await;
            let etag = world.get_as(&other, MODELS).await.header("etag").to_owned();
            request(MODELS).header("If-None-Match", &etag)
        }
        PricedEnding::Me => request("/api/v1/me"),
        PricedEnding::Options => world.request("OPTIONS", MODELS).key(&customer.key),
        PricedEnding::Page => request("/docs"),
        PricedEnding::Unlisted => {
            // The retry reservation of a refused caller is kept for a while.
            world.pass(Duration::from_secs(3));
            let other = world.free().await;
            assert_eq!(
                world
                    .get_as(&other, &format!("{MODELS}/{method}-made-up"))
                    .await
                    .status,
                200
            );
            request(&format!("{MODELS}/{method}-made-up-too"))
        }
        PricedEnding::Error(code) => prepared_error(world, code, method, customer).await,
    }
}

async fn prepared_error(
    world: &World,
    code: ErrorCode,
    method: &str,
    customer: &Customer,
) -> RequestBuilder {
    // Unknown models are fetched once a second. After failures a backend is tried again within five.
    world.pass(Duration::from_secs(10));
    let request = |target: &str| world.request(method, target).key(&customer.key);
    let unseen = format!("{MODELS}/unseen-{}", world.clock.now().mono.nanos());
    match code {
        ErrorCode::BadRequest => request(MODELS).without_host(),
        ErrorCode::InvalidModelId => request("/api/v1/models/%00"),
        ErrorCode::InvalidPeriod => request("/api/v1/models?period=7D"),
        ErrorCode::InvalidSortBy => request("/api/v1/models?sortBy=size"),
        ErrorCode::InvalidLimit => request("/api/v1/incidents?limit=0"),
        ErrorCode::InvalidParameter => request("/api/v1/regions?unit=hour"),
        ErrorCode::ApiKeyRequired => world.request(method, MODELS),
        ErrorCode::InvalidApiKey => world.request(method, MODELS).key("sg_live_unknown"),
        ErrorCode::LatestRequiresPlan => request("/api/v1/models?period=latest"),
        ErrorCode::PlanRequired => request("/api/v1/incidents?period=1m"),
        ErrorCode::NotFound => request("/api/v1/nothing"),
        ErrorCode::ModelNotFound => request("/api/v1/models/nobody"),
        ErrorCode::MethodNotAllowed => world
            .request(if method == "GET" { "POST" } else { "DELETE" }, MODELS)
            .key(&customer.key),
        ErrorCode::UriTooLong => request(&format!("{MODELS}?x={}", "x".repeat(3_000))),
        ErrorCode::HeadersTooLarge => request(MODELS).header("X-Large", &"x".repeat(17_000)),
        ErrorCode::InternalError => request(&unseen),
        ErrorCode::QuotaExceeded | ErrorCode::RateLimitExceeded => {
            assert_eq!(world.get_as(customer, MODELS).await.status, 200);
            request(&unseen)
        }
        ErrorCode::TooManyRefusals => {
            for _ in 0..60 {
                assert_eq!(world.get_as(customer, "/api/v1/nothing").await.status, 404);
            }
            request("/api/v1/nothing")
        }
        ErrorCode::UpstreamInvalid => {
            world.backend.next(json("nonsense"));
            request(&unseen)
        }
        ErrorCode::UpstreamUnavailable => {
            world
                .backend
                .next(respond("500 Internal Server Error", &[], ""));
            request(&unseen)
        }
        ErrorCode::UpstreamTimeout => {
            world.backend.next(Act::Hang);
            request(&unseen)
        }
        ErrorCode::Overloaded => {
            world.ledger_fails();
            request(MODELS)
        }
    }
}

/// Sends the request, and causes the events that must occur in the meantime.
async fn ended(
    world: &World,
    ending: PricedEnding,
    request: RequestBuilder,
    customer: &Customer,
) -> Option<Response> {
    if ending == PricedEnding::Error(ErrorCode::InternalError) {
        outside_of_any_runtime(world, customer);
        return None;
    }
    let received = world.backend.received().len();
    let is_late = ending == PricedEnding::Error(ErrorCode::UpstreamTimeout);
    let (response, ()) = tokio::join!(request.send(), async {
        if is_late {
            world.backend.has_received(received + 1).await;
            world.pass(Duration::from_secs(15));
        }
    });
    Some(response)
}

/// No request makes the handler panic. On a thread without a runtime it panics when it starts the fetch.
fn outside_of_any_runtime(world: &World, customer: &Customer) {
    let gateway = world.running.gateway();
    let unseen = format!("{MODELS}/unseen-{}", world.clock.now().mono.nanos());
    let request = Request::get(unseen)
        .header("host", "localhost")
        .header("x-api-key", &customer.key);
    let (head, ()) = request.body(()).unwrap().into_parts();
    let peer = Peer {
        address: Ipv4Addr::LOCALHOST.into(),
        is_encrypted: false,
        is_tool_call: false,
    };
    let handled = std::thread::spawn(move || {
        pollster::block_on(gateway.handle(&head, false, peer, &ConnectionTrust::default())).status()
    });
    assert_eq!(handled.join().unwrap(), 500);
}

#[tokio::test]
async fn data_costs_a_token_and_a_unit_from_cache_and_from_upstream() {
    for method in ["GET", "HEAD"] {
        let world = World::new().await;
        let customer = world.customer_with("pro", own(1_000, 10_000)).await;
        let pays = async |outcome: &str| {
            let before = world.left(&customer);
            let served = world.served(outcome).await;
            let response = world
                .request(method, MODELS)
                .key(&customer.key)
                .send()
                .await;
            assert_eq!(response.status, 200, "{outcome}");
            assert_eq!(
                before.spent(world.left(&customer)),
                (1, 1, 0),
                "{method} {outcome}"
            );
            assert!(
                world.served(outcome).await > served,
                "{outcome}: {}",
                response.header("cache-status")
            );
        };
        pays("miss").await;
        pays("hit").await;
        world.pass(Duration::from_hours(1));
        pays("stale").await;
        world.fetched(2).await;
        world.pass(Duration::from_hours(48));
        pays("refreshed").await;
        world.pass(Duration::from_hours(48));
        world
            .backend
            .next(respond("500 Internal Server Error", &[], ""));
        pays("stale_on_error").await;
        let delivered = world
            .counted("scoregate_quota_units_total{use=\"delivered\"}")
            .await;
        assert_eq!(delivered, 5);
    }
}

#[tokio::test]
async fn every_waiter_of_one_fetch_is_charged() {
    let world = World::new().await;
    let [first, second] = [world.customer("free").await, world.busy().await];
    let before = world.left(&second);
    world.backend.hold();
    let target = "/api/v1/models?period=24h";
    let leader = world.get(target).key(&first.key).send();
    let waiters = async {
        world.backend.has_received(2).await;
        let request = || world.request("HEAD", target).key(&second.key).send();
        tokio::join!(request(), request(), async {
            world.has_waiters(3).await;
            world.backend.open();
        })
    };
    let (one, (two, three, ())) = tokio::join!(leader, waiters);
    assert_eq!([one.status, two.status, three.status], [200; 3]);
    let first = world.left(&first);
    assert_eq!((first.minute, first.day), (0, 9));
    assert_eq!(before.spent(world.left(&second)), (2, 2, 0));
    assert_eq!(world.served("shared").await, 2);
    assert_eq!(world.backend.count(target), 1);
}

#[tokio::test]
async fn a_disconnected_client_gets_its_unit_back_but_not_its_token() {
    let world = World::new().await;
    let customer = world.customer_with("free", wide()).await;
    let before = world.left(&customer);
    world.backend.hold();
    let waiting = world.get(MODELS).key(&customer.key).begin().await;
    world.backend.has_received(1).await;
    assert_eq!(before.spent(world.left(&customer)), (1, 1, 0));
    drop(waiting);
    world.reaches("scoregate_client_disconnects_total", 1).await;
    assert_eq!(before.spent(world.left(&customer)), (1, 0, 0));
    world.backend.open();
    world.fetched(1).await;
    assert_eq!(
        world.get_as(&customer, MODELS).await.header("cache-status"),
        "scoregate; hit; ttl=3600"
    );
    assert_eq!(world.backend.received().len(), 1);
}

#[tokio::test]
async fn the_last_unit_is_refused_to_others_while_a_request_holds_it_and_is_back_after_a_304_or_a_failure()
 {
    for fails in [false, true] {
        let world = World::new().await;
        let customer = world.customer_with("pro", own(1_000, 2)).await;
        let first = world.get_as(&customer, MODELS).await;
        let etag = first.header("etag").to_owned();
        let engine = &world.running.gateway().engine;
        assert_eq!(engine.purge(&Selection::All, true).await, 1);
        if fails {
            world
                .backend
                .next(respond("500 Internal Server Error", &[], ""));
        }
        world.backend.hold();
        let request = world.get(MODELS).key(&customer.key);
        let holder = request.header("If-None-Match", &etag).send();
        let others = async {
            world.backend.has_received(2).await;
            let refused = world.get_as(&customer, MODELS).await;
            world.backend.open();
            refused
        };
        let (holder, refused) = tokio::join!(holder, others);
        assert_eq!(
            (refused.status, refused.code()),
            (429, "quota_exceeded".into())
        );
        assert_eq!(holder.status, if fails { 503 } else { 304 });
        world.pass(Duration::from_secs(5));
        assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
        assert_eq!(world.left(&customer).day, 0);
    }
}
