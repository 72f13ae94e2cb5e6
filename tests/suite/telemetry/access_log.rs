//! The access log of the real program: its fields, and data that it never contains. It never blocks a request.

use std::collections::BTreeMap;

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use scoregate_base::keys::KeyForm;

use crate::program::{BUILT_IN, Keys, Program, ProgramClient, run};

/// Every request is logged.
const ALL: [(&str, &str); 2] = [BUILT_IN[0], ("SCOREGATE_LOG_SAMPLE_ONE_IN", "1")];

/// The fields of a line.
fn fields(line: &str) -> BTreeMap<&str, &str> {
    line.split(' ')
        .map(|field| field.split_once('=').unwrap_or_else(|| panic!("{line}")))
        .collect()
}

#[tokio::test]
async fn access_log_has_one_line_per_request_with_its_outcome() {
    let directory = TempDir::new().unwrap();
    let program = Program::serve(directory.path(), &ALL);
    let client = ProgramClient::to(program.public()).await;
    let (application, key) = Keys(directory.path()).create("pro");
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    let models = client.get("/api/v1/models?period=7d&unknown=1", &key);
    let good = models
        .header("traceparent", &parent)
        .header("x-request-id", "mine-12345")
        .send()
        .await;
    assert_eq!(good.status, 200);
    assert_eq!(
        client
            .get("/api/v1/models/no%2Fmodel", &key)
            .send()
            .await
            .status,
        400
    );
    let out = program.stop().with(0).out;
    let lines: Vec<_> = out.lines().map(fields).collect();
    let [page, good, bad] = lines.as_slice() else {
        panic!("{out}")
    };
    assert_eq!((page["endpoint"], page["status"]), ("page", "200"));
    assert_eq!(
        (good["endpoint"], good["status"], good["outcome"]),
        ("models", "200", "miss")
    );
    assert_eq!(good["document"], "/api/v1/models?period=7d&sortBy=combined");
    assert_eq!(
        (good["application"], good["client"]),
        (application.as_str(), "127.0.0.1")
    );
    assert_eq!(
        (good["request_id"], good["trace_id"]),
        ("mine-12345", trace)
    );
    assert!(good["duration_us"].parse::<u64>().unwrap() > 0 && good["at"].ends_with('Z'));
    assert_eq!((bad["status"], bad["code"]), ("400", "invalid_model_id"));
    // The charged day. Only the 200 with data was charged.
    assert!(
        good["day"].len() == 10 && good["at"].starts_with(good["day"]),
        "{good:?}"
    );
    assert!(!bad.contains_key("day") && !page.contains_key("day"));
    assert!(!bad.contains_key("document") && !bad.contains_key("trace_id"));
}

#[tokio::test]
async fn why_a_key_is_refused_is_logged_and_explained_but_not_answered() {
    let directory = TempDir::new().unwrap();
    let program = Program::serve(directory.path(), &ALL);
    let client = ProgramClient::to(program.public()).await;
    let keys = Keys(directory.path());
    let (application, revoked) = keys.create("pro");
    keys.run(&["revoke", &application]).with(0);
    let unknown = KeyForm::new("sg_live", false).mint().unwrap();
    let sent = [revoked.as_str(), unknown.expose(), "sg_live_nobody"];
    let mut bodies = Vec::new();
    for key in sent {
        let refused = client.get("/api/v1/models", key).send().await;
        assert_eq!(refused.status, 401);
        let mut body = refused.json();
        body["request_id"].take();
        bodies.push(body);
    }
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
    let data_dir = directory.path().to_str().unwrap();
    let request = "GET /api/v1/models";
    let explain = [
        "explain",
        "--app",
        &application,
        request,
        "--data-dir",
        data_dir,
    ];
    let explained = run(&explain).with(0).out;
    assert!(explained.contains("revoked"), "{explained}");
    let out = program.stop().with(0).out;
    let lines = out.lines().filter(|line| !line.contains("endpoint=page"));
    let logged: Vec<_> = lines.map(|line| fields(line)["key"]).collect();
    assert_eq!(logged, ["revoked", "unknown", "malformed"]);
}

#[tokio::test]
async fn access_log_marks_a_client_that_disconnected_before_the_response() {
    // A backend that accepts requests and never responds.
    let backend = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/api/v1", backend.local_addr().unwrap());
    let directory = TempDir::new().unwrap();
    let program = Program::serve(
        directory.path(),
        &[("SCOREGATE_UPSTREAM_URL", &url), ALL[1]],
    );
    let public = program.public();
    let (application, key) = Keys(directory.path()).create("pro");
    let mut stream = TcpStream::connect(public).await.unwrap();
    let head = format!("GET /api/v1/index HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    // The request has reached the backend.
    let _upstream_request = backend.accept().await.unwrap();
    drop(stream);
    let line = program.prints("client_disconnected=true");
    let logged = fields(line.trim_end());
    assert_eq!(
        (logged["endpoint"], logged["application"]),
        ("index", application.as_str())
    );
    assert!(
        !logged.contains_key("status") && !logged.contains_key("code"),
        "{line}"
    );
}

#[tokio::test]
async fn access_log_marks_calls_of_tools() {
    let directory = TempDir::new().unwrap();
    let program = Program::serve(
        directory.path(),
        &[ALL[0], ALL[1], ("SCOREGATE_MCP_ENABLED", "true")],
    );
    let public = program.public();
    let (_, key) = Keys(directory.path()).create("pro");
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_models","arguments":{}}}"#;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(public).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.read_to_end(&mut Vec::new()).await.unwrap();
    let line = program.prints("mcp=true");
    let logged = fields(line.trim_end());
    assert_eq!((logged["endpoint"], logged["status"]), ("models", "200"));
}
