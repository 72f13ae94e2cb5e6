//! A whole gateway on port 0 with a manual clock, in its own directory, in front of a scripted backend.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use scoregate::accounts::NewApplication;
use scoregate::app::{self, DataDirInUse, RunningServer};
use scoregate::clock::{Clock, ManualClock, Wall};
use scoregate::config::{Config, UpstreamConfig, read_text, resolve};
use scoregate::keys::ApplicationId;
use scoregate::store::OwnLimits;
use scoregate::telemetry::metrics::METRICS;
use tempfile::TempDir;

use crate::backend::{Act, Backend, Received, json};
use crate::client::{Connection, OptionalHeaders, RequestBuilder, Response, Rules};

/// Noon of the day of most tests.
pub const NOON: &str = "2026-11-21T12:00:00Z";

/// The setting for the built-in backend.
const BUILT_IN: &str = "upstream = \"built-in\"";

/// The environment of a test: a gateway, its clock and its backend.
pub struct World {
    /// Advances the clock.
    pub manual_clock: ManualClock,
    pub clock: Clock,
    pub backend: Backend,
    pub running: RunningServer,
    /// The data directory.
    pub directory: Arc<TempDir>,
    rules: Arc<Rules>,
    settings: String,
}

/// An application and its key.
#[derive(Clone, Debug)]
pub struct Customer {
    pub id: ApplicationId,
    pub key: String,
}

/// Number of models besides Atlas in the list of a working backend: `m0`, `m1` and so on.
pub const LISTED: u32 = 40;

fn listed() -> String {
    let updated = r#""currentScore":80.25,"lastUpdated":"2026-11-21T11:59:00Z""#;
    let one = |id: &str, name: &str| format!(r#"{{"id":"{id}","name":"{name}",{updated}}}"#);
    let numbered = (0..LISTED).map(|number| one(&format!("m{number}"), &format!("Model {number}")));
    std::iter::once(one("atlas", "Atlas")).chain(numbered).collect::<Vec<_>>().join(",")
}

fn dated(id: &str) -> String {
    format!(r#"{{"id":"{id}","name":"Atlas","currentScore":80.25,"lastUpdated":"2026-11-21T11:59:00Z"}}"#)
}

/// The response of a working backend: small, well-formed, the same for the same request.
pub fn good(received: &Received) -> Act {
    let target = received.target().trim_start_matches("/api/v1");
    let item = match target.strip_prefix("/models/") {
        Some("atlas") => r#"{"id":"atlas","name":"Atlas","latestScore":81.5,"currentScore":80.25}"#.into(),
        // A detail has the id that was requested.
        Some(id) => dated(id.split('/').next().unwrap()),
        None => dated("atlas"),
    };
    if target.starts_with("/models?") {
        return json(&format!(
            r#"{{"success":true,"generated_at":"2026-11-21T12:00:00Z","data":[{}]}}"#,
            listed()
        ));
    }
    if target.contains("/nobody") {
        return crate::backend::respond("404 Not Found", &[], "");
    }
    json(&format!(r#"{{"success":true,"generated_at":"2026-11-21T12:00:00Z","data":[{item}]}}"#))
}

/// Starts the program. Between fork and exec, a process of another test holds every open file of this one, including
/// the lock of a program that has just stopped.
async fn begin(config: Config, clock: &Clock) -> RunningServer {
    for _ in 0..100_000 {
        match app::start(config.clone(), clock.clone()).await {
            Err(error) if error.is::<DataDirInUse>() => tokio::task::yield_now().await,
            started => return started.unwrap(),
        }
    }
    panic!("the data directory stays in use");
}

impl World {
    /// A gateway with a working backend.
    pub async fn new() -> Self {
        Self::with("", good).await
    }

    /// A gateway with further settings, whose backend runs `script`.
    pub async fn with(settings: &str, script: impl Fn(&Received) -> Act + Send + Sync + 'static) -> Self {
        let backend = Backend::start(script).await;
        let (clock, manual_clock) = Clock::manual(Wall::parse_rfc3339(NOON).unwrap());
        Self::start(settings, backend, clock, manual_clock, Arc::new(TempDir::new().unwrap())).await
    }

    /// A gateway with the built-in backend and its simulated runs.
    pub async fn built_in() -> Self {
        Self::with(&format!("{BUILT_IN}\n"), good).await
    }

    async fn start(
        settings: &str,
        backend: Backend,
        clock: Clock,
        manual_clock: ManualClock,
        directory: Arc<TempDir>,
    ) -> Self {
        // A test with its own upstream table writes `{backend}` for the base URL, or
        // `{address}` for host and port.
        let settings = &settings.replace("{backend}", &backend.url());
        let settings = &settings.replace("{address}", &backend.address.to_string());
        let upstream = if settings.contains("upstream =") || settings.contains("[upstream]") {
            String::new()
        } else {
            format!("[upstream]\nurl = \"{}\"\n", backend.url())
        };
        let ports = "listen = \"127.0.0.1:0\"\nadmin.listen = \"127.0.0.1:0\"\n";
        let state = directory.path().display();
        // Most tests count upstream requests; probes without a request have tests of their own.
        let probing = if settings.contains("freshness.probe") { "" } else { "freshness.probe = false\n" };
        let text = format!("{ports}data_dir = \"{state}\"\n{probing}{settings}\n{upstream}");
        let mut config = resolve(&read_text(&text).unwrap()).unwrap_or_else(|problems| panic!("{problems}"));
        if text.contains(BUILT_IN) && !text.contains("built_in.archive") {
            // As in the demo: data that is always available and always the same.
            config.upstream = UpstreamConfig::Simulated { seed: 42 };
        }
        let running = begin(config, &clock).await;
        let rules = Rules::of(
            running.gateway().pages.find("/openapi.json", clock.now().wall).unwrap().body(),
            OptionalHeaders::of(settings),
        );
        Self { manual_clock, clock, backend, running, directory, rules, settings: settings.to_owned() }
    }

    /// A gateway with this backend and this data directory.
    pub async fn with_backend(settings: &str, backend: Backend, directory: Arc<TempDir>) -> Self {
        let (clock, manual_clock) = Clock::manual(Wall::parse_rfc3339(NOON).unwrap());
        Self::start(settings, backend, clock, manual_clock, directory).await
    }

    /// Restarts the program gracefully on the same data directory.
    pub async fn restarted(self) -> Self {
        let Self { manual_clock, clock, backend, running, directory, settings, .. } = self;
        assert!(running.stop().await.all_finished);
        Self::start(&settings, backend, clock, manual_clock, directory).await
    }

    /// Restarts it with further settings.
    pub async fn restarted_with(mut self, settings: &str) -> Self {
        self.settings = format!("{settings}\n{}", self.settings);
        self.restarted().await
    }

    /// Restarts it although not everything could be saved at shutdown.
    pub async fn restarted_with_losses(self) -> Self {
        let Self { manual_clock, clock, backend, running, directory, settings, .. } = self;
        running.stop().await;
        Self::start(&settings, backend, clock, manual_clock, directory).await
    }

    /// The public address.
    pub fn address(&self) -> SocketAddr {
        self.running.public
    }

    /// Creates an application of a tier.
    pub async fn customer(&self, tier: &str) -> Customer {
        self.customer_with(tier, OwnLimits::default()).await
    }

    /// Creates an application with its own limits.
    pub async fn customer_with(&self, tier: &str, own: OwnLimits) -> Customer {
        let new = NewApplication {
            name: format!("a {tier} application"),
            tier: tier.into(),
            own,
            url: None,
            contact: None,
            note: None,
            expires_at: None,
        };
        let issued = self.running.registrar.create("test", new).await.unwrap();
        Customer { id: issued.application.id, key: issued.key.expose().to_owned() }
    }

    /// A GET request.
    pub fn get(&self, target: &str) -> RequestBuilder {
        self.request("GET", target)
    }

    /// A request of any method.
    pub fn request(&self, method: &str, target: &str) -> RequestBuilder {
        RequestBuilder::new(self.address(), Arc::clone(&self.rules), method, target)
    }

    /// Advances the clock.
    pub fn pass(&self, time: Duration) {
        self.manual_clock.advance(time);
    }

    /// The value of a series of metrics, such as `scoregate_refusals_total{code="not_found"}`; zero if it does not
    /// exist yet.
    pub async fn metric(&self, series: &str) -> f64 {
        let name = series.split('{').next().unwrap();
        let is_declared = METRICS.iter().any(|row| {
            let part = name.strip_prefix(row.name);
            part.is_some_and(|part| ["", "_count", "_sum", "_bucket"].contains(&part))
        });
        assert!(is_declared, "there is no metric {name}: it would always be zero");
        let text = self.scrape().await;
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    /// The metrics as Prometheus scrapes them.
    pub async fn scrape(&self) -> String {
        String::from_utf8(self.side("GET", "/metrics", "", &[]).await.body).unwrap()
    }

    /// A request to the side port.
    pub async fn side(&self, method: &str, target: &str, body: &str, headers: &[(&str, &str)]) -> Response {
        let mut connection = Connection::open(self.running.side).await;
        let mut head =
            format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        connection.write(format!("{head}\r\n{body}").as_bytes()).await;
        connection.read(method == "HEAD").await.unwrap()
    }
}

impl World {
    /// The value of a series as an integer.
    pub async fn counted(&self, series: &str) -> u32 {
        let value = self.metric(series).await.to_string();
        value.parse().unwrap_or_else(|_| panic!("{series} is {value}"))
    }

    /// Checks a response that was read from a raw connection against the rules of all responses.
    pub fn check(&self, method: &str, target: &str, response: &Response) {
        self.rules.check(method, target, response);
    }
}
