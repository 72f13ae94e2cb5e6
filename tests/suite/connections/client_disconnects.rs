//! Clients that disconnect before they are answered: the fetch they started continues for its waiters at every stage,
//! and no response is ever sent to another client.

use std::{collections::BTreeSet, sync::mpsc, time::Duration};

use futures_util::future::join_all;

use crate::{
    backend::{Act, Received, json},
    client::Connection,
    upstreams::protection::wait_for_queue_length,
    world::{Customer, World, good},
};

const MODELS: &str = "/api/v1/models?period=24h";
const INDEX: &str = "/api/v1/index";
const DATA: &str =
    r#"{"generated_at":"2026-11-21T12:00:00Z","data":[{"id":"atlas","currentScore":1}]}"#;
const ONE_AT_ONCE: &str = "[upstream]\nurl = \"{backend}\"\nmax_concurrent_requests = 1";
const WAITERS: usize = 20;
/// A target that all clients have requested before.
const OTHER: &str = "/api/v1/alerts";

/// The customers of the disconnecting leader and of the waiters. Each has enough leased units.
struct Scenario {
    world: World,
    leader: Customer,
    waiter: Customer,
    /// The upstream requests so far.
    before: usize,
}

impl Scenario {
    async fn set(settings: &str) -> Self {
        let world = World::with(settings, good).await;
        let [leader, waiter] = [world.busy_with(OTHER).await, world.busy_with(OTHER).await];
        let before = world.backend.received().len();
        world.backend.hold();
        Self {
            world,
            leader,
            waiter,
            before,
        }
    }

    async fn start_leader(&self) -> Connection {
        self.world.get(MODELS).key(&self.leader.key).begin().await
    }

    /// The leader is reset at `moment`, with `further` other requests in flight; the
    /// waiters are served normally when the fetch continues.
    async fn run_with_reset(
        &self,
        leading: Connection,
        further: usize,
        moment: impl Future<Output = ()>,
        on_continue: impl FnOnce(),
    ) {
        let waiting = join_all((0..WAITERS).map(|_| self.world.get_as(&self.waiter, MODELS)));
        let (responses, ()) = tokio::join!(waiting, async {
            self.world.has_waiters(1 + WAITERS + further).await;
            moment.await;
            leading.reset();
            self.world
                .reaches("scoregate_client_disconnects_total", 1)
                .await;
            self.world.backend.open();
            on_continue();
        });
        for response in responses {
            assert_eq!(
                (response.status, response.header("cache-status")),
                (200, "scoregate; fwd=miss; collapsed; detail=shared")
            );
        }
        let again = self.world.get_as(&self.waiter, MODELS).await;
        assert!(
            again.header("cache-status").starts_with("scoregate; hit"),
            "the document was stored"
        );
        assert_eq!(self.world.backend.count("/api/v1/models"), 1);
        self.world.settled().await;
    }

    /// The backend sends these parts of a response: the leader disconnects between the first and the second.
    async fn run_with_reset_between(&self, parts: [String; 2]) {
        self.world
            .backend
            .next(Act::Parts(parts.map(String::into_bytes).to_vec()));
        let leading = self.start_leader().await;
        self.world.backend.has_received(self.before + 1).await;
        self.world.backend.release(1);
        self.run_with_reset(
            leading,
            0,
            self.world.backend.has_sent(self.before + 1),
            || (),
        )
        .await;
    }
}

#[tokio::test]
async fn waiters_are_served_if_the_leader_is_reset_before_the_upstream_request() {
    let scenario = Scenario::set(ONE_AT_ONCE).await;
    let blocking = scenario
        .world
        .get(INDEX)
        .key(&scenario.waiter.key)
        .begin()
        .await;
    scenario
        .world
        .backend
        .has_received(scenario.before + 1)
        .await;
    let leading = scenario.start_leader().await;
    scenario
        .run_with_reset(leading, 1, wait_for_queue_length(&scenario.world, 1), || ())
        .await;
    drop(blocking);
}

#[tokio::test]
async fn waiters_are_served_if_the_leader_is_reset_before_the_response_begins() {
    let scenario = Scenario::set("").await;
    let leading = scenario.start_leader().await;
    scenario
        .run_with_reset(
            leading,
            0,
            scenario.world.backend.has_received(scenario.before + 1),
            || (),
        )
        .await;
}

#[tokio::test]
async fn waiters_are_served_if_the_leader_is_reset_during_the_response() {
    let (first, second) = DATA.split_at(DATA.len() / 2);
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{first}",
        DATA.len()
    );
    Scenario::set("")
        .await
        .run_with_reset_between([head, second.to_owned()])
        .await;
}

#[tokio::test]
async fn waiters_are_served_if_the_leader_is_reset_between_the_last_data_and_the_end_of_the_response()
 {
    let head = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{DATA}\r\n",
        DATA.len()
    );
    Scenario::set("")
        .await
        .run_with_reset_between([head, "0\r\n\r\n".to_owned()])
        .await;
}

/// Documents are built on a blocking thread. Here there is only one such thread, and it is busy, so the response is
/// complete but not stored.
#[test]
fn waiters_are_served_if_the_leader_is_reset_before_the_response_is_stored() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder
        .worker_threads(2)
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let scenario = Scenario::set(ONE_AT_ONCE).await;
        let (say_begun, start) = mpsc::channel();
        let (free, freed) = mpsc::channel::<()>();
        let blocking_task = tokio::task::spawn_blocking(move || {
            say_begun.send(()).unwrap();
            freed.recv().unwrap();
        });
        start.recv().unwrap();
        let leading = scenario.start_leader().await;
        scenario
            .world
            .backend
            .has_received(scenario.before + 1)
            .await;
        let stored = scenario.world.documents();
        let next = scenario
            .world
            .get(INDEX)
            .key(&scenario.waiter.key)
            .begin()
            .await;
        let moment = async {
            wait_for_queue_length(&scenario.world, 1).await;
            scenario.world.backend.release(1);
            // The next fetch is sent when this response is complete.
            scenario
                .world
                .backend
                .has_received(scenario.before + 2)
                .await;
            assert_eq!(scenario.world.documents(), stored);
        };
        scenario
            .run_with_reset(leading, 1, moment, || free.send(()).unwrap())
            .await;
        drop(next);
        blocking_task.await.unwrap();
    });
}

#[tokio::test]
async fn a_late_response_is_sent_to_no_other_request() {
    let response_of = |received: &Received| {
        json(&format!(
            r#"{{"data":[{{"id":"atlas","asked":"{}"}}]}}"#,
            received.target()
        ))
    };
    let world = World::with("", response_of).await;
    let customer = world.paid().await;
    world.backend.hold();
    let (late, ()) = tokio::join!(world.get_as(&customer, MODELS), async {
        world.backend.has_received(1).await;
        world.pass(Duration::from_secs(15));
    });
    assert_eq!(late.status, 504);
    world.backend.open();
    world.backend.has_sent(1).await;
    for target in [INDEX, "/api/v1/alerts", MODELS] {
        world.pass(Duration::from_secs(1));
        let response = world.get_as(&customer, target).await;
        let target_in_body = response.json()["data"][0]["asked"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            response.status == 200 && target_in_body.starts_with(target),
            "{target}: {target_in_body}"
        );
    }
    let connections: Vec<usize> = world
        .backend
        .received()
        .iter()
        .map(|one| one.connection)
        .collect();
    assert!(
        connections[1..]
            .iter()
            .all(|connection| *connection > connections[0]),
        "{connections:?}"
    );
    assert_eq!(
        world.backend.count(MODELS),
        2,
        "the late response was not stored"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn with_half_of_two_thousand_clients_reset_each_other_client_gets_its_own_response() {
    let world = World::with("guard.per_minute = 100000", good).await;
    let customers = join_all((0..20).map(|_| world.paid())).await;
    for round in 0..50_u64 {
        let asks = (0..40_u64).map(|number| {
            let rng = (round * 40 + number).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
            let customer = &customers[usize::try_from(number / 2).unwrap()];
            let target = if rng.is_multiple_of(3) {
                MODELS
            } else {
                "/api/v1/me"
            };
            let world = &world;
            async move {
                if number.is_multiple_of(2) {
                    let leaving = world.get(target).key(&customer.key).begin().await;
                    for _ in 0..rng % 50 {
                        tokio::task::yield_now().await;
                    }
                    leaving.reset();
                    return None;
                }
                Some((
                    customer.id.to_string(),
                    world.get_as(customer, "/api/v1/me").await,
                ))
            }
        });
        let responses: Vec<_> = join_all(asks).await.into_iter().flatten().collect();
        let ids = responses.iter().map(|(id, _)| id).collect::<BTreeSet<_>>();
        assert_eq!((responses.len(), ids.len()), (20, 20));
        for (id, me) in &responses {
            assert_eq!(
                (me.status, &me.json()["data"][0]["application"]["id"]),
                (200, &id.as_str().into())
            );
        }
        world.running.gateway().sweep();
    }
    assert_eq!(world.backend.count("/api/v1/models"), 1);
    assert_eq!(world.counted("scoregate_panics_total").await, 0);
}
