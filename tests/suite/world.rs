//! A whole gateway on port 0 with a hand-driven clock, in a directory of its own, before a backend that a test
//! scripts.

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
use crate::client::{Answer, Connection, OptionalHeaders, RequestBuilder, Rules};

/// Noon of the day on which most tests play.
pub const NOON: &str = "2026-11-21T12:00:00Z";

/// The setting that asks for the built-in backend.
const BUILT_IN: &str = "upstream = \"built-in\"";

/// The world of a test.
pub struct World {
    /// What moves its clock.
    pub hand: ManualClock,
    /// The clock.
    pub clock: Clock,
    /// The backend.
    pub backend: Backend,
    /// The program.
    pub running: RunningServer,
    /// Where its state lies.
    pub directory: Arc<TempDir>,
    rules: Arc<Rules>,
    settings: String,
}

/// An application and its key.
#[derive(Clone, Debug)]
pub struct Customer {
    /// The application.
    pub id: ApplicationId,
    /// Its key.
    pub key: String,
}

/// How many models besides Atlas a backend that works has listed: `m0`, `m1` and so on.
pub const LISTED: u32 = 40;

/// The items of its list.
fn listed() -> String {
    let updated = r#""currentScore":80.25,"lastUpdated":"2026-11-21T11:59:00Z""#;
    let one = |id: &str, name: &str| format!(r#"{{"id":"{id}","name":"{name}",{updated}}}"#);
    let numbered = (0..LISTED).map(|number| one(&format!("m{number}"), &format!("Model {number}")));
    std::iter::once(one("atlas", "Atlas")).chain(numbered).collect::<Vec<_>>().join(",")
}

/// What a backend that works sends: small, well-shaped, the same for the same question.
pub fn good(received: &Received) -> Act {
    let target = received.target().trim_start_matches("/api/v1");
    let item = match target.split(['?', '/']).nth(1).unwrap_or("") {
        "models" if target.ends_with("/atlas") => {
            r#"{"id":"atlas","name":"Atlas","latestScore":81.5,"currentScore":80.25}"#
        }
        _ => r#"{"id":"atlas","name":"Atlas","currentScore":80.25,"lastUpdated":"2026-11-21T11:59:00Z"}"#,
    };
    if target.starts_with("/models?") {
        return json(&format!(
            r#"{{"success":true,"generated_at":"2026-11-21T12:00:00Z","data":[{}]}}"#,
            listed()
        ));
    }
    if target.contains("/nobody") {
        return crate::backend::answer("404 Not Found", &[], "");
    }
    json(&format!(r#"{{"success":true,"generated_at":"2026-11-21T12:00:00Z","data":[{item}]}}"#))
}

/// Starts the program. Between its fork and its start a process of another test holds whatever this one has open, the
/// lock of a program that has just stopped too.
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
    /// A world whose backend works.
    pub async fn new() -> Self {
        Self::with("", good).await
    }

    /// A world with further settings, whose backend does what `script` says.
    pub async fn with(settings: &str, script: impl Fn(&Received) -> Act + Send + Sync + 'static) -> Self {
        let backend = Backend::start(script).await;
        let (clock, hand) = Clock::hand_driven(Wall::parse_rfc3339(NOON).unwrap());
        Self::start(settings, backend, clock, hand, Arc::new(TempDir::new().unwrap())).await
    }

    /// A world before the built-in backend and its simulated runs.
    pub async fn built_in() -> Self {
        Self::with(&format!("{BUILT_IN}\n"), good).await
    }

    async fn start(
        settings: &str,
        backend: Backend,
        clock: Clock,
        hand: ManualClock,
        directory: Arc<TempDir>,
    ) -> Self {
        // A test that has more to say of the backend writes the table itself, with `{backend}` for the base address, or
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
        // Most tests count what the backend is asked: what it is asked of our own accord has tests of its own.
        let probing = if settings.contains("freshness.probe") { "" } else { "freshness.probe = false\n" };
        let text = format!("{ports}data_dir = \"{state}\"\n{probing}{settings}\n{upstream}");
        let mut config = resolve(&read_text(&text).unwrap()).unwrap_or_else(|problems| panic!("{problems}"));
        if text.contains(BUILT_IN) && !text.contains("built_in.archive") {
            // As the demo does: data that is always there, and always the same.
            config.upstream = UpstreamConfig::Simulated { seed: 42 };
        }
        let running = begin(config, &clock).await;
        let rules = Rules::of(
            &running.gateway().pages.find("/openapi.json").unwrap().body,
            OptionalHeaders::of(settings),
        );
        Self { hand, clock, backend, running, directory, rules, settings: settings.to_owned() }
    }

    /// A world before this backend, on this directory.
    pub async fn with_backend(settings: &str, backend: Backend, directory: Arc<TempDir>) -> Self {
        let (clock, hand) = Clock::hand_driven(Wall::parse_rfc3339(NOON).unwrap());
        Self::start(settings, backend, clock, hand, directory).await
    }

    /// Stops the program in order and starts it again on the same state.
    pub async fn restarted(self) -> Self {
        let Self { hand, clock, backend, running, directory, settings, .. } = self;
        assert!(running.stop().await.all_finished);
        Self::start(&settings, backend, clock, hand, directory).await
    }

    /// The same, where not everything can be brought to its end.
    pub async fn restarted_with_losses(self) -> Self {
        let Self { hand, clock, backend, running, directory, settings, .. } = self;
        running.stop().await;
        Self::start(&settings, backend, clock, hand, directory).await
    }

    /// Where the public port is.
    pub fn address(&self) -> SocketAddr {
        self.running.public
    }

    /// A new application of a tier.
    pub async fn customer(&self, tier: &str) -> Customer {
        self.customer_with(tier, OwnLimits::default()).await
    }

    /// A new application with limits of its own.
    pub async fn customer_with(&self, tier: &str, own: OwnLimits) -> Customer {
        let new = NewApplication {
            name: format!("a {tier} application"),
            tier: tier.into(),
            own,
            contact: None,
            note: None,
            expires_at: None,
        };
        let issued = self.running.registrar.create("test", new).await.unwrap();
        Customer { id: issued.application.id, key: issued.key.expose().to_owned() }
    }

    /// A GET in the making.
    pub fn get(&self, target: &str) -> RequestBuilder {
        self.ask("GET", target)
    }

    /// Any request in the making.
    pub fn ask(&self, method: &str, target: &str) -> RequestBuilder {
        RequestBuilder::new(self.address(), Arc::clone(&self.rules), method, target)
    }

    /// Lets time pass.
    pub fn pass(&self, time: Duration) {
        self.hand.advance(time);
    }

    /// The value of a series of metrics, such as `scoregate_refusals_total{code="not_found"}`; zero if it is not
    /// there yet.
    pub async fn metric(&self, series: &str) -> f64 {
        let name = series.split('{').next().unwrap();
        let is_declared = METRICS.iter().any(|row| {
            let part = name.strip_prefix(row.name);
            part.is_some_and(|part| ["", "_count", "_sum", "_bucket"].contains(&part))
        });
        assert!(is_declared, "there is no metric {name}: it would be zero for ever");
        let text = self.scrape().await;
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    /// What Prometheus would read.
    pub async fn scrape(&self) -> String {
        String::from_utf8(self.side("GET", "/metrics", "", &[]).await.body).unwrap()
    }

    /// A request to the side port.
    pub async fn side(&self, method: &str, target: &str, body: &str, headers: &[(&str, &str)]) -> Answer {
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
    /// The value of a series that counts whole things.
    pub async fn counted(&self, series: &str) -> u32 {
        let value = self.metric(series).await.to_string();
        value.parse().unwrap_or_else(|_| panic!("{series} is {value}"))
    }

    /// Holds an answer that was read from a bare connection against what is true of all answers.
    pub fn check(&self, method: &str, target: &str, answer: &Answer) {
        self.rules.check(method, target, answer);
    }
}
