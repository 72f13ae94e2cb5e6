//! The status page: its statements about the service, the data and incidents, and its cost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    backend::{Act, Received, json, respond},
    client::Response,
    program::{Program, run, sql},
    world::{World, good},
};

const ON: &str = "site.status_page = true\nfreshness.probe = true\n";
const TOKEN: &str = "admin.token = \"a-token-of-the-side-port\"\n";
const MINUTE: Duration = Duration::from_mins(1);

impl World {
    pub async fn with_status(
        settings: &str,
        script: impl Fn(&Received) -> Act + Send + Sync + 'static,
    ) -> Self {
        let world = Self::with(&format!("{ON}{settings}"), script).await;
        world.status_with("its data is current").await;
        world
    }

    /// Waits until the gateway has observed the current time.
    async fn observed(&self) {
        let now = self.clock.mono();
        while self
            .running
            .gateway()
            .status
            .as_ref()
            .unwrap()
            .observed_at()
            < now
        {
            tokio::task::yield_now().await;
        }
    }

    /// Advances the clock minute by minute.
    async fn minutes(&self, count: u32) {
        for _ in 0..count {
            self.pass(MINUTE);
            self.observed().await;
            self.settled().await;
        }
    }

    /// The text of the page, without waiting for anything.
    async fn status(&self) -> String {
        let response = self.get("/status").send().await;
        assert_eq!(response.status, 200);
        String::from_utf8(response.body).unwrap()
    }

    /// The text of the page once it contains these words. The clock advances second by second until then.
    async fn status_with(&self, words: &str) -> String {
        for _ in 0..100 {
            self.observed().await;
            let page = self.status().await;
            if page.contains(words) {
                return page;
            }
            self.pass(Duration::from_secs(5));
        }
        panic!("{words}: {}", self.status().await);
    }

    async fn post(&self, target: &str, body: &str) -> Response {
        let token = ("Authorization", "Bearer a-token-of-the-side-port");
        self.side("POST", target, body, &[token]).await
    }
}

/// The response of a backend with data of this hour; for hour 0 an error.
fn data_of(hour: u64) -> Act {
    let item = format!(r#"{{"id":"atlas","name":"Atlas","currentScore":{hour}}}"#);
    match hour {
        0 => respond("500 Internal Server Error", &[], ""),
        _ => json(&format!(
            r#"{{"generated_at":"2026-11-21T{hour}:00:00Z","data":[{item}]}}"#
        )),
    }
}

/// Number of stored minutes.
fn rows(world: &World) -> String {
    sql(
        world.directory.path(),
        "SELECT count(*) FROM status_minutes",
    )
    .trim()
    .to_owned()
}

#[tokio::test]
async fn status_needs_no_key_costs_nothing_and_may_be_stored_by_a_shared_cache() {
    let world = World::with_status("guard.per_minute = 1\n", good).await;
    world.status_with("its data is current").await;
    for (path, kind) in [
        ("/status", "text/html; charset=utf-8"),
        ("/status.atom", "application/atom+xml; charset=utf-8"),
    ] {
        let response = world.get(path).send().await;
        assert_eq!(
            (response.status, response.header("content-type")),
            (200, kind),
            "{path}"
        );
        assert_eq!(
            response.header("cache-control"),
            "public, max-age=30",
            "{path}"
        );
        assert_eq!(response.header("vary"), "Accept-Encoding", "{path}");
        for name in ["x-ratelimit-remaining", "ratelimit", "ratelimit-policy"] {
            assert_eq!(
                response.header(name),
                "",
                "{path} {name}: a shared cache may store it"
            );
        }
        let of_the_guard = world.get("/").send().await.number("x-ratelimit-remaining");
        assert_eq!(of_the_guard, 1, "{path}");
        let policy = response.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; style-src ") && !policy.contains("script"),
            "{path}"
        );
    }
    for path in ["/", "/docs"] {
        let page = String::from_utf8(world.get(path).send().await.body).unwrap();
        assert!(page.contains("href=\"/status\""), "{path}");
    }
}

#[tokio::test]
async fn status_has_no_data_yet_while_the_backend_lists_no_models() {
    let has_models = Arc::new(AtomicU64::new(0));
    let script = Arc::clone(&has_models);
    let world = World::with(ON, move |_| match script.load(Ordering::Relaxed) {
        0 => json(r#"{"generated_at":"2026-11-21T12:00:00Z","data":[]}"#),
        _ => data_of(12),
    })
    .await;
    world.minutes(5).await;
    assert!(
        !world.backend.received().is_empty(),
        "an empty list was received"
    );
    let page = world.status().await;
    assert!(
        page.contains("The API is up, but has no data yet"),
        "{page}"
    );
    assert!(
        page.contains("<dt>State</dt><dd>no data yet</dd>"),
        "{page}"
    );
    has_models.store(1, Ordering::Relaxed);
    world.minutes(5).await;
    world.status_with("its data is current").await;
}

#[tokio::test]
async fn status_counts_gaps_as_downtime_and_a_restart_keeps_the_history() {
    let world = World::with_status("", good).await;
    world.minutes(10).await;
    let page = world.status_with("Availability: 100 %").await;
    assert!(
        page.contains("No downtime in 1 day.") && page.contains("The history begins at"),
        "{page}"
    );
    // The machine sleeps: nothing is recorded between 12:10 and 12:25.
    world.pass(15 * MINUTE);
    world.observed().await;
    world.minutes(2).await;
    world.status_with("Down for 14 min in 1 day.").await;
    let world = world.restarted().await;
    let page = world.status_with("Down for 14 min in 1 day.").await;
    assert!(
        page.contains("begins at <time datetime=\"2026-11-21T12:00:00Z\">"),
        "{page}"
    );
}

#[tokio::test]
async fn status_says_during_a_shutdown_that_the_gateway_is_not_ready_and_counts_its_minutes_as_down()
 {
    let world = World::with_status("server.shutdown_delay = \"10m\"\n", good).await;
    world.minutes(3).await;
    world.status_with("Availability: 100 %").await;
    let status = world.running.gateway().status.clone().unwrap();
    let World {
        manual_clock,
        clock,
        running,
        backend: _backend,
        directory,
        ..
    } = world;
    let stopping = tokio::spawn(running.stop());
    tokio::task::yield_now().await;
    for _ in 0..4 {
        manual_clock.advance(MINUTE);
        while status.observed_at() < clock.mono() {
            tokio::task::yield_now().await;
        }
    }
    let page = String::from_utf8(status.find("/status").unwrap().body().to_vec()).unwrap();
    assert!(page.contains("The API is down at this gateway"), "{page}");
    let minutes = "SELECT sum(is_ready), count(*) FROM status_minutes";
    assert_eq!(
        sql(directory.path(), minutes).trim(),
        "4|8",
        "from 12:00 to 12:03 it was ready"
    );
    manual_clock.advance(10 * MINUTE);
    stopping.await.unwrap();
}

#[tokio::test]
async fn status_says_since_when_the_data_is_stale_and_counts_these_minutes() {
    let hour = Arc::new(AtomicU64::new(12));
    let script = Arc::clone(&hour);
    let world = World::with_status("", move |_| data_of(script.load(Ordering::Relaxed))).await;
    let page = world.status_with("its data is current").await;
    let time =
        |at: &str| format!("<time datetime=\"2026-11-21T{at}:00Z\">2026-11-21 {at} UTC</time>");
    assert!(
        page.contains(&format!("<dt>Last refresh</dt><dd>{}</dd>", time("12:00"))),
        "{page}"
    );
    assert!(
        page.contains(&format!(
            "<dt>Next refresh expected</dt><dd>{}</dd>",
            time("13:00")
        )),
        "{page}"
    );
    hour.store(0, Ordering::Relaxed);
    world.pass(58 * MINUTE);
    world.minutes(2).await;
    assert!(
        world.status().await.contains("its data is current"),
        "the refresh is not overdue by a minute"
    );
    world.minutes(2).await;
    let page = world.status_with("its data is stale").await;
    assert!(
        page.contains(&format!("<dd>stale since {}</dd>", time("13:00"))),
        "{page}"
    );
    world
        .status_with("The data source is not responding; we are serving stored data.")
        .await;
    world.minutes(10).await;
    hour.store(13, Ordering::Relaxed);
    world.minutes(8).await;
    let page = world.status_with("its data is current").await;
    assert!(
        page.contains(&format!("<dt>Last refresh</dt><dd>{}</dd>", time("13:00"))),
        "{page}"
    );
    let minutes = "SELECT count(*) FROM status_minutes WHERE is_ready AND NOT is_fresh";
    let stale: u32 = sql(world.directory.path(), minutes).trim().parse().unwrap();
    assert!((10..=16).contains(&stale), "{stale}");
    world.minutes(3).await;
    world
        .status_with(&format!("Stale for {stale} min while the API was up."))
        .await;
}

#[tokio::test]
async fn status_of_the_shipped_dashboard_backend_is_current_between_its_main_runs() {
    let shipped = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/deploy/backends/dashboard.toml"
    );
    let shipped = std::fs::read_to_string(shipped)
        .unwrap()
        .replace("127.0.0.1:4000", "{address}");
    let head = [
        ("content-type", "application/json"),
        ("last-modified", "Sat, 21 Nov 2026 11:55:00 GMT"),
    ];
    let models = r#"{"success":true,"data":[{"id":"17","name":"Atlas","currentScore":80.1}]}"#;
    let world = World::with_status(&shipped, move |_| respond("200 OK", &head, models)).await;
    world.pass(58 * MINUTE);
    world.minutes(2).await;
    let page = world.status().await;
    assert!(
        page.contains("its data is current"),
        "65 minutes old: {page}"
    );
    world.pass(180 * MINUTE);
    world.status_with("its data is stale").await;
}

#[tokio::test]
async fn status_after_a_start_with_old_copies_says_so_until_the_backend_answers() {
    let hour = Arc::new(AtomicU64::new(12));
    let script = Arc::clone(&hour);
    let world = World::with_status("", move |_| data_of(script.load(Ordering::Relaxed))).await;
    hour.store(0, Ordering::Relaxed);
    world.pass(2 * 60 * MINUTE);
    world.observed().await;
    let world = world.restarted().await;
    let page = world.status_with("its data is stale").await;
    assert!(
        page.contains("stale since <time datetime=\"2026-11-21T13:00:00Z\">"),
        "{page}"
    );
    hour.store(14, Ordering::Relaxed);
    world.minutes(2).await;
    world.status_with("its data is current").await;
}

#[tokio::test]
async fn status_is_kept_in_memory_while_the_store_fails_and_says_so() {
    let world = World::with_status("", good).await;
    world.minutes(5).await;
    world.status_with("Availability: 100 %").await;
    sql(
        world.directory.path(),
        "CREATE TRIGGER no_minutes BEFORE INSERT ON status_minutes BEGIN SELECT RAISE(ABORT, 'the disk fails'); END;",
    );
    let stored = rows(&world);
    world.minutes(20).await;
    let page = world.status_with("The API is up, but degraded").await;
    assert!(
        page.contains("is not responding to this gateway") && page.contains("The history ends at"),
        "{page}"
    );
    assert_eq!(rows(&world), stored);
    assert!(
        world
            .counted("scoregate_store_failures_total{operation=\"status\"}")
            .await
            >= 20
    );
    sql(world.directory.path(), "DROP TRIGGER no_minutes");
    world.minutes(2).await;
    world.status_with("its data is current").await;
    world.minutes(2).await;
    world.status_with("No downtime in 1 day.").await;
}

#[tokio::test]
async fn status_messages_of_the_side_port_are_on_the_page_and_in_the_feed_at_once() {
    let world = World::with_status(
        &format!("{TOKEN}service.base_url = \"https://api.example\"\n"),
        good,
    )
    .await;
    let body = r#"{"title":"Late <scores>","message":"We are looking into it.\nMore at 13:00."}"#;
    assert_eq!(
        world
            .side("POST", "/v1/status/post", body, &[])
            .await
            .status,
        401
    );
    let posted = world.post("/v1/status/post", body).await;
    assert_eq!(
        (posted.status, &posted.json()["published"]),
        (200, &true.into())
    );
    assert_eq!(posted.json()["state"], "investigating");
    let page = world.status().await;
    assert!(
        page.contains("Open incident: Late &lt;scores&gt;"),
        "{page}"
    );
    assert!(
        page.contains("The API is up, and its data is current"),
        "{page}"
    );
    assert!(
        page.contains("We are looking into it.<br>\nMore at 13:00."),
        "{page}"
    );
    let more = world
        .post(
            "/v1/status/post",
            r#"{"incident":1,"message":"Found.","state":"identified"}"#,
        )
        .await;
    assert_eq!(
        (more.status, &more.json()["title"]),
        (200, &"Late <scores>".into())
    );
    let last = world
        .post("/v1/status/resolve", r#"{"incident":1,"message":"Over."}"#)
        .await;
    assert_eq!(
        (last.status, &last.json()["state"]),
        (200, &"resolved".into())
    );
    let page = world.status().await;
    assert!(
        !page.contains("Open incident") && page.contains(">Over.<") && page.contains(">Found.<"),
        "{page}"
    );
    let feed = String::from_utf8(world.get("/status.atom").send().await.body).unwrap();
    assert_eq!(feed.matches("<entry>").count(), 3);
    assert!(
        feed.contains("href=\"https://api.example/status#incident-1\""),
        "{feed}"
    );
    for (body, status) in [
        (r#"{"incident":1,"message":"Again."}"#, 409),
        (r#"{"incident":9,"message":"Again."}"#, 404),
        (r#"{"title":"a","message":"\u202e"}"#, 400),
        (r#"{"title":"a\nb","message":"c"}"#, 400),
        (r#"{"title":"a","message":" "}"#, 400),
        (r#"{"message":"a"}"#, 400),
        (r#"{"title":"a","incident":1,"message":"b"}"#, 400),
        (r#"{"title":"a","message":"b","state":"resolved"}"#, 400),
    ] {
        assert_eq!(
            world.post("/v1/status/post", body).await.status,
            status,
            "{body}"
        );
    }
    assert_eq!(
        String::from_utf8(world.get("/status.atom").send().await.body).unwrap(),
        feed
    );
}

#[tokio::test]
async fn status_messages_are_stored_also_if_the_page_is_off() {
    let world = World::with(TOKEN, good).await;
    let posted = world
        .post("/v1/status/post", r#"{"title":"a","message":"b"}"#)
        .await;
    assert_eq!(
        (posted.status, &posted.json()["published"]),
        (200, &false.into())
    );
}

#[test]
fn status_commands_work_on_a_stopped_and_on_a_running_server() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().to_str().unwrap();
    let status =
        |arguments: &[&str]| run(&[&["status"], arguments, &["--data-dir", path]].concat());
    status(&["list"]).with(1);
    run(&[
        "keys",
        "create",
        "--name",
        "a",
        "--tier",
        "free",
        "--data-dir",
        path,
    ])
    .with(0);
    let posted = status(&[
        "post",
        "Late scores",
        "--message",
        "We are looking into it.\nMore at 13:00.",
    ])
    .with(0);
    assert_eq!(posted.out, "incident 1: investigating\n");

    let on = [
        ("SCOREGATE_UPSTREAM", "built-in"),
        ("SCOREGATE_SITE_STATUS_PAGE", "true"),
    ];
    let program = Program::serve(directory.path(), &on);
    assert!(program.public().port() > 0, "the gateway is running");
    let more = status(&[
        "post",
        "--incident",
        "1",
        "--message",
        "Found.",
        "--state",
        "identified",
    ])
    .with(0);
    assert_eq!(
        (more.out.as_str(), more.err.as_str()),
        ("incident 1: identified\n", "")
    );
    let over = status(&["resolve", "1", "--message", "Over.", "--json"])
        .with(0)
        .json();
    assert_eq!(
        (&over["incident"], &over["state"], &over["published"]),
        (&1.into(), &"resolved".into(), &true.into())
    );
    let listed = status(&["list", "--json"]).with(0).json();
    let progress: Vec<_> = listed["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["state"].clone())
        .collect();
    assert_eq!(progress, ["resolved", "identified", "investigating"]);
    let table = status(&["list"]).with(0).out;
    assert!(
        table.starts_with("INCIDENT") && table.contains("Late scores") && table.contains("Over."),
        "{table}"
    );
    let first_lines = ["Over.", "Found.", "We are looking into it. …"];
    assert!(
        table
            .lines()
            .skip(1)
            .zip(first_lines)
            .all(|(row, text)| row.trim_end().ends_with(text)),
        "{table}"
    );
    program.stop().with(0);
}
