//! `scoregate demo` and the shutdown of a server: printed commands work, temporary files are removed, requests in
//! flight are finished.

use std::path::Path;

use tempfile::TempDir;

use crate::{
    backend::{Backend, json},
    client::Connection,
    program::{Program, ProgramClient, run},
};

const TIERS: [&str; 5] = ["free", "pro", "developer", "teams", "enterprise"];
const FREE_PORTS: [&str; 5] = [
    "demo",
    "--listen",
    "127.0.0.1:0",
    "--admin-listen",
    "127.0.0.1:0",
];

fn demo(data_dir: Option<&Path>) -> Program {
    let named = data_dir.map(|directory| ["--data-dir", directory.to_str().unwrap()]);
    let arguments: Vec<&str> = FREE_PORTS
        .into_iter()
        .chain(named.into_iter().flatten())
        .collect();
    Program::start(&arguments, &[])
}

/// The output of a demo: the key of each tier, and a curl command.
struct DemoOutput {
    keys: Vec<(String, String)>,
    /// The header value and the URL of the curl command.
    curl: (String, String),
}

impl DemoOutput {
    fn by(program: &Program) -> Self {
        let pair = |line: String| {
            line.split_once(' ')
                .map(|(tier, key)| (tier.into(), key.into()))
                .unwrap()
        };
        let keys = TIERS
            .map(|tier| pair(program.prints(&format!("{tier} "))))
            .into();
        let curl = program.prints("curl ");
        let quoted: Vec<&str> = curl.split('\'').collect();
        let curl = (
            quoted[1]
                .strip_prefix("Authorization: Bearer ")
                .unwrap()
                .into(),
            quoted[3].into(),
        );
        Self { keys, curl }
    }

    fn client(&self) -> impl Future<Output = ProgramClient> {
        let host = self
            .curl
            .1
            .strip_prefix("http://")
            .unwrap()
            .split('/')
            .next()
            .unwrap();
        ProgramClient::to(host.parse().unwrap())
    }
}

#[tokio::test]
async fn a_demo_prints_a_key_for_each_tier_and_each_key_has_the_access_of_its_tier() {
    let program = demo(None);
    let printed = DemoOutput::by(&program);
    let client = printed.client().await;
    for (tier, key) in &printed.keys {
        assert_eq!(client.identity(key).await.unwrap().0, *tier);
    }
    let ended = program.stop().with(0);
    let first: Vec<&str> = ended
        .out
        .lines()
        .take_while(|line| !line.is_empty())
        .collect();
    let expected: Vec<String> = printed
        .keys
        .iter()
        .map(|(tier, key)| format!("{tier} {key}"))
        .collect();
    assert_eq!(
        first, expected,
        "five lines and nothing before or between them"
    );
}

#[tokio::test]
async fn the_curl_that_a_demo_prints_gets_the_rankings() {
    let program = demo(None);
    let printed = DemoOutput::by(&program);
    let (key, url) = &printed.curl;
    let target = &url[url.find("/api").unwrap()..];
    let response = printed.client().await.get(target, key).send().await;
    assert_eq!(response.status, 200);
    assert!(response.json()["count"].as_u64().unwrap() > 0);
    assert!(
        response.json()["license"]
            .as_str()
            .unwrap()
            .contains("simulated")
    );
    program.stop().with(0);
}

/// The targets of the curl commands of a page, from their quoted URLs.
fn curls(html: &str) -> Vec<String> {
    let mut targets = Vec::new();
    for block in html.split("<code>").skip(1) {
        let block = block.split("</code>").next().unwrap();
        let bare: String = block
            .split('<')
            .enumerate()
            .map(|(at, part)| {
                if at == 0 {
                    part
                } else {
                    part.split_once('>').unwrap().1
                }
            })
            .collect();
        let code = bare.replace("&quot;", "\"").replace("&amp;", "&");
        if !code.contains("curl ") {
            continue;
        }
        let url = code
            .split('"')
            .find(|text| text.starts_with("http"))
            .unwrap_or_else(|| panic!("{code}"));
        targets.push(url[url.find("/api/v1").unwrap()..].to_owned());
    }
    targets
}

#[tokio::test]
async fn every_curl_command_of_the_docs_works_in_the_demo() {
    let program = demo(None);
    let printed = DemoOutput::by(&program);
    let client = printed.client().await;
    let key = &printed
        .keys
        .iter()
        .find(|(tier, _)| tier == "pro")
        .unwrap()
        .1;
    let docs = client.get("/docs", key).send().await;
    let targets = curls(&String::from_utf8(docs.body).unwrap());
    assert!(targets.len() >= 15, "{targets:?}");
    for target in &targets {
        let output = client.get(target, key).send().await;
        assert_eq!(
            output.status,
            200,
            "{target}: {}",
            String::from_utf8_lossy(&output.body)
        );
    }
    assert!(
        targets
            .iter()
            .any(|target| target.starts_with("/api/v1/models/atlas-4-large/history"))
    );
    program.stop().with(0);
}

#[tokio::test]
async fn a_demo_has_alerts_incidents_and_degradations_for_every_tier_without_parameters() {
    let program = demo(None);
    let printed = DemoOutput::by(&program);
    let client = printed.client().await;
    for (tier, key) in &printed.keys {
        // The minute limit of the free tier is one request.
        let others = if tier == "free" {
            &[][..]
        } else {
            &["/api/v1/alerts", "/api/v1/incidents"]
        };
        for target in others.iter().chain(&["/api/v1/analytics/degradations"]) {
            let response = client.get(target, key).send().await;
            assert_eq!(response.status, 200, "{tier}: {target}");
            assert!(
                response.json()["count"].as_u64().unwrap() > 0,
                "{tier}: {target}: {}",
                response.json()
            );
        }
    }
    program.stop().with(0);
}

#[test]
fn a_stopped_demo_shuts_down_gracefully_and_leaves_no_files() {
    for signal in ["TERM", "INT"] {
        let program = demo(None);
        let state = program.prints("state ");
        let state = Path::new(state.trim_start_matches("state").trim()).to_owned();
        assert!(
            state.starts_with(program.scratch.path()) && state.is_dir(),
            "{signal}"
        );
        program.logs("Ctrl-C");
        program.signal(signal);
        let (ended, scratch) = program.end();
        ended.with(0);
        assert!(!state.exists(), "{signal}");
        assert_eq!(
            std::fs::read_dir(scratch.path()).unwrap().count(),
            0,
            "{signal}"
        );
    }
}

#[tokio::test]
async fn a_named_directory_keeps_the_demo_s_applications_and_revokes_its_old_keys() {
    let directory = TempDir::new().unwrap();
    let before = demo(Some(directory.path()));
    let old = DemoOutput::by(&before);
    let client = old.client().await;
    let mut owners = Vec::new();
    for (_, key) in &old.keys {
        owners.push(client.identity(key).await.unwrap());
    }
    before.stop().with(0);

    let after = demo(Some(directory.path()));
    let new = DemoOutput::by(&after);
    let client = new.client().await;
    for (index, owner) in owners.iter().enumerate() {
        assert_eq!(
            client.identity(&new.keys[index].1).await.as_ref(),
            Ok(owner)
        );
        assert_eq!(
            client.identity(&old.keys[index].1).await,
            Err("invalid_api_key".into())
        );
    }
    after.stop().with(0);
}

#[test]
fn a_demo_rejects_a_reload_since_it_has_no_settings_file() {
    let directory = TempDir::new().unwrap();
    let program = demo(Some(directory.path()));
    program.prints("state ");
    let refused = run(&["reload", "--data-dir", directory.path().to_str().unwrap()]).with(1);
    assert!(
        refused.err.contains("started without settings"),
        "{}",
        refused.err
    );
    program.stop().with(0);
}

#[test]
fn a_second_demo_on_the_same_directory_fails_with_the_reason() {
    let directory = TempDir::new().unwrap();
    let first = demo(Some(directory.path()));
    first.prints("state ");
    let (second, _) = demo(Some(directory.path())).end();
    let second = second.with(2);
    assert!(
        second.err.contains("in use by another scoregate") && second.err.contains("--data-dir")
    );
    assert_eq!(second.out, "");
    first.stop().with(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_in_flight_at_sigterm_is_finished() {
    let backend = Backend::start(|_| json(r#"{"success":true,"data":[{"id":"atlas"}]}"#)).await;
    let directory = TempDir::new().unwrap();
    let program = Program::serve(
        directory.path(),
        &[("SCOREGATE_UPSTREAM_URL", &backend.url())],
    );
    let client = ProgramClient::to(program.public()).await;
    let arguments = [
        "keys",
        "create",
        "--name",
        "n",
        "--tier",
        "pro",
        "--data-dir",
    ];
    let created = run(&[&arguments[..], &[directory.path().to_str().unwrap()]].concat()).with(0);
    let mut idle = Connection::open(client.address()).await;
    idle.send(client.get("/api/v1/me", created.out.trim()))
        .await;
    backend.hold();
    let asking = tokio::spawn(client.get("/api/v1/models", created.out.trim()).send());
    backend.has_received(1).await;
    program.signal("TERM");
    assert!(
        idle.is_closed().await,
        "connections without a request are closed first"
    );
    backend.open();
    let response = asking.await.unwrap();
    assert_eq!(
        (response.status, response.json()["count"].as_u64()),
        (200, Some(1))
    );
    let (ended, _) = program.end();
    assert!(ended.with(0).err.contains("all_finished=true"));
}

#[tokio::test]
async fn a_server_that_shuts_down_accepts_no_connections_and_returns_leased_units() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().to_str().unwrap();
    let program = Program::serve(directory.path(), &[("SCOREGATE_UPSTREAM", "built-in")]);
    let address = program.public();
    let created = run(&[
        "keys",
        "create",
        "--name",
        "n",
        "--tier",
        "teams",
        "--data-dir",
        path,
    ])
    .with(0);
    let client = ProgramClient::to(address).await;
    for _ in 0..3 {
        assert_eq!(
            client
                .get("/api/v1/models", created.out.trim())
                .send()
                .await
                .status,
            200
        );
    }
    program.stop().with(0);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    let list = run(&["keys", "list", "--json", "--data-dir", path])
        .with(0)
        .json();
    assert_eq!(list["applications"][0]["granted_today"], 3);
}
