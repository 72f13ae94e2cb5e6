//! The Alertmanager configuration in the repository, run by a real Alertmanager: the alerts of one fault are grouped
//! into one notification. The alerts of an outage equal the alerts that promtool expects in
//! `deploy/prometheus/tests/outage.yml`.

use std::{collections::BTreeSet, net::SocketAddr, process::Command, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
};

use super::{dashboards::in_tree, rules::alerts};
use crate::program::Program;

/// The test fails if a notification takes longer than this.
const MAX_WAIT: Duration = Duration::from_mins(1);

fn configuration() -> String {
    std::fs::read_to_string(in_tree("deploy/prometheus/alertmanager.yml")).unwrap()
}

/// The labels of the alerts that fire in an outage of the database of three gateways.
fn outage() -> Vec<Json> {
    let text = std::fs::read_to_string(in_tree("deploy/prometheus/tests/outage.yml")).unwrap();
    let labels = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- labels: 'ALERTS{"));
    let alert = |line: &str| {
        let pairs = line.strip_suffix("}'").unwrap().split(", ");
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap();
            (name.to_owned(), Json::from(value.trim_matches('"')))
        };
        Json::Object(
            pairs
                .map(pair)
                .filter(|(name, _)| name != "alertstate")
                .collect(),
        )
    };
    labels.map(alert).collect()
}

/// Receives notifications: their paths and bodies.
struct Receiver {
    address: SocketAddr,
    received: UnboundedReceiver<(String, Json)>,
}

impl Receiver {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, received) = unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let sender = sender.clone();
                let service = service_fn(move |request: http::Request<Incoming>| {
                    let sender = sender.clone();
                    async move {
                        let path = request.uri().path().to_owned();
                        let body = request.into_body().collect().await?.to_bytes();
                        drop(sender.send((path, serde_json::from_slice(&body).unwrap())));
                        Ok::<_, hyper::Error>(http::Response::new(Full::<Bytes>::default()))
                    }
                });
                let server = hyper::server::conn::http1::Builder::new();
                tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, received }
    }

    /// The next notification: its path, and the alerts' names with their instances.
    async fn next(&mut self) -> (String, BTreeSet<(String, String)>) {
        let (path, body) = tokio::time::timeout(MAX_WAIT, self.received.recv())
            .await
            .unwrap()
            .unwrap();
        let alerts = body["alerts"].as_array().unwrap().iter().map(|alert| {
            let label = |name| {
                alert["labels"][name]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            };
            (label("alertname"), label("instance"))
        });
        (path, alerts.collect())
    }
}

/// A real Alertmanager with the configuration of the repository, except for the receiver and shorter times.
struct Alertmanager {
    program: Program,
    address: SocketAddr,
    _directory: TempDir,
}

impl Alertmanager {
    fn start(receiver: SocketAddr) -> Self {
        let directory = TempDir::new().unwrap();
        let mut text = configuration();
        for (from, to) in [
            ("group_wait: 30s", "group_wait: 1s".to_owned()),
            (
                "http://notifications.example/",
                format!("http://{receiver}/"),
            ),
        ] {
            assert!(text.contains(from), "{text}");
            text = text.replace(from, &to);
        }
        let file = directory.path().join("alertmanager.yml");
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new("prometheus-alertmanager");
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!(
            "--storage.path={}",
            directory.path().join("data").display()
        ));
        command.args([
            "--web.listen-address=127.0.0.1:0",
            "--cluster.listen-address=",
        ]);
        let program = Program::spawn(command);
        let line = program.logs("address=127.0.0.1:");
        let address = line
            .split("address=")
            .nth(1)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        Self {
            program,
            address,
            _directory: directory,
        }
    }

    /// Sends alerts as Prometheus does.
    async fn post(&self, labels: &[Json]) {
        let alerts: Vec<Json> = labels
            .iter()
            .map(|labels| json!({ "labels": labels }))
            .collect();
        let body = Json::from(alerts).to_string();
        let head =
            "POST /api/v2/alerts HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json";
        let request = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        assert!(response.starts_with("HTTP/1.0 200 "), "{response}");
    }
}

fn instance(number: u32) -> String {
    format!("gate-{number}:9464")
}

#[tokio::test]
async fn a_database_outage_of_three_gateways_is_one_page_and_no_ticket() {
    needs!("prometheus-alertmanager");
    let outage = outage();
    let pages = outage
        .iter()
        .filter(|labels| labels["severity"] == "page")
        .count();
    assert!(pages >= 6 && outage.len() - pages >= 4, "{outage:#?}");
    let mut receiver = Receiver::start().await;
    let manager = Alertmanager::start(receiver.address);
    manager.post(&outage).await;
    let expected = BTreeSet::from([("ScoregateStoreUnreachable".to_owned(), String::new())]);
    assert_eq!(receiver.next().await, ("/page".to_owned(), expected));
    // This alert is sent last, so its notification arrives last.
    let other = json!({ "alertname": "ScoregatePanics", "job": "scoregate", "instance": instance(1), "severity": "ticket" });
    manager.post(&[other]).await;
    let expected = BTreeSet::from([("ScoregatePanics".to_owned(), instance(1))]);
    assert_eq!(receiver.next().await, ("/ticket".to_owned(), expected));
    assert_eq!(manager.program.stop().code, Some(0));
}

#[tokio::test]
async fn an_outage_of_one_gateway_hides_no_alert_of_another_one() {
    needs!("prometheus-alertmanager");
    let mut receiver = Receiver::start().await;
    let manager = Alertmanager::start(receiver.address);
    let alert = |name: &str, number: u32, severity: &str| json!({ "alertname": name, "job": "scoregate", "instance": instance(number), "severity": severity });
    let cut_off = alert("ScoregateStoreChangesDelayed", 1, "page");
    let failing = alert("ScoregateMostRequestsFailing", 2, "page");
    let for_all = json!({ "alertname": "ScoregateAvailabilityBurnRateFast", "job": "scoregate", "severity": "page" });
    manager
        .post(&[
            cut_off,
            failing,
            alert("ScoregateMostRequestsFailing", 1, "page"),
            for_all,
        ])
        .await;
    let mut found = BTreeSet::new();
    for _ in 0..3 {
        let (path, alerts) = receiver.next().await;
        assert_eq!(path, "/page");
        found.extend(alerts);
    }
    let expected = [
        ("ScoregateStoreChangesDelayed", 1),
        ("ScoregateMostRequestsFailing", 2),
    ];
    let mut expected =
        BTreeSet::from(expected.map(|(name, number)| (name.to_owned(), instance(number))));
    expected.insert((
        "ScoregateAvailabilityBurnRateFast".to_owned(),
        String::new(),
    ));
    assert_eq!(found, expected);
    assert_eq!(manager.program.stop().code, Some(0));
}

#[test]
fn amtool_accepts_the_configuration_and_pages_and_tickets_have_receivers() {
    needs!("prometheus-alertmanager");
    let file = in_tree("deploy/prometheus/alertmanager.yml");
    let amtool = |arguments: &[&str]| {
        let output = Command::new("amtool").args(arguments).output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let path = file.to_str().unwrap();
    amtool(&["check-config", path]);
    let configuration = format!("--config.file={path}");
    for severity in ["page", "ticket"] {
        let label = format!("severity={severity}");
        assert_eq!(
            amtool(&["config", "routes", "test", &configuration, &label]),
            severity
        );
    }
}

/// The alerts named by a matcher in a line of the configuration: words, with one level of alternatives.
fn named(line: &str) -> Vec<String> {
    let pattern = line
        .rsplit('=')
        .next()
        .unwrap()
        .trim_matches(|letter| " ~\"]".contains(letter));
    let outside = |pattern: &str| {
        let mut depth = 0;
        let mut parts = vec![String::new()];
        for letter in pattern.chars() {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            if letter == '|' && depth == 0 {
                parts.push(String::new());
            } else {
                parts.last_mut().unwrap().push(letter);
            }
        }
        parts
    };
    let mut names = outside(pattern);
    while let Some(at) = names.iter().position(|name| name.contains('(')) {
        let name = names.remove(at);
        let (begin, rest) = name.split_once('(').unwrap();
        let (inside, end) = rest.split_once(')').unwrap();
        names.extend(inside.split('|').map(|word| format!("{begin}{word}{end}")));
    }
    names
}

#[test]
fn alerts_are_inhibited_by_existing_alerts_that_are_as_urgent() {
    let all = alerts();
    let is_page = |name: &String| {
        let alert = all.iter().find(|alert| alert.name == *name);
        alert
            .unwrap_or_else(|| panic!("there is no alert {name}"))
            .field("severity")
            == "page"
    };
    let text = configuration();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut rules = 0;
    for pair in lines
        .windows(2)
        .filter(|pair| pair[0].starts_with("- source_matchers: "))
    {
        assert!(pair[1].starts_with("target_matchers: "), "{pair:?}");
        let sources = named(pair[0]);
        let targets = named(pair[1]);
        let is_urgent = sources.iter().all(is_page);
        assert!(
            is_urgent || !targets.iter().any(is_page),
            "a ticket hides a page: {pair:?}"
        );
        rules += 1;
    }
    assert!(rules > 5, "{rules}");
}
