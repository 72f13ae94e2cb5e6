//! Overload: an unresponsive backend fills the pool `waiting`. Further requests are refused immediately, or at the queue
//! timeout, and are free. Cached documents are served as usual, and access rules do not change.

use std::time::Duration;

use crate::{
    backend::Act,
    client::{Connection, Response},
    world::{Customer, World, good},
};

/// Two waiting slots and a queue of one; one cached slot, since such a slot is held only briefly.
const CONCURRENCY: &str = "overload.cached_slots = 1\noverload.waiting_slots = 2\noverload.queue_length = 1\noverload.queue_timeout = \"10ms\"";
const MAX_RESPONSES: Duration = Duration::from_millis(10);
const REFUSED: &str = "scoregate_overload_refused_total{pool=\"waiting\"}";
const QUEUED: &str = "scoregate_overload_queued_total{pool=\"waiting\"}";
const ATLAS: &str = "/api/v1/models/atlas";
const INDEX: &str = "/api/v1/index";

/// Without these limits the tests would wait forever; this timeout makes them fail.
const TIMEOUT: Duration = Duration::from_secs(30);

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, work)
        .await
        .expect("the expected event does not occur")
}

/// A list of incidents that was not requested before.
fn other(number: u32) -> String {
    format!("/api/v1/incidents?limit={number}")
}

/// A gateway with both waiting slots in use.
struct Full {
    world: World,
    /// The customers of the cached documents, which are the index and a model in both forms.
    paid: Customer,
    free: Customer,
    /// The connections that hold the two waiting slots.
    waiting: [Connection; 2],
}

impl Full {
    async fn new() -> Self {
        let world = World::with(CONCURRENCY, good).await;
        let paid = world.paid().await;
        let free = world.free().await;
        for customer in [&paid, &free] {
            for target in [ATLAS, INDEX] {
                assert_eq!(world.get_as(customer, target).await.status, 200);
            }
        }
        world.backend.hold();
        let one = world.get(&other(1)).key(&paid.key).begin().await;
        let two = world.get(&other(2)).key(&paid.key).begin().await;
        let full = Self {
            world,
            paid,
            free,
            waiting: [one, two],
        };
        full.wait_for_slots(2).await;
        full
    }

    /// Waits until this many waiting slots are in use.
    async fn wait_for_slots(&self, slots: u32) {
        in_time(async {
            self.world.running.gateway().sweep();
            while self
                .world
                .counted("scoregate_concurrency_in_use{pool=\"waiting\"}")
                .await
                != slots
            {
                tokio::task::yield_now().await;
                self.world.running.gateway().sweep();
            }
        })
        .await;
    }

    /// Sends a request that is refused for lack of a slot.
    async fn assert_refused(&self, customer: &Customer, target: &str) {
        is_refused(&in_time(self.world.get_as(customer, target)).await);
    }

    /// Sends a request that is queued.
    async fn queue_request(&self, number: u32) -> Connection {
        let queued = self.world.counted(QUEUED).await;
        let connection = self
            .world
            .get(&other(number))
            .key(&self.paid.key)
            .begin()
            .await;
        in_time(self.world.reaches(QUEUED, queued + 1)).await;
        connection
    }

    /// The backend responds again: both are served, and the state is as before.
    async fn finish(mut self) {
        self.world.backend.open();
        for waiting in &mut self.waiting {
            assert_eq!(in_time(waiting.read(false)).await.unwrap().status, 200);
        }
        self.is_over().await;
    }

    async fn is_over(&self) {
        self.wait_for_slots(0).await;
        self.world.settled().await;
        in_time(
            self.world
                .reaches_exactly("scoregate_requests_in_progress", 0),
        )
        .await;
        assert_eq!(
            self.world
                .counted("scoregate_concurrency_in_use{pool=\"cached\"}")
                .await,
            0
        );
        let refused = self.world.counted(REFUSED).await;
        for number in 50..60 {
            assert_eq!(
                in_time(self.world.get_as(&self.paid, &other(number)))
                    .await
                    .status,
                200
            );
        }
        assert_eq!(self.world.counted(REFUSED).await, refused);
    }
}

impl World {
    async fn reaches_exactly(&self, series: &str, value: u32) {
        while self.counted(series).await != value {
            tokio::task::yield_now().await;
        }
    }
}

fn is_refused(response: &Response) {
    assert_eq!(
        (response.status, response.code()),
        (503, "overloaded".into())
    );
    assert_eq!(
        (
            response.header("retry-after"),
            response.header("cache-control")
        ),
        ("1", "no-store")
    );
    assert_eq!(response.header("x-ratelimit-resource"), "day");
    assert!(!response.closes());
}

#[tokio::test]
async fn with_two_slots_and_a_queue_of_one_the_fourth_is_refused_at_once_and_the_third_at_the_queue_timeout()
 {
    let full = Full::new().await;
    let mut third = full.queue_request(3).await;
    full.assert_refused(&full.paid, &other(4)).await;
    assert_eq!(
        full.world.counted(REFUSED).await,
        1,
        "the third is still queued"
    );
    full.world.pass(MAX_RESPONSES);
    let response = in_time(third.read(false)).await.unwrap();
    full.world.check("GET", &other(3), &response);
    is_refused(&response);
    assert_eq!(full.world.counted(REFUSED).await, 2);
    assert_eq!(full.world.refused("overloaded").await, 2);
    let mut fifth = full.queue_request(5).await;
    full.world.pass(MAX_RESPONSES);
    is_refused(&in_time(fifth.read(false)).await.unwrap());
    full.finish().await;
}

#[tokio::test]
async fn cached_documents_are_served_in_full_while_the_waiting_pool_is_full() {
    let full = Full::new().await;
    let _third = full.queue_request(3).await;
    let world = &full.world;
    let before = full.world.left(&full.paid);
    let etag = world
        .get_as(&full.paid, INDEX)
        .await
        .header("etag")
        .to_owned();
    for number in 0..50 {
        let response = world
            .get_as(&full.paid, if number % 2 == 0 { INDEX } else { ATLAS })
            .await;
        assert_eq!(response.status, 200);
        assert!(
            response
                .header("cache-status")
                .starts_with("scoregate; hit"),
            "{}",
            response.header("cache-status")
        );
        let request = world
            .get(INDEX)
            .key(&full.paid.key)
            .header("If-None-Match", &etag);
        assert_eq!(request.send().await.status, 304);
    }
    assert_eq!(before.spent(world.left(&full.paid)), (101, 51, 0));
    for target in ["/", "/docs", "/healthz"] {
        assert_eq!(world.get(target).send().await.status, 200);
    }
    assert_eq!(
        in_time(world.get_as(&full.paid, "/api/v1/me")).await.status,
        200
    );
    assert_eq!(
        world
            .counted("scoregate_overload_queued_total{pool=\"cached\"}")
            .await,
        0
    );
    assert_eq!(
        world
            .counted("scoregate_overload_refused_total{pool=\"cached\"}")
            .await,
        0
    );
    // An overdue document is served while it is refreshed, so this request does not wait either.
    world.pass(Duration::from_hours(2));
    assert!(
        world
            .get_as(&full.paid, INDEX)
            .await
            .header("cache-status")
            .ends_with("detail=stale")
    );
}

#[tokio::test]
async fn a_document_that_needs_a_fetch_needs_a_slot_of_the_waiting_pool() {
    let world = World::with(&format!("{CONCURRENCY}\nfreshness.max_wait = \"5s\""), good).await;
    let customer = world.paid().await;
    assert_eq!(world.get_as(&customer, INDEX).await.status, 200);
    world.pass(Duration::from_hours(26));
    world.backend.set_script(|_| Act::Hang);
    let waiting = [
        world.get(&other(1)).key(&customer.key).begin().await,
        world.get(&other(2)).key(&customer.key).begin().await,
    ];
    let full = Full {
        free: customer.clone(),
        paid: customer,
        waiting,
        world,
    };
    full.wait_for_slots(2).await;
    let third = full.queue_request(3).await;
    full.assert_refused(&full.paid, INDEX).await;
    third.reset();
    for connection in full.waiting {
        connection.reset();
    }
}

#[tokio::test]
async fn a_request_refused_for_lack_of_a_slot_is_free_and_sends_no_upstream_request() {
    let full = Full::new().await;
    let mut third = full.queue_request(3).await;
    let before = full.world.left(&full.paid);
    let already_received = full.world.backend.received().len();
    for number in 10..40 {
        full.assert_refused(&full.paid, &other(number)).await;
        let head = in_time(
            full.world
                .request("HEAD", &other(number))
                .key(&full.paid.key)
                .send(),
        )
        .await;
        assert_eq!((head.status, head.body.len()), (503, 0));
    }
    assert_eq!(before.spent(full.world.left(&full.paid)), (0, 0, 0));
    // The queue timeout lets the minute regain some tokens.
    full.world.pass(MAX_RESPONSES);
    let before = full.world.left(&full.paid);
    is_refused(&in_time(third.read(false)).await.unwrap());
    assert_eq!(before.spent(full.world.left(&full.paid)), (0, 0, 0));
    assert_eq!(full.world.backend.received().len(), already_received);
    assert_eq!(full.world.counted(REFUSED).await, 61);
    full.finish().await;
}

#[tokio::test]
async fn authorization_errors_precede_overload_and_overload_precedes_the_daily_limit() {
    let full = Full::new().await;
    let _third = full.queue_request(3).await;
    let world = &full.world;
    let wrong = world.get_by("wrong", &other(9)).await;
    assert_eq!(wrong.code(), "invalid_api_key");
    let latest = world
        .get("/api/v1/incidents?period=latest")
        .key(&full.free.key)
        .send()
        .await;
    assert_eq!(latest.code(), "latest_requires_plan");
    let spent = world
        .customer_with("pro", crate::balances::own(10, 1))
        .await;
    assert_eq!(world.get_as(&spent, INDEX).await.status, 200);
    full.assert_refused(&spent, &other(9)).await;
    assert_eq!(world.get_as(&spent, INDEX).await.code(), "quota_exceeded");
}

/// The incident that this prevents: caching was enabled in an emergency, and users got the responses of others.
#[tokio::test]
async fn overload_changes_neither_the_stored_documents_nor_access_to_them() {
    let full = Full::new().await;
    let mut third = full.queue_request(3).await;
    let world = &full.world;
    let documents = full.world.documents();
    for round in 0..20 {
        full.assert_refused(&full.free, &other(20 + round)).await;
        let [me, other_me] = [
            world.get_as(&full.paid, "/api/v1/me").await,
            world.get_as(&full.free, "/api/v1/me").await,
        ];
        for (response, customer) in [(&me, &full.paid), (&other_me, &full.free)] {
            assert_eq!(
                (response.status, response.header("cache-control")),
                (200, "private, no-store")
            );
            assert_eq!(
                response.json()["data"][0]["application"]["id"],
                customer.id.to_string()
            );
        }
        for encoding in ["identity", "gzip", "br"] {
            let request = |customer: &Customer| {
                world
                    .get(ATLAS)
                    .key(&customer.key)
                    .header("Accept-Encoding", encoding)
            };
            let [paid, free] = [
                request(&full.paid).send().await,
                request(&full.free).send().await,
            ];
            let has = |response: &Response| {
                String::from_utf8(response.decoded())
                    .unwrap()
                    .contains("latestScore")
            };
            assert_eq!(
                (paid.status, has(&paid), free.status, has(&free)),
                (200, true, 200, false)
            );
            assert_ne!(paid.header("etag"), free.header("etag"));
            let theirs = request(&full.free)
                .header("If-None-Match", paid.header("etag"))
                .send()
                .await;
            assert_eq!((theirs.status, has(&theirs)), (200, false));
        }
    }
    assert_eq!(world.documents(), documents, "nothing new is stored");
    full.world.pass(MAX_RESPONSES);
    is_refused(&in_time(third.read(false)).await.unwrap());
    full.finish().await;
}

#[tokio::test]
async fn a_client_that_disconnects_frees_its_slot() {
    let mut full = Full::new().await;
    let third = full.queue_request(3).await;
    third.reset();
    in_time(full.world.reaches("scoregate_client_disconnects_total", 1)).await;
    // Both fetches continue although their waiters have disconnected.
    let [one, two] = full.waiting;
    one.reset();
    two.reset();
    in_time(full.world.reaches("scoregate_client_disconnects_total", 3)).await;
    full.waiting = [
        full.world.get(&other(1)).key(&full.paid.key).begin().await,
        full.world.get(&other(2)).key(&full.paid.key).begin().await,
    ];
    full.wait_for_slots(2).await;
    full.finish().await;
}
