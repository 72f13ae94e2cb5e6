//! `scoregate explain`: how a running server would answer requests.

use std::path::Path;

use scoregate_base::keys::ApplicationId;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{BUILT_IN, CommandOutput, Keys, Program, ProgramClient, run};

const MODELS: &str = "GET /api/v1/models?period=24h";

fn explain(data: &Path, arguments: &[&str]) -> CommandOutput {
    run(&[
        &["explain"],
        arguments,
        &["--data-dir", data.to_str().unwrap()],
    ]
    .concat())
}

fn explained(data: &Path, arguments: &[&str]) -> Value {
    explain(data, &[arguments, &["--json"]].concat())
        .with(0)
        .json()
}

/// Status and code of the first outcome, and the number of outcomes.
fn answer(explanation: &Value) -> (u64, Option<&str>, usize) {
    let outcomes = explanation["outcomes"].as_array().unwrap();
    (
        outcomes[0]["status"].as_u64().unwrap(),
        outcomes[0]["code"].as_str(),
        outcomes.len(),
    )
}

#[tokio::test]
async fn a_request_is_explained_by_the_running_server_and_costs_nothing() {
    let data = TempDir::new().unwrap();
    let program = Program::serve(data.path(), &BUILT_IN);
    let client = ProgramClient::to(program.public()).await;
    let keys = Keys(data.path());
    let (app, key) = keys.create("pro");
    let miss = explained(data.path(), &["--app", &app, MODELS]);
    assert!(
        answer(&miss).2 > 3 && miss["outcomes"][0]["cost"]["day"] == 1,
        "{miss:#}"
    );
    assert_eq!(
        client
            .get("/api/v1/models?period=24h", &key)
            .send()
            .await
            .status,
        200
    );
    // Units are leased after the response.
    while answer(&explained(data.path(), &["--app", &app, MODELS])).2 > 1 {
        tokio::task::yield_now().await;
    }
    let whole_key = explain(data.path(), &["--key", &key, MODELS]).with(0).out;
    assert!(
        whole_key.contains(&key[..12]) && !whole_key.contains(&key[..13]),
        "{whole_key}"
    );
    let stages = [
        "\nkey\n",
        "\napplication\n",
        "\nlimits before\n",
        "\ndocument\n",
        "\nanswer\n",
    ];
    assert!(
        stages.iter().all(|stage| whole_key.contains(stage)),
        "{whole_key}"
    );
    for (arguments, expected) in [
        (&[MODELS][..], (200, None, 1)),
        (&["--header", "If-None-Match: *", MODELS], (304, None, 1)),
        (&["HEAD /api/v1/models?period=24h"], (200, None, 1)),
        (&["GET /api/v1/me"], (200, None, 1)),
        (&["GET /docs"], (200, None, 1)),
        (&["GET /api/v1/nothing"], (404, Some("not_found"), 1)),
        (
            &["GET /api/v1/models?period=3w"],
            (400, Some("invalid_period"), 1),
        ),
        (
            &["PUT /api/v1/models"],
            (405, Some("method_not_allowed"), 1),
        ),
    ] {
        let hit = explained(
            data.path(),
            &[arguments, &["--app", &app, "--client", "192.0.2.7"]].concat(),
        );
        assert_eq!(answer(&hit), expected, "{arguments:?}: {hit:#}");
    }
    assert_eq!(
        keys.json(&["show", &app])["used_today"],
        1,
        "the one request that was sent"
    );
    keys.run(&["revoke", &app]).with(0);
    let revoked = explained(data.path(), &["--app", &app, MODELS]);
    assert_eq!(
        answer(&revoked),
        (401, Some("invalid_api_key"), 1),
        "{revoked:#}"
    );
    program.stop().with(0);
}

#[test]
fn what_cannot_be_explained_is_an_error_that_says_why() {
    let data = TempDir::new().unwrap();
    let program = Program::serve(data.path(), &BUILT_IN);
    program.public();
    let keys = Keys(data.path());
    let [(one, key), (two, _)] = [keys.create("pro"), keys.create("free")];
    let unknown = ApplicationId::mint().unwrap().to_string();
    for (arguments, words) in [
        (
            &["--key", "sg_live_", MODELS][..],
            &["2 keys begin with this text", &one, &two, &key[..12]][..],
        ),
        (&["--key", "sg_test_", MODELS], &["no stored key"]),
        (&["--key", "", MODELS], &["2 keys"]),
        (&["--app", &unknown, MODELS], &[&unknown]),
        (&["--app", &one, "/api/v1/models"], &["method and target"]),
        (&["--app", &one, "--header", "x", MODELS], &["Name: value"]),
        (
            &["--app", &one, "--header", "X-API-Key: k", MODELS],
            &["omit the key"],
        ),
        (&[MODELS], &["--key"]),
        (&["--app", &one], &["REQUEST"]),
    ] {
        let refused = explain(data.path(), arguments).with(1).err;
        assert!(
            words.iter().all(|word| refused.contains(word)),
            "{arguments:?}: {refused}"
        );
        assert!(!refused.contains(&key[..13]), "{refused}");
    }
    let narrowed = explained(data.path(), &["--key", "sg_live_", "--app", &one, MODELS]);
    assert_eq!(answer(&narrowed).0, 200);
    program.stop().with(0);
    let stopped = explain(data.path(), &["--app", &one, MODELS]).with(1).err;
    assert!(stopped.contains("no server is running"), "{stopped}");
}
