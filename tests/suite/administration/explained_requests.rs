//! Explanations agree with the responses: random requests in random states are explained and then answered in process.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use http::{Request, Response, request::Parts};
use http_body_util::BodyExt as _;
use scoregate::gateway::{
    ConnectionTrust, ExplainedKey, Explanation, Peer, PossibleOutcome, RuleAmounts,
};
use scoregate_base::{
    keys::{Digest, shown_prefix},
    limits::OwnLimits,
    routes::Selection,
};

use crate::{
    backend::{json, respond},
    balances::{Remaining, own},
    world::{Customer, World, good},
};

const SETTINGS: &str = "guard.per_minute = 20\nfreshness.stale_while_revalidate = \"1h\"\n\
                        freshness.models.ttl = \"30m\"\nfreshness.index.ttl = \"10m\"\n[tiers.narrow]\nminute = 4\nday = 30\npaid = false\n\
                        periods = [\"24h\"]\n[tiers.free]\nminute = 1\nday = 10\npaid = false\n\
                        [tiers.pro]\nminute = 60\nday = 10000\npaid = true\n";
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const TARGETS: [&str; 28] = [
    "/api/v1/models",
    "/api/v1/models?period=24h",
    "/api/v1/models?period=7d&sortBy=price",
    "/api/v1/models?period=latest",
    "/api/v1/models/atlas",
    "/api/v1/models/m1",
    "/api/v1/models/m2/history?period=7d",
    "/api/v1/models/m3/history",
    "/api/v1/index",
    "/api/v1/providers",
    "/api/v1/alerts",
    "/api/v1/incidents?limit=5",
    "/api/v1/incidents?period=1m",
    "/api/v1/recommendations",
    "/api/v1/models/nobody",
    "/api/v1/models/made-up",
    "/api/v1/models/sg_live_0123456789012345678901234567890123456789",
    "/api/v1/models/%00",
    "/api/v1/models?period=3w",
    "/api/v1/models?sortBy=size",
    "/api/v1/incidents?limit=0",
    "/api/v1/nothing",
    "/api/v1/me",
    "/api/v1/me?x=1",
    "/docs",
    "/docs/",
    "/healthz",
    "/nothing",
];

/// Numbers that look random and are the same in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn of<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.below(all.len())]
    }
}

struct Scene {
    world: World,
    draw: Draw,
    customers: Vec<Customer>,
    /// Entity tags of responses, for conditional requests.
    etags: Vec<String>,
    /// Number of further requests from the same customer.
    burst: usize,
    greedy: usize,
    is_away: bool,
    has_fetched: bool,
    /// Number of comparisons, by the compared property.
    seen: BTreeMap<String, u32>,
}

impl Scene {
    async fn new() -> Self {
        let world = World::with(SETTINGS, good).await;
        let mut customers = Vec::new();
        let none = OwnLimits::NONE;
        for (tier, own) in [
            ("free", none),
            ("free", own(40, 60)),
            ("narrow", none),
            ("pro", none),
            ("pro", own(200, 90)),
            ("pro", own(5_000, 1_000_000)),
            ("free", own(5_000, 1_000_000)),
        ] {
            customers.push(world.customer_with(tier, own).await);
        }
        let revoked = world.customer("pro").await;
        world
            .running
            .registrar
            .revoke("test", revoked.id, None)
            .await
            .unwrap();
        customers.push(revoked);
        Self {
            world,
            draw: Draw(7),
            customers,
            etags: Vec::new(),
            burst: 0,
            greedy: 0,
            is_away: false,
            has_fetched: true,
            seen: BTreeMap::new(),
        }
    }

    /// The customer of the next request. It stays the same for a while, so that its limits are reached.
    fn customer(&mut self) -> Customer {
        if self.burst == 0 && self.draw.one_in(40) {
            (self.burst, self.greedy) = (30, self.draw.below(self.customers.len()));
        }
        self.burst = self.burst.saturating_sub(1);
        let place = if self.burst > 0 {
            self.greedy
        } else {
            self.draw.below(self.customers.len())
        };
        self.customers[place].clone()
    }

    fn request(&mut self) -> Request<()> {
        let methods = [
            "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "HEAD", "OPTIONS", "POST",
        ];
        let popular = if self.draw.one_in(2) {
            3
        } else {
            TARGETS.len()
        };
        let target = *self.draw.of(&TARGETS[..popular]);
        let mut request = Request::builder()
            .method(*self.draw.of(&methods))
            .uri(target)
            .header("host", "localhost");
        if self.draw.one_in(3) {
            request = request.header(
                "accept-encoding",
                *self.draw.of(&["gzip", "br", "identity", "zstd, br"]),
            );
        }
        if self.draw.one_in(4) && !self.etags.is_empty() {
            request = request.header("if-none-match", self.draw.of(&self.etags));
        } else if self.draw.one_in(8) {
            request = request.header(
                "if-none-match",
                *self.draw.of(&["*", "\"other\"", "nonsense"]),
            );
        }
        if self.draw.one_in(6) {
            request = request.header("accept", "application/problem+json");
        }
        if self.draw.one_in(40) {
            request = request.header("content-length", "5");
        }
        request.body(()).unwrap()
    }

    /// Changes something that affects responses.
    async fn change(&mut self) {
        let world = &self.world;
        match self.draw.below(24) {
            0..6 => world.pass(Duration::from_millis(self.draw.below(2_000) as u64)),
            6 => world.pass(Duration::from_secs(self.draw.below(60) as u64)),
            10 if self.draw.one_in(4) => {
                world.pass(Duration::from_secs(self.draw.below(4_000) as u64));
            }
            11 if self.draw.one_in(12) => world.pass(Duration::from_hours(30)),
            12 => world
                .backend
                .next(respond("500 Internal Server Error", &[], "")),
            13 => world.backend.next(json("nonsense")),
            14 if self.draw.one_in(2) => {
                let document = *self.draw.of(&[
                    "all",
                    "/api/v1/models",
                    "/api/v1/index",
                    "/api/v1/models/:id",
                ]);
                let gateway = world.running.gateway();
                let hard = self.draw.one_in(2);
                let selection = Selection::parse(document, &gateway.endpoints).unwrap();
                gateway.engine.purge(&selection, hard).await;
            }
            16 if self.draw.one_in(4) => {
                let customer = self.customers[0].id;
                let tier = *self.draw.of(&["free", "pro", "narrow"]);
                world
                    .running
                    .registrar
                    .set_tier("test", customer, tier)
                    .await
                    .unwrap();
            }
            17 if self.is_away || self.draw.one_in(8) => {
                let back = "DROP TRIGGER away";
                let away = "CREATE TRIGGER away BEFORE INSERT ON ledger_days BEGIN SELECT RAISE(ABORT, 'away'); END";
                let file = rusqlite::Connection::open(world.directory.path().join("scoregate.db"))
                    .unwrap();
                file.execute_batch(if self.is_away { back } else { away })
                    .unwrap();
                self.is_away = !self.is_away;
            }
            _ => {}
        }
    }

    /// Explains a request, answers it, and compares.
    async fn compare(&mut self) {
        let customer = self.customer();
        let (head, ()) = self.request().into_parts();
        // Nothing may run between the explanation and the request.
        if std::mem::take(&mut self.has_fetched) {
            self.world.settled().await;
        }
        self.is_quiet().await;
        let gateway = self.world.running.gateway();
        let peer = Peer {
            address: CLIENT,
            is_encrypted: false,
            is_tool_call: false,
        };
        let key = ExplainedKey {
            digest: Digest::of(&customer.key),
            prefix: shown_prefix(&customer.key).to_owned(),
        };
        let before = self.left(&customer);
        let explanation = gateway.explain(&head, &key, peer);
        assert_eq!(before, self.left(&customer), "an explanation costs nothing");
        let mut sent = head.clone();
        sent.headers
            .insert("x-api-key", customer.key.parse().unwrap());
        let response = gateway
            .handle(&sent, false, peer, &ConnectionTrust::default())
            .await;
        let after = self.left(&customer);
        let (minute, day, guard) = before.spent(after);
        let outcome = self
            .check(
                &head,
                &explanation,
                response,
                RuleAmounts { minute, day, guard },
            )
            .await;
        if let Some(left) = outcome.left {
            let guard = left.guard + self.world.guard_of(CLIENT);
            assert_eq!(
                Remaining {
                    minute: left.minute,
                    day: left.day,
                    guard
                },
                after,
                "{explanation:#?}"
            );
        }
    }

    /// The remaining allowance of a customer; for an unknown key, only the guard of its address.
    fn left(&self, customer: &Customer) -> Remaining {
        if self
            .world
            .running
            .gateway()
            .key_directory
            .find(&Digest::of(&customer.key))
            .is_some()
        {
            return self.world.left(customer);
        }
        Remaining {
            minute: 0,
            day: 0,
            guard: self.world.guard_of(CLIENT),
        }
    }

    /// Waits until no units are leased in the background.
    async fn is_quiet(&self) {
        let directory = &self.world.running.gateway().key_directory;
        for customer in &self.customers {
            let found = directory.find(&Digest::of(&customer.key));
            while found
                .as_ref()
                .is_some_and(|found| found.account.is_leasing())
            {
                tokio::task::yield_now().await;
            }
        }
    }

    async fn check(
        &mut self,
        head: &Parts,
        explanation: &Explanation,
        response: Response<http_body_util::Full<bytes::Bytes>>,
        cost: RuleAmounts,
    ) -> PossibleOutcome {
        let (real, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let code = serde_json::from_slice::<serde_json::Value>(&body).ok();
        let code = code.and_then(|body| body["code"].as_str().map(str::to_owned));
        let headers: Vec<(String, String)> = real
            .headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .filter(|(name, _)| name != "x-request-id")
            .collect();
        let source = real
            .headers
            .get("cache-status")
            .map(|value| value.to_str().unwrap().to_owned());
        let is_real = |outcome: &PossibleOutcome| {
            let is_coded = code.is_none() || outcome.code == code;
            let is_alike = outcome.status == real.status.as_u16() && outcome.cost == cost;
            is_alike && is_coded && is_from(outcome, source.as_deref())
        };
        let found = explanation.outcomes.iter().position(is_real);
        let shown = || format!("{head:?}\n{real:?}\n{cost:?}\n{explanation:#?}");
        let place = found.unwrap_or_else(|| panic!("not predicted: {}", shown()));
        let outcome = &explanation.outcomes[place];
        if explanation.outcomes.len() == 1 {
            assert!(!outcome.headers.is_empty(), "{}", shown());
        }
        if !outcome.headers.is_empty() {
            // The `Retry-After` of the backend is not known in advance.
            let is_known = |(name, _): &&(String, String)| {
                name != "retry-after" || !outcome.condition.contains("backend")
            };
            let [predicted, headers] = [&outcome.headers, &headers]
                .map(|all| all.iter().filter(is_known).collect::<Vec<_>>());
            assert_eq!(predicted, headers, "{}", shown());
        }
        let asks = explanation
            .stages
            .iter()
            .any(|stage| stage.stage == "backend");
        let is_stored = outcome
            .outcome
            .as_ref()
            .is_some_and(|word| word == "hit" || word == "stale");
        self.has_fetched |= asks;
        if is_stored && !self.is_away {
            assert_eq!(place, 0, "{}", shown());
        }
        if let Some(tag) = real.headers.get("etag").filter(|_| self.etags.len() < 40) {
            self.etags.push(tag.to_str().unwrap().to_owned());
        }
        let words = [&outcome.outcome, &outcome.code].map(|word| word.as_deref().unwrap_or("none"));
        for name in [
            format!("status {}", outcome.status),
            format!("source {}", words[0]),
            format!("code {}", words[1]),
            format!("outcomes {}", explanation.outcomes.len().min(2)),
        ] {
            *self.seen.entry(name).or_default() += 1;
        }
        outcome.clone()
    }
}

/// Whether a predicted outcome has the source that the response states.
fn is_from(outcome: &PossibleOutcome, source: Option<&str>) -> bool {
    match (outcome.outcome.as_deref(), source) {
        (None, source) => source.is_none(),
        (Some("hit"), Some(source)) => source.contains("; hit; "),
        (Some("stale_on_error"), Some(source)) => source.ends_with("detail=stale"),
        (Some(word), Some(source)) => source.ends_with(&format!("detail={word}")),
        (Some(_), None) => false,
    }
}

#[tokio::test]
async fn an_explanation_agrees_with_the_answer_that_follows_it() {
    let is_full = std::env::var("SCOREGATE_FULL").is_ok_and(|value| value == "1");
    let mut scene = Scene::new().await;
    for _ in 0..if is_full { 10_000 } else { 600 } {
        if scene.burst == 0 {
            scene.change().await;
        }
        scene.compare().await;
    }
    for often in ["hit", "stale", "miss", "refreshed", "none"].map(|word| format!("source {word}"))
    {
        assert!(scene.seen.contains_key(&often), "{often}: {:?}", scene.seen);
    }
    for code in [
        "quota_exceeded",
        "rate_limit_exceeded",
        "too_many_refusals",
        "overloaded",
    ] {
        assert!(
            scene.seen.contains_key(&format!("code {code}")),
            "{code}: {:?}",
            scene.seen
        );
    }
    for status in [200, 304, 400, 401, 403, 404, 405, 429, 502, 503] {
        assert!(
            scene.seen.contains_key(&format!("status {status}")),
            "{status}: {:?}",
            scene.seen
        );
    }
}
