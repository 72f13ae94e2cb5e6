//! Keys never leak from any position of a request: not into responses, the side port, files, panics or requests to the
//! backend, and not into either log at the most verbose level.
//!
//! Names and notes written by operators are not searched.

mod key_positions;
mod panics;

use std::{net::SocketAddr, path::Path};

use scoregate_base::keys::Digest;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    connections::http2::{
        self, DATA, END_STREAM, GOAWAY, HEADERS, RST_STREAM, Wire, http2_client::Http2Client,
    },
    program::{Keys, Program},
    world::{World, good},
};

use key_positions::Canary;

const TOKEN: &str = "a-token-of-the-side-port";
/// The most verbose settings: all log levels, CORS for any origin, and trusted proxies.
const MOST_VERBOSE: [(&str, &str); 8] = [
    ("SCOREGATE_UPSTREAM", "built-in"),
    ("SCOREGATE_LOG_SAMPLE_ONE_IN", "1"),
    ("SCOREGATE_LOG_LEVEL", "trace,h2=trace"),
    ("SCOREGATE_ADMIN_TOKEN", TOKEN),
    ("SCOREGATE_GUARD_PER_MINUTE", "1000000"),
    ("SCOREGATE_CORS_ORIGINS", "*"),
    ("SCOREGATE_PROXIES_TRUSTED", "127.0.0.1"),
    ("SCOREGATE_KEYS_ACCEPT_IMPORTED", "true"),
];

/// Everything received in reply to these bytes.
async fn read_all(to: SocketAddr, bytes: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    // Before a reset, the connection has sent all of its data.
    drop(stream.read_to_end(&mut received).await);
    received
}

/// An imported key that looks like a trace id.
fn foreign(directory: &Path) -> String {
    let key = Digest::of(directory.to_str().unwrap()).to_string()[..32].to_owned();
    let line = format!(
        r#"{{"sha256":"{}","name":"Foreign","tier":"pro","own_limits":{{"minute":100000}}}}"#,
        Digest::of(&key)
    );
    let response =
        Keys(directory).run_with_input(&["import", "-", "--format", "jsonl"], line.as_bytes());
    assert_eq!(
        response.with(0).out,
        "1 imported, 0 already present, 0 rejected\n"
    );
    key
}

/// Sends the requests over HTTP/1.1.
async fn over_http1(public: SocketAddr, canary: &Canary, another: Option<&str>) {
    for request in canary.requests(another) {
        let response = read_all(public, &request).await;
        assert!(response.starts_with(b"HTTP/1."), "no answer to {request}");
        canary.is_not_in(&format!("the answer to {request}"), &response);
    }
}

/// Sends the requests over HTTP/2: with a well-behaved client, and as frames.
async fn over_http2(public: SocketAddr, canary: &Canary, another: Option<&str>) {
    let key = &canary.key;
    let mut responses = 0;
    for credential in [Some(key.as_str()), another]
        .into_iter()
        .flatten()
        .map(|key| ("x-api-key", key))
    {
        let fields = canary
            .fields()
            .into_iter()
            .map(|(name, value)| (name.to_lowercase(), value));
        let requests = fields.map(|field| ("GET", "/api/v1/index".to_owned(), Some(field)));
        let odd = [(key.as_str(), "/api/v1/index".to_owned(), None)];
        let paths = canary
            .targets()
            .into_iter()
            .filter(|target| target.starts_with('/'));
        for (method, target, field) in requests
            .chain(odd)
            .chain(paths.map(|target| ("GET", target, None)))
        {
            let field = field
                .as_ref()
                .map(|(name, value)| (name.as_str(), value.as_str()));
            let headers: Vec<(&str, &str)> = [credential].into_iter().chain(field).collect();
            // Some requests are invalid on HTTP/2 or close the connection, so each has its own connection.
            let Some(response) = Http2Client::to(public)
                .await
                .request(method, &target, &headers)
                .await
            else {
                continue;
            };
            responses += 1;
            let what = format!("the answer to {method} {target} {headers:?}");
            canary.is_not_in(&what, format!("{:?}", response.headers).as_bytes());
            canary.is_not_in(&what, &response.decoded());
        }
    }
    assert!(responses > 200, "{responses}");
    for name in [
        ":method",
        ":scheme",
        ":authority",
        ":path",
        ":made-up",
        "cookie",
        "te",
    ] {
        let mut fields = http2::get("/api/v1/models", &[("x-api-key", key)]);
        fields.retain(|(known, _)| known != name.as_bytes());
        fields.insert(0, (name.into(), key.as_bytes().to_vec()));
        let trailers = http2::fields(&[("x-last", key), ("grpc-status", key)]);
        let body = http2::frame(DATA, 0, 1, key.as_bytes());
        let mut connection = Wire::open(public).await;
        connection
            .send(
                &[
                    http2::opening(1, &fields, 0),
                    body,
                    http2::request(1, &trailers),
                ]
                .concat(),
            )
            .await;
        canary.is_not_in(
            &format!("the response to {name}"),
            &read_stream(&mut connection).await,
        );
    }
}

/// Everything received until a stream ends.
async fn read_stream(connection: &mut Wire) -> Vec<u8> {
    let mut payloads = Vec::new();
    while let Some(frame) = connection.read().await {
        payloads.extend(frame.payload);
        let ends = frame.stream == 1
            && matches!(frame.kind, HEADERS | DATA)
            && frame.flags & END_STREAM != 0;
        if ends || matches!(frame.kind, RST_STREAM | GOAWAY) {
            break;
        }
    }
    payloads
}

/// Sends every request to the side port, including some with the key in wrong positions.
async fn to_side_port(side: SocketAddr, canary: &Canary, application: &str) {
    let key = &canary.key;
    let get = |target: &str, token: &str| {
        format!(
            "GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             X-API-Key: {key}\r\nCookie: {key}\r\nUser-Agent: {key}\r\n\r\n"
        )
    };
    let requests = [
        "/metrics",
        "/healthz",
        "/readyz",
        "/v1/cache/list",
        "/v1/keys/list",
        "/v1/keys/audit?limit=500",
        "/v1/usage/top",
        "/v1/upstream/show",
        "/v1/settings/list",
        "/v1/log/show",
    ];
    let mut requests: Vec<String> = requests.map(String::from).to_vec();
    requests.extend([
        "/v1/keys/export".into(),
        format!("/v1/keys/show?id={application}"),
    ]);
    for target in &requests {
        let response = read_all(side, &get(target, TOKEN)).await;
        assert!(
            response.starts_with(b"HTTP/1.1 200 "),
            "{target}: {}",
            String::from_utf8_lossy(&response)
        );
        canary.is_not_in(target, &response);
    }
    let odd = [
        "/",
        "/metrics?",
        "/v1/keys/",
        "/v1/keys/list?after=",
        "/v1/keys/audit?id=",
        "/v1/keys/audit?",
        "/v1/usage/show?id=",
        "/v1/usage/top?most=",
        "/v1/settings/",
    ];
    for target in odd {
        for token in [TOKEN, key] {
            let target = format!("{target}{key}");
            canary.is_not_in(&target, &read_all(side, &get(&target, token)).await);
        }
    }
}

fn on_disk(directory: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(on_disk(&path));
        } else if path.is_file() {
            all.extend(std::fs::read(path).unwrap());
        }
    }
    all
}

/// Runs the test with one log format.
async fn check_no_leak(format: &str) {
    let directory = TempDir::new().unwrap();
    let settings = [&MOST_VERBOSE[..], &[("SCOREGATE_LOG_FORMAT", format)]].concat();
    let program = Program::serve(directory.path(), &settings);
    let (public, side) = program.ports();
    let keys = Keys(directory.path());
    let (application, ours) = keys.create("enterprise");
    let (_, other) = keys.create("free");
    keys.run(&["set-limits", &application, "--minute", "100000"])
        .with(0);
    let canaries = [Canary::new(&ours), Canary::new(&foreign(directory.path()))];
    for (canary, another) in canaries.iter().zip([Some(&*other), None]) {
        over_http1(public, canary, another).await;
        over_http2(public, canary, another).await;
        to_side_port(side, canary, &application).await;
    }
    // To revoke a key, it may be given in full.
    keys.run(&["revoke", &application, "--key", &ours]).with(0);
    to_side_port(side, &canaries[0], &application).await;
    let ended = program.stop().with(0);
    assert!(!ended.out.contains(TOKEN) && !ended.err.contains(TOKEN));
    for canary in &canaries {
        canary.is_not_in("the access log", ended.out.as_bytes());
        canary.is_not_in("the log", ended.err.as_bytes());
        canary.is_not_in("the data directory", &on_disk(directory.path()));
    }
    // The requests were answered, and the log was at its most verbose level.
    assert!(
        ended.out.lines().count() > 1_000,
        "{}",
        ended.out.lines().count()
    );
    assert!(
        ended.out.contains(&application) && ended.err.contains("TRACE"),
        "{}",
        ended.err
    );
}

#[tokio::test]
async fn keys_do_not_leak_with_text_logs() {
    check_no_leak("text").await;
}

#[tokio::test]
async fn keys_do_not_leak_with_json_logs() {
    check_no_leak("json").await;
}

#[tokio::test]
async fn keys_do_not_leak_to_the_backend() {
    let world = World::with("guard.per_minute = 1000000", good).await;
    let customer = world.paid().await;
    let other = world.free().await;
    let canary = Canary::new(&customer.key);
    for request in canary.requests(Some(&other.key)) {
        read_all(world.address(), &request).await;
    }
    let received = world.backend.received();
    assert!(received.len() > 3, "{received:?}");
    canary.is_not_in("an upstream request", format!("{received:?}").as_bytes());
}
