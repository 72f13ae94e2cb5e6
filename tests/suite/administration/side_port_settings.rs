//! Effective settings and the log level, shown and changed by the side port.
//!
//! Every source of a setting is in `config/shown.rs`, the effects of a reload are in `reloading`.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    client::{Connection, Response},
    program::{Keys, Program, ProgramClient},
    world::{World, good},
};

const TOKEN: &str = "a-token-of-the-side-port";
const WITH_TOKEN: &str = "admin.token = \"a-token-of-the-side-port\"\n";

async fn settings(world: &World) -> Vec<Value> {
    let response = world
        .side(
            "GET",
            "/v1/settings/list",
            "",
            &[("Authorization", &format!("Bearer {TOKEN}"))],
        )
        .await;
    assert_eq!(response.status, 200, "{}", response.fingerprint);
    assert!(!String::from_utf8_lossy(&response.body).contains(TOKEN));
    response.json()["settings"].as_array().unwrap().clone()
}

fn one<'s>(settings: &'s [Value], path: &str) -> (&'s Value, &'s str) {
    let row = settings
        .iter()
        .find(|row| row["path"] == path)
        .unwrap_or_else(|| panic!("no {path}"));
    (&row["value"], row["from"].as_str().unwrap())
}

#[tokio::test]
async fn a_reload_changes_the_shown_settings_except_those_that_need_a_restart() {
    let mut world = World::with(&format!("{WITH_TOKEN}guard.per_minute = 7"), good).await;
    let before = settings(&world).await;
    assert_eq!(one(&before, "guard.per_minute"), (&json!(7), "file"));
    assert_eq!(
        one(&before, "cache.max_bytes"),
        (&json!("256MiB"), "default")
    );
    assert_eq!(one(&before, "admin.token"), (&json!("…"), "file"));
    assert_eq!(
        one(&before, "upstream.url"),
        (&json!(world.backend.url()), "file")
    );
    world
        .reload(&format!(
            "{WITH_TOKEN}guard.per_minute = 8\ncache.max_bytes = \"1MiB\""
        ))
        .await
        .unwrap();
    let after = settings(&world).await;
    assert_eq!(one(&after, "guard.per_minute"), (&json!(8), "file"));
    assert_eq!(
        one(&after, "cache.max_bytes"),
        (&json!("256MiB"), "default")
    );
    assert!(
        world
            .reload(&format!("{WITH_TOKEN}guard.per_minute = 0"))
            .await
            .is_err()
    );
    assert_eq!(
        one(&settings(&world).await, "guard.per_minute"),
        (&json!(8), "file")
    );
}

/// An operator's request to the side port of a real program.
async fn request_side(
    program: std::net::SocketAddr,
    method: &str,
    target: &str,
    body: &str,
) -> Response {
    let mut connection = Connection::open(program).await;
    let head = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\nX-Operator: anna\r\n");
    let head = format!(
        "{head}Authorization: Bearer {TOKEN}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write(head.as_bytes()).await;
    connection.read(false).await.unwrap()
}

#[tokio::test]
async fn a_changed_log_level_applies_until_the_settings_are_reloaded() {
    let directory = TempDir::new().unwrap();
    // Nothing listens on this port. The resulting fetch failure is logged at a verbose level.
    let environment = [
        ("SCOREGATE_UPSTREAM_URL", "http://127.0.0.1:9/api/v1"),
        ("SCOREGATE_ADMIN_TOKEN", TOKEN),
    ];
    let program = Program::serve(directory.path(), &environment);
    let (public, side) = program.ports();
    let (_, key) = Keys(directory.path()).create("pro");
    let client = ProgramClient::to(public).await;
    let fails = async |id: &str| {
        let response = client
            .get("/api/v1/index", &key)
            .header("X-Request-Id", id)
            .send()
            .await;
        assert_eq!(response.status, 503);
    };
    let level = async |body: &str| request_side(side, "POST", "/v1/log/set", body).await;
    assert_eq!(
        request_side(side, "GET", "/v1/log/show", "").await.json(),
        json!({"level": "info"})
    );
    fails("not-heard-1").await;
    for (body, words) in [
        (
            r#"{"level":"loud"}"#,
            "write error, warn, info, debug, trace",
        ),
        (r#"{"level":"info\n,warn"}"#, "write error"),
        (r#"{"level":""}"#, "write error"),
        (r#"{"level":"debug","for":"1h"}"#, "for"),
        ("", "the field `level` is missing"),
    ] {
        let refused = level(body).await;
        assert_eq!(refused.status, 400, "{body}");
        assert!(
            refused.json()["error"].as_str().unwrap().contains(words),
            "{}",
            refused.fingerprint
        );
    }
    assert_eq!(
        level(r#"{"level":"debug"}"#).await.json(),
        json!({"level": "debug"})
    );
    fails("heard-1234").await;
    assert_eq!(
        request_side(side, "GET", "/v1/log/show", "").await.json(),
        json!({"level": "debug"})
    );
    assert_eq!(
        request_side(side, "POST", "/v1/settings/reload", "")
            .await
            .status,
        200
    );
    assert_eq!(
        request_side(side, "GET", "/v1/log/show", "").await.json(),
        json!({"level": "info"})
    );
    fails("not-heard-2").await;
    // The change of the level is logged at every level.
    for body in [
        r#"{"level":"error"}"#,
        r#"{"level":"warn,scoregate::admin=info"}"#,
    ] {
        assert_eq!(level(body).await.status, 200, "{body}");
    }
    let err = program.stop().with(0).err;
    assert!(
        err.contains("heard-1234") && !err.contains("not-heard"),
        "{err}"
    );
    let lines: Vec<&str> = err
        .lines()
        .filter(|line| line.contains("log level changed"))
        .collect();
    assert!(
        lines.len() == 3
            && lines
                .iter()
                .all(|line| line.contains("actor=\"admin-api:anna\"")),
        "{lines:#?}"
    );
    for (line, words) in
        lines
            .iter()
            .zip(["level=\"debug\"", "level=\"error\"", "before=\"error\""])
    {
        assert!(line.contains(words), "{line}");
    }
}
