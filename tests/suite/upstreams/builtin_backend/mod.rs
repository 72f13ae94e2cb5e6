//! The built-in backend as a standalone server: its HTTP responses. `gateway` is a gateway in front of it,
//! `connections` tests its port and its shutdown.

mod connections;
mod gateway;

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use scoregate::backend::{self, BackendServer};
use scoregate_base::{
    clock::{Clock, ManualClock, Wall},
    routes::{
        API_VERSION, DocumentKey, ENDPOINTS, Endpoint, ModelId, Period, Query, Route, SortBy,
    },
};
use scoregate_scoring::{Archive, RunLine, RunSource, Scoring, SuiteTable};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{Connection, Response},
    world::NOON,
};

const LICENSE: &str = "Cite \"us\".";
const MODELS: &str = "/api/v1/models?period=24h&sortBy=combined";
const HOUR: Duration = Duration::from_hours(1);

/// The backend on port 0.
struct StandaloneBackend {
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

fn noon() -> Wall {
    Wall::parse_rfc3339(NOON).unwrap()
}

/// The scores at noon, computed once because scoring is slow, for tests that do not go beyond it.
fn known_at_noon() -> Arc<Scoring> {
    static KNOWN: OnceLock<Arc<Scoring>> = OnceLock::new();
    Arc::clone(KNOWN.get_or_init(|| Arc::new(Scoring::demo(7, noon()))))
}

impl StandaloneBackend {
    async fn new(scoring: Arc<Scoring>, clock: &Clock) -> Self {
        Self::with_slots(scoring, clock, 1_024).await
    }

    async fn with_slots(scoring: Arc<Scoring>, clock: &Clock, slots: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, scoring, clock, slots)
    }

    fn on(listener: TcpListener, scoring: Arc<Scoring>, clock: &Clock, slots: usize) -> Self {
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let backend = Arc::new(BackendServer::new(scoring, LICENSE.into(), clock.clone()));
        let serving = tokio::spawn(backend::serve(listener, backend, slots, stop.clone()));
        Self {
            address,
            stop,
            serving,
        }
    }

    /// Starts one whose clock stays at noon.
    async fn at_noon() -> (Self, ManualClock) {
        let (clock, manual_clock) = Clock::manual(noon());
        (Self::new(known_at_noon(), &clock).await, manual_clock)
    }

    async fn get(&self, target: &str) -> Response {
        self.request("GET", target, &[]).await
    }

    async fn request(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Response {
        run_caller(
            &mut Connection::open(self.address).await,
            method,
            target,
            headers,
        )
        .await
    }

    /// Sends requests until the snapshot of this time is served. Until then, responses are from the previous snapshot
    /// and not cacheable.
    async fn wait_for_snapshot(&self, instant: &str) -> Response {
        for _ in 0..2_000_000 {
            let response = self.get(MODELS).await;
            if response.json()["generated_at"] == instant {
                return response;
            }
            assert_eq!(response.header("cache-control"), "no-cache");
            tokio::task::yield_now().await;
        }
        panic!("the snapshot of {instant} is not served");
    }
}

async fn run_caller(
    connection: &mut Connection,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
) -> Response {
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    connection.write(format!("{head}\r\n").as_bytes()).await;
    connection.read(method == "HEAD").await.expect("a response")
}

/// The target of each endpoint of a backend, without parameters.
fn targets() -> impl Iterator<Item = (&'static Endpoint, String)> {
    let stored = ENDPOINTS.iter().filter(|endpoint| endpoint.stored);
    stored.map(|endpoint| {
        (
            endpoint,
            endpoint.documented_path().replace("{id}", "atlas-4-large"),
        )
    })
}

fn document(route: Route) -> DocumentKey {
    DocumentKey::new(
        route,
        ModelId::new("atlas-4-large"),
        Query::default(),
        Period::Latest,
    )
}

#[tokio::test]
async fn builtin_parameters_are_those_of_the_api_and_select_the_response() {
    let (alone, _) = StandaloneBackend::at_noon().await;
    for period in Period::ALL {
        let word = period.word();
        let response = alone
            .get(&format!(
                "/api/v1/models?sortBy=speed&period={word}&other=1"
            ))
            .await;
        let document = DocumentKey {
            sort_by: Some(SortBy::Speed),
            ..DocumentKey::over(Route::Models, period)
        };
        let data = known_at_noon().answer(&document).unwrap().data;
        assert!(
            response.body.ends_with(&[&data[..], b"}"].concat()),
            "{word}"
        );
        assert_eq!(
            (&response.json()["period"], &response.json()["sort_by"]),
            (&word.into(), &"speed".into())
        );
    }
    let all = alone.get("/api/v1/incidents?period=1m").await.json()["count"]
        .as_u64()
        .unwrap();
    assert!(all > 1, "{all}");
    assert_eq!(
        alone
            .get("/api/v1/incidents?period=1m&limit=1")
            .await
            .json()["count"],
        1
    );
}

#[tokio::test]
async fn builtin_a_current_copy_is_a_304_by_tag_and_by_date_only_if_no_tag_is_sent() {
    let (alone, _) = StandaloneBackend::at_noon().await;
    let whole = alone.get(MODELS).await;
    let tag = whole.header("etag");
    let date = noon().http_date();
    let before = noon().minus(Duration::from_secs(1)).http_date();
    let none_match = "If-None-Match";
    let since = "If-Modified-Since";
    for (headers, status) in [
        (&[(none_match, tag)][..], 304),
        (&[(none_match, "\"other\"")], 200),
        (&[(since, &date)], 304),
        (&[(since, &before)], 200),
        (&[(since, "yesterday")], 200),
        (&[(none_match, "\"other\""), (since, &date)], 200),
        (&[(none_match, tag), (since, &before)], 304),
    ] {
        let response = alone.request("GET", MODELS, headers).await;
        assert_eq!(response.status, status, "{headers:?}");
        for name in ["etag", "last-modified", "cache-control"] {
            assert_eq!(
                response.header(name),
                whole.header(name),
                "{headers:?}: {name}"
            );
        }
        assert_eq!(response.body.is_empty(), status == 304, "{headers:?}");
    }
}

#[tokio::test]
async fn builtin_head_has_the_headers_of_get_and_no_body() {
    let (alone, _) = StandaloneBackend::at_noon().await;
    let mut connection = Connection::open(alone.address).await;
    for target in [
        MODELS,
        "/api/v1/models/nobody",
        "/api/v1/models?period=1h",
        "/nothing",
        "/healthz",
    ] {
        let head = run_caller(&mut connection, "HEAD", target, &[]).await;
        let get = run_caller(&mut connection, "GET", target, &[]).await;
        let headers = |response: &Response| -> Vec<(String, String)> {
            response
                .headers
                .iter()
                .filter(|(name, _)| name != "date")
                .cloned()
                .collect()
        };
        assert_eq!(
            (head.status, headers(&head)),
            (get.status, headers(&get)),
            "{target}"
        );
        assert!(
            !get.body.is_empty() && head.number("content-length") == get.body.len() as u64,
            "{target}"
        );
    }
}

#[tokio::test]
async fn builtin_refused_requests_have_the_error_codes_of_the_api() {
    let (alone, _) = StandaloneBackend::at_noon().await;
    for (method, target, status, code) in [
        ("GET", "/api/v1/models?period=7D", 400, "invalid_period"),
        ("GET", "/api/v1/models?sortBy=%ff", 400, "invalid_sort_by"),
        ("GET", "/api/v1/incidents?limit=0", 400, "invalid_limit"),
        ("GET", "/api/v1/models/..%2fme", 400, "invalid_model_id"),
        ("GET", "/api/v1/models/nobody", 404, "model_not_found"),
        ("HEAD", "/api/v1/drift/nobody", 404, "model_not_found"),
        ("GET", "/api/v1/me", 404, "not_found"),
        ("GET", "/", 404, "not_found"),
        ("POST", MODELS, 405, "method_not_allowed"),
        ("PROPFIND", "/healthz", 405, "method_not_allowed"),
    ] {
        let response = alone.request(method, target, &[]).await;
        assert_eq!(
            (response.status, response.header("cache-control")),
            (status, "no-store"),
            "{target}"
        );
        assert_eq!(
            response.header("content-type"),
            "application/json",
            "{target}"
        );
        assert_eq!(
            response.header("allow"),
            if status == 405 {
                "GET, HEAD, OPTIONS"
            } else {
                ""
            },
            "{target}"
        );
        assert!(response.header("etag").is_empty(), "{target}");
        if method != "HEAD" {
            let body = response.json();
            assert_eq!(
                (&body["success"], &body["version"]),
                (&false.into(), &API_VERSION.into())
            );
            assert_eq!(
                (&body["status"], &body["code"]),
                (&status.into(), &code.into()),
                "{target}"
            );
            assert!(
                body["message"]
                    .as_str()
                    .is_some_and(|text| text.ends_with('.')),
                "{target}"
            );
            assert_eq!(body["param"].is_string(), status == 400, "{target}");
        }
    }
    let options = alone.request("OPTIONS", MODELS, &[]).await;
    assert_eq!(
        (options.status, options.header("allow")),
        (204, "GET, HEAD, OPTIONS")
    );
    let health = alone.get("/healthz").await;
    assert_eq!((health.status, &health.body[..]), (200, &b"alive\n"[..]));
}

#[tokio::test]
async fn builtin_max_age_ends_at_the_next_snapshot_which_the_clock_triggers() {
    let (clock, manual_clock) = Clock::manual(noon());
    let alone = StandaloneBackend::new(Arc::new(Scoring::demo(7, noon())), &clock).await;
    let before = alone.get(MODELS).await;
    assert_eq!(before.header("cache-control"), "public, max-age=3600");
    manual_clock.advance(Duration::from_millis(600_500));
    assert_eq!(
        alone.get(MODELS).await.header("cache-control"),
        "public, max-age=3000"
    );
    manual_clock.advance(Duration::from_mins(50));
    let after = alone.wait_for_snapshot("2026-11-21T13:00:00Z").await;
    assert_eq!(after.header("cache-control"), "public, max-age=3600");
    assert!(after.header("etag") != before.header("etag") && after.status == 200);
    let fresh = Scoring::demo(7, noon().plus(HOUR));
    for (endpoint, target) in targets() {
        let data = fresh.answer(&document(endpoint.route)).unwrap().data;
        assert!(
            alone
                .get(&target)
                .await
                .body
                .ends_with(&[&data[..], b"}"].concat()),
            "{target}"
        );
    }
}

#[tokio::test]
async fn builtin_a_clock_step_or_suspend_is_followed_within_seconds() {
    let (clock, manual_clock) = Clock::manual(noon());
    let alone = StandaloneBackend::new(Arc::new(Scoring::demo(7, noon())), &clock).await;
    manual_clock.step_to(noon().minus(HOUR * 48));
    let kept = alone.get(MODELS).await;
    assert_eq!(
        (kept.json()["generated_at"].as_str(), kept.status),
        (Some(NOON), 200)
    );
    assert_eq!(kept.header("cache-control"), "public, max-age=3600");
    // The machine was suspended: wall time has advanced, monotonic time has not.
    manual_clock.suspend(HOUR * (48 + 9));
    assert_eq!(alone.get(MODELS).await.header("cache-control"), "no-cache");
    manual_clock.advance(Duration::from_secs(10));
    assert_eq!(
        alone.wait_for_snapshot("2026-11-21T21:00:00Z").await.status,
        200
    );
}

#[test]
fn builtin_no_request_waits_for_a_snapshot_in_progress() {
    let mut one_blocking_thread = tokio::runtime::Builder::new_current_thread();
    let runtime = one_blocking_thread
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    runtime.block_on(async {
        let (clock, manual_clock) = Clock::manual(noon());
        let alone = StandaloneBackend::new(Arc::new(Scoring::demo(7, noon())), &clock).await;
        let before = alone.get(MODELS).await;
        // The only thread that creates snapshots is busy.
        let (release, held) = std::sync::mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || held.recv());
        manual_clock.advance(HOUR);
        for _ in 0..50 {
            let meanwhile = alone.get(MODELS).await;
            assert_eq!(
                (meanwhile.status, meanwhile.header("cache-control")),
                (200, "no-cache")
            );
            assert_eq!(
                (&meanwhile.body, meanwhile.header("etag")),
                (&before.body, before.header("etag"))
            );
        }
        release.send(()).unwrap();
        busy.await.unwrap().unwrap();
        alone.wait_for_snapshot("2026-11-21T13:00:00Z").await;
    });
}

#[tokio::test]
async fn builtin_runs_imported_while_it_runs_count_within_a_minute() {
    let directory = TempDir::new().unwrap();
    let archive = || Archive::open(&directory.path().join("runs.db")).unwrap();
    let (clock, manual_clock) = Clock::manual(noon());
    let scoring = Scoring::open(RunSource::Archive(archive()), noon()).unwrap();
    let alone = StandaloneBackend::new(Arc::new(scoring), &clock).await;
    assert_eq!(alone.get(MODELS).await.json()["count"], 0);
    let run = r#"{"id":"r-1","model":{"id":"atlas","name":"Atlas","provider":"meridian"},"suite":"coding",
        "time":"2026-11-21T11:02:03Z","trials":[{"scores":{"correctness":0.9,"spec":0.8,"codeQuality":0.7,
        "efficiency":0.6,"stability":0.5,"refusal":1,"recovery":0.4},"latencyMs":4200,"cost":0.031}]}"#;
    let run = RunLine::parse(run)
        .unwrap()
        .check(noon(), &SuiteTable::default())
        .unwrap();
    archive()
        .import(&[run], noon().plus(Duration::from_secs(30)))
        .unwrap();
    assert_eq!(alone.get("/api/v1/models/atlas").await.status, 404);
    manual_clock.advance(Duration::from_mins(1));
    let mut after = alone.get(MODELS).await;
    for _ in 0..2_000_000 {
        if after.json()["count"] == 1 {
            break;
        }
        tokio::task::yield_now().await;
        after = alone.get(MODELS).await;
    }
    assert_eq!(after.json()["data"][0]["id"], "atlas");
    // The snapshot's date is the time of the import, so that an earlier copy does not count as current. The next
    // snapshot is due as before.
    assert_eq!(after.json()["generated_at"], "2026-11-21T12:00:30Z");
    assert_eq!(
        after.header("last-modified"),
        noon().plus(Duration::from_secs(30)).http_date()
    );
    assert_eq!(after.header("cache-control"), "public, max-age=3540");
    assert_eq!(alone.get("/api/v1/models/atlas").await.status, 200);
}
