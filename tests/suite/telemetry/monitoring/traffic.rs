//! Traffic for every metric: every outcome, class and rule, and the failures of backend and ledger. Each step ends
//! when the metric shows it.

use std::{net::SocketAddr, time::Duration};

use futures_util::future::join_all;
use tempfile::TempDir;

use crate::{
    backend::{Act, json, respond},
    balances::own,
    client::Connection,
    program::run,
    upstreams::protection::wait_for_queue_length,
    world::{Customer, World, good},
};

/// Three waiting slots, a queue of one, and a wait of at most five seconds.
const CONCURRENCY: &str = "overload.waiting_slots = 3\noverload.queue_length = 1\noverload.queue_timeout = \"10ms\"\nfreshness.max_wait = \"5s\"";
const MODELS: &str = "/api/v1/models?period=24h";
/// Longer than the circuit breaker stays open.
const BREAKER_OPEN: Duration = Duration::from_secs(70);

/// Series that must be non-zero at the end.
const NON_ZERO: &[(&str, &[&str])] = &[
    (
        "scoregate_documents_served_total{outcome",
        &[
            "hit",
            "miss",
            "shared",
            "stale",
            "refreshed",
            "stale_on_error",
        ],
    ),
    ("scoregate_limited_total{rule=\"minute\",tier", &["free"]),
    ("scoregate_limited_total{rule=\"day\",tier", &["teams"]),
    ("scoregate_limited_total{rule=\"guard\",tier", &["none"]),
    (
        "scoregate_tier_requests_total{tier=\"pro\",class",
        &["2xx", "3xx", "4xx", "5xx"],
    ),
    ("scoregate_requests_total{endpoint=\"page\",class", &["2xx"]),
    (
        "scoregate_requests_total{endpoint=\"options\",class",
        &["2xx"],
    ),
    (
        "scoregate_upstream_requests_total{result",
        &[
            "success",
            "not_found",
            "unreachable",
            "error_status",
            "timeout",
            "invalid",
            "circuit_open",
            "queue_full",
        ],
    ),
    ("scoregate_overload_queued_total{pool", &["waiting"]),
    ("scoregate_overload_refused_total{pool", &["waiting"]),
    (
        "scoregate_ledger_unreachable_decisions_total{decision",
        &["grace", "refused"],
    ),
    ("scoregate_quota_units_total{use", &["leased", "delivered"]),
    ("scoregate_store_failures_total{operation", &["lease"]),
    ("scoregate_reloads_total{result", &["applied", "rejected"]),
    (
        "scoregate_refusals_total{code",
        &[
            "bad_request",
            "invalid_model_id",
            "invalid_period",
            "api_key_required",
            "invalid_api_key",
            "latest_requires_plan",
            "not_found",
            "model_not_found",
            "method_not_allowed",
            "quota_exceeded",
            "rate_limit_exceeded",
            "too_many_refusals",
            "upstream_invalid",
            "upstream_unavailable",
            "overloaded",
            "upstream_timeout",
        ],
    ),
];

/// Two gateways, one of them with a certificate, and the callers of the first.
pub struct Traffic {
    world: World,
    with_tls: World,
    free: Customer,
    paid: Customer,
    _certificates: TempDir,
}

fn model(number: u32) -> String {
    format!("/api/v1/models/m{number}")
}

/// A list of incidents that was not requested before.
fn other(number: u32) -> String {
    format!("/api/v1/incidents?limit={number}")
}

impl Traffic {
    /// No traffic yet.
    pub async fn new() -> Self {
        let world = World::with(CONCURRENCY, good).await;
        let certificates = TempDir::new().unwrap();
        let [certificate, key] =
            ["pem", "key"].map(|what| certificates.path().join(what).to_str().unwrap().to_owned());
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let tls = format!("[tls.default]\ncertificate = {certificate:?}\nkey = {key:?}\n");
        let with_tls = World::with(&tls, good).await;
        let free = world.free().await;
        let paid = world.paid().await;
        Self {
            world,
            with_tls,
            free,
            paid,
            _certificates: certificates,
        }
    }

    /// The side ports of both gateways.
    pub fn sides(&self) -> [SocketAddr; 2] {
        [self.world.running.side, self.with_tls.running.side]
    }

    /// Runs all steps.
    pub async fn run_all(&mut self) {
        self.successes().await;
        self.refusals().await;
        self.limits().await;
        self.share_and_disconnect().await;
        self.full_queue().await;
        self.slow_backend().await;
        self.pass_days().await;
        self.failing_backend().await;
        self.unreachable_ledger().await;
        self.settings().await;
        self.backup().await;
        self.world.settled().await;
        let scrape = self.world.scrape().await;
        for (series, words) in NON_ZERO {
            for word in *words {
                let line = format!("{series}=\"{word}\"}} ");
                let value = scrape.lines().find_map(|metric| metric.strip_prefix(&line));
                assert!(value.is_some_and(|value| value != "0"), "{line}{value:?}");
            }
        }
    }

    async fn successes(&self) {
        let Self {
            world, free, paid, ..
        } = self;
        for page in ["/docs", "/openapi.json", "/healthz"] {
            assert_eq!(world.get(page).send().await.status, 200);
        }
        assert_eq!(world.request("OPTIONS", MODELS).send().await.status, 204);
        for target in [MODELS, MODELS, "/api/v1/me", &model(30), &model(30)] {
            for customer in [free, paid] {
                assert_eq!(world.get_as(customer, target).await.status, 200);
            }
        }
        let tag = world
            .get(MODELS)
            .key(&paid.key)
            .method("HEAD")
            .send()
            .await
            .header("etag")
            .to_owned();
        let current = world
            .get(MODELS)
            .key(&paid.key)
            .header("If-None-Match", &tag)
            .send()
            .await;
        assert_eq!(current.status, 304);
    }

    async fn refusals(&self) {
        let Self {
            world, free, paid, ..
        } = self;
        let refused = [
            (world.get(MODELS).key("sg_live_wrong"), "invalid_api_key"),
            (
                world.get("/api/v1/models?period=latest").key(&free.key),
                "latest_requires_plan",
            ),
            (
                world.get("/api/v1/models?period=never").key(&free.key),
                "invalid_period",
            ),
            (
                world.get("/api/v1/models/.m").key(&free.key),
                "invalid_model_id",
            ),
            (world.get("/api/v2/models").key(&paid.key), "not_found"),
            (
                world.get("/api/v1/models/nobody").key(&paid.key),
                "model_not_found",
            ),
            (
                world.request("POST", MODELS).key(&paid.key),
                "method_not_allowed",
            ),
            (world.get(MODELS).without_host(), "bad_request"),
        ];
        for (request, code) in refused {
            assert_eq!(request.send().await.code(), code);
        }
    }

    async fn limits(&self) {
        let world = &self.world;
        let limited = world.customer_with("free", own(1, 100)).await;
        let exhausted = world.customer_with("teams", own(100, 1)).await;
        for (customer, code) in [
            (&limited, "rate_limit_exceeded"),
            (&exhausted, "quota_exceeded"),
        ] {
            assert_eq!(world.get_as(customer, MODELS).await.status, 200);
            assert_eq!(world.get_as(customer, MODELS).await.code(), code);
        }
        for _ in 0..100 {
            if world.get(MODELS).send().await.code() == "too_many_refusals" {
                return;
            }
        }
        panic!("the guard refused nothing");
    }

    async fn share_and_disconnect(&self) {
        let Self { world, paid, .. } = self;
        world.backend.hold();
        let leaves = world.get("/api/v1/index").key(&paid.key).begin().await;
        world.has_waiters(1).await;
        let stay = join_all((0..2).map(|_| world.get_as(paid, "/api/v1/index")));
        let (responses, ()) = tokio::join!(stay, async {
            world.has_waiters(3).await;
            leaves.reset();
            world.reaches("scoregate_client_disconnects_total", 1).await;
            world.backend.open();
        });
        assert!(responses.iter().all(|response| response.status == 200));
    }

    async fn full_queue(&self) {
        let Self { world, paid, .. } = self;
        let begins = async |number: u32| world.get(&other(number)).key(&paid.key).begin().await;
        world.backend.hold();
        let mut waiting: Vec<Connection> = vec![begins(1).await, begins(2).await, begins(3).await];
        while world
            .counted("scoregate_concurrency_in_use{pool=\"waiting\"}")
            .await
            < 3
        {
            tokio::task::yield_now().await;
            world.running.gateway().sweep();
        }
        let mut queued = begins(4).await;
        world
            .reaches("scoregate_overload_queued_total{pool=\"waiting\"}", 1)
            .await;
        assert_eq!(world.get_as(paid, &other(5)).await.code(), "overloaded");
        world.pass(Duration::from_millis(10));
        assert_eq!(queued.read(false).await.unwrap().code(), "overloaded");
        world.backend.open();
        for connection in &mut waiting {
            assert_eq!(connection.read(false).await.unwrap().status, 200);
        }
    }

    async fn slow_backend(&self) {
        let Self { world, paid, .. } = self;
        world.settled().await;
        let before = world.backend.received().len();
        world.backend.hold();
        let targets: Vec<String> = (11..14).map(other).collect();
        let all = join_all(targets.iter().map(|target| world.get_as(paid, target)));
        let (responses, ()) = tokio::join!(all, async {
            wait_for_queue_length(world, 1).await;
            world.backend.has_received(before + 2).await;
            world.pass(Duration::from_secs(5));
        });
        assert!(
            responses.iter().all(|response| response.status >= 503),
            "{responses:?}"
        );
        world
            .reaches(
                "scoregate_upstream_requests_total{result=\"queue_full\"}",
                1,
            )
            .await;
        world.pass(Duration::from_secs(15));
        world
            .reaches("scoregate_upstream_requests_total{result=\"timeout\"}", 2)
            .await;
        world.backend.open();
        world.settled().await;
        world.pass(BREAKER_OPEN);
    }

    async fn pass_days(&self) {
        let Self { world, paid, .. } = self;
        let calls = world
            .counted("scoregate_upstream_duration_seconds_count")
            .await;
        assert_eq!(world.get_as(paid, "/api/v1/alerts").await.status, 200);
        world.pass(Duration::from_hours(2));
        assert_eq!(world.get_as(paid, "/api/v1/alerts").await.status, 200);
        world.fetched(calls + 2).await;
        world.settled().await;
        world.pass(Duration::from_hours(48));
        assert_eq!(world.get_as(paid, "/api/v1/alerts").await.status, 200);
        world.pass(Duration::from_hours(48));
        world.backend.next(json("nonsense"));
        assert_eq!(world.get_as(paid, "/api/v1/alerts").await.status, 200);
        world.settled().await;
        world.backend.next(json("nonsense"));
        assert_eq!(
            world.get_as(paid, &other(20)).await.code(),
            "upstream_invalid"
        );
    }

    async fn failing_backend(&self) {
        let Self { world, paid, .. } = self;
        // A request on a connection closed without a response is retried once.
        (0..2).for_each(|_| world.backend.next(Act::RawThenClose(Vec::new())));
        assert_eq!(world.get_as(paid, &other(21)).await.status, 503);
        for number in 22..30 {
            world
                .backend
                .next(respond("500 Internal Server Error", &[], ""));
            assert_eq!(world.get_as(paid, &other(number)).await.status, 503);
        }
        world.running.gateway().sweep();
        assert_eq!(world.counted("scoregate_upstream_breaker_state").await, 2);
        world.backend.set_script(good);
        world.pass(BREAKER_OPEN);
    }

    async fn unreachable_ledger(&self) {
        let world = &self.world;
        let customer = world.customer_with("pro", own(1_000, 300)).await;
        assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
        world.ledger_fails();
        let mut last = 200;
        for _ in 0..20 {
            last = world.get_as(&customer, MODELS).await.status;
        }
        assert_eq!(last, 503);
        world.ledger_returns().await;
        assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    }

    async fn backup(&self) {
        let directory = self.world.directory.path();
        let file = directory.join("backup.db");
        let arguments = [
            file.to_str().unwrap(),
            "--data-dir",
            directory.to_str().unwrap(),
        ];
        run(&[&["store", "backup"], &arguments[..]].concat()).with(0);
        while self
            .world
            .metric("scoregate_last_backup_timestamp_seconds")
            .await
            == 0.0
        {
            self.world.pass(Duration::from_secs(15));
        }
    }

    async fn settings(&mut self) {
        // The reload is refused, because there are customers of other tiers. It is repeated, so that an alert without a
        // delay fires.
        for _ in 0..5 {
            let refused = self
                .world
                .reload("[tiers.pro]\nminute = 60\nday = 20\npaid = true\n")
                .await;
            assert!(refused.is_err());
        }
        assert_eq!(self.world.counted("scoregate_config_rejected").await, 1);
        assert!(self.world.reload(CONCURRENCY).await.is_ok());
    }
}
