//! `scoregate keys`: the same commands on a running and on a stopped server, with text and with JSON output.

use std::sync::Barrier;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{BUILT_IN, Keys, Program, ProgramClient, run, sql};

/// Every command once, with JSON output.
fn every_command(keys: &Keys<'_>) {
    let (id, key) = keys.create("pro");
    let shown = keys.json(&["show", &id]);
    assert_eq!(
        (
            shown["tier"].as_str(),
            shown["name"].as_str(),
            shown["keys"].as_array().map(Vec::len)
        ),
        (Some("pro"), Some("Weather site"), Some(1))
    );
    assert!(key.starts_with(shown["keys"][0]["prefix"].as_str().unwrap()));
    let rotated = keys.json(&["rotate", &id, "--overlap-hours", "1"]);
    assert_ne!(rotated["key"].as_str(), Some(key.as_str()));
    assert_eq!(
        rotated["application"]["keys"].as_array().map(Vec::len),
        Some(2)
    );
    assert_eq!(keys.json(&["set-tier", &id, "teams"])["tier"], "teams");
    let limited = keys.json(&["set-limits", &id, "--minute", "7", "--day", "70"]);
    assert_eq!(limited["own_limits"], json!({"minute": 7, "day": 70}));
    let half = keys.json(&["set-limits", &id, "--minute", "none"]);
    assert_eq!(half["own_limits"], json!({"day": 70}));
    let month = ["set-limits", &id, "--month", "69", "--month-anchor", "31"];
    let small = keys.run(&month).with(0);
    assert!(
        small
            .err
            .contains("month: the quota is smaller than the daily quota"),
        "{}",
        small.err
    );
    assert!(
        small
            .out
            .contains(r#"{"day":70,"month":69,"month_anchor":31}"#)
    );
    let listed = keys.json(&["list"])["applications"].clone();
    let listed = listed.as_array().unwrap();
    assert!(
        listed
            .iter()
            .any(|application| application["own_limits"]["month"] == 69)
    );
    let month = [
        "set-limits",
        &id,
        "--month",
        "none",
        "--month-anchor",
        "none",
    ];
    assert_eq!(keys.json(&month)["own_limits"], json!({"day": 70}));
    let described = keys.json(&[
        "update",
        &id,
        "--name",
        "Other",
        "--contact",
        "a@example.org",
        "--url",
        "https://example.org/?a=b",
    ]);
    for (name, text) in [
        ("name", "Other"),
        ("contact", "a@example.org"),
        ("url", "https://example.org/?a=b"),
    ] {
        assert_eq!(described[name], text);
    }
    let bare = keys.json(&["update", &id, "--contact", "", "--url", ""]);
    assert_eq!(
        (bare["name"].as_str(), &bare["contact"], &bare["url"]),
        (Some("Other"), &Value::Null, &Value::Null)
    );
    every_expiry(keys, &id, &key);
    every_listing(keys, &id);
    let revoked = keys.json(&["revoke", &id]);
    assert!(
        revoked["keys"]
            .as_array()
            .unwrap()
            .iter()
            .all(|key| !key["revoked_at"].is_null())
    );
}

/// Every change to the expiry of an application's keys.
fn every_expiry(keys: &Keys<'_>, id: &str, key: &str) {
    let ends = |output: &Value| -> Vec<Value> {
        output["keys"]
            .as_array()
            .unwrap()
            .iter()
            .map(|key| key["expires_at"].clone())
            .collect()
    };
    // The older key is in its overlap: only a command that names the key extends it.
    let refused = keys
        .run(&["set-expiry", id, "--at", "2099-01-31T00:00:00Z"])
        .with(1);
    assert!(
        refused.err.contains("name the key to change"),
        "{}",
        refused.err
    );
    let named = keys.json(&[
        "set-expiry",
        id,
        "--key",
        key,
        "--at",
        "2099-01-31T00:00:00Z",
    ]);
    assert!(
        ends(&named).contains(&Value::from("2099-01-31T00:00:00Z")),
        "{named}"
    );
    let both = keys.json(&["set-expiry", id, "--at", "2098-01-31T00:00:00Z"]);
    assert!(
        ends(&both).iter().all(|at| at == "2098-01-31T00:00:00Z"),
        "{both}"
    );
    let one = keys.json(&["set-expiry", id, "--key", key, "--at", "never"]);
    assert_eq!(ends(&one).iter().filter(|at| at.is_null()).count(), 1);
    let until = keys.json(&["rotate", id, "--expires-at", "2098-01-31T00:00:00Z"]);
    assert!(ends(&until["application"]).contains(&Value::from("2098-01-31T00:00:00Z")));
}

/// The audit trail and the list after the changes of [`every_command`].
fn every_listing(keys: &Keys<'_>, id: &str) {
    let newest = keys.json(&["audit", id, "--limit", "4"]);
    let actions = |page: &Value| -> Vec<String> {
        let records = page["records"].as_array().unwrap().iter();
        records
            .map(|record| record["action"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        actions(&newest),
        ["rotate", "set_expiry", "set_expiry", "set_expiry"]
    );
    let before = newest["next"].as_u64().unwrap().to_string();
    let older = keys.json(&["audit", id, "--before", &before]);
    let expected = [
        "describe",
        "describe",
        "set_limits",
        "set_limits",
        "set_limits",
        "set_limits",
        "set_tier",
        "rotate",
        "create",
    ];
    assert_eq!(actions(&older), expected);
    assert!(
        older["next"].is_null()
            && older["records"][0]["actor"]
                .as_str()
                .unwrap()
                .starts_with("cli")
    );
    let listed = keys.json(&["list"]);
    let listed = listed["applications"].as_array().unwrap();
    assert!(
        listed
            .iter()
            .any(|one| one["id"] == id && one["tier"] == "teams")
    );
}

/// Every command once, with text output.
fn every_command_in_words(keys: &Keys<'_>) {
    let created = keys
        .run(&["create", "--name", "Weather site", "--tier", "pro"])
        .with(0);
    assert!(
        created.out.starts_with("sg_live_") && created.out.lines().count() == 1,
        "only the key is data"
    );
    assert!(created.err.contains("shown only once"));
    let id = created.err.split(':').next().unwrap().to_owned();
    let rotated = keys.run(&["rotate", &id]).with(0);
    assert!(rotated.out.starts_with("sg_live_") && rotated.out != created.out);
    let shown = keys.run(&["show", &id]).with(0).out;
    assert!(
        shown.contains(&id) && shown.contains("Weather site") && shown.contains("KEY PREFIX"),
        "{shown}"
    );
    assert!(
        keys.run(&["set-tier", &id, "free"])
            .with(0)
            .out
            .contains("free")
    );
    let list = keys.run(&["list"]).with(0).out;
    assert!(
        list.starts_with("APPLICATION") && list.contains(&id) && list.contains("free"),
        "{list}"
    );
    assert!(
        list.contains("UNITS TODAY"),
        "`top` counts requests: {list}"
    );
    assert!(keys.run(&["revoke", &id]).with(0).out.contains(&id));
    let output = keys.run(&["audit", &id, "--limit", "1"]).with(0);
    assert!(
        output.out.starts_with("NUMBER") && output.out.contains("revoke_all"),
        "{}",
        output.out
    );
    assert!(output.err.contains("--before"));
}

#[test]
fn every_keys_command_works_on_a_stopped_server() {
    let directory = TempDir::new().unwrap();
    every_command(&Keys(directory.path()));
    every_command_in_words(&Keys(directory.path()));
}

#[test]
fn every_keys_command_works_on_a_running_server() {
    let directory = TempDir::new().unwrap();
    let program = Program::serve(directory.path(), &BUILT_IN);
    program.public();
    every_command(&Keys(directory.path()));
    program.stop().with(0);
}

#[tokio::test]
async fn changes_on_a_stopped_server_apply_when_it_starts() {
    let directory = TempDir::new().unwrap();
    let keys = Keys(directory.path());
    let (kept, key) = keys.create("pro");
    let (revoked, lost) = keys.create("pro");
    keys.run(&["set-tier", &kept, "enterprise"]).with(0);
    keys.run(&["revoke", &revoked]).with(0);
    let program = Program::serve(directory.path(), &BUILT_IN);
    let client = ProgramClient::to(program.public()).await;
    assert_eq!(client.identity(&key).await, Ok(("enterprise".into(), kept)));
    assert_eq!(client.identity(&lost).await, Err("invalid_api_key".into()));
    program.stop().with(0);
}

#[test]
fn an_unknown_application_or_tier_is_a_usage_error() {
    let directory = TempDir::new().unwrap();
    let keys = Keys(directory.path());
    let (id, key) = keys.create("pro");
    let tiers = "free, pro, developer, teams, enterprise";
    for (arguments, remedy) in [
        (&["create", "--name", "n", "--tier", "gold"][..], tiers),
        (&["show", "app_0000000000a"], "keys list"),
        (&["show", "weather"], "app_"),
        (&["revoke", &id, "--key", "sg_live_nope"], "keys show"),
        (&["revoke", &id, "--key", ""], "0 keys"),
        (&["create", "--name", "", "--tier", "pro"], "1 to 200"),
        (
            &[
                "create",
                "--name",
                "n",
                "--tier",
                "pro",
                "--expires-at",
                "soon",
            ],
            "2027-01-31T00:00:00Z",
        ),
        (
            &["rotate", &id, "--expires-at", "2020-01-31T00:00:00Z"],
            "future",
        ),
        (&["set-limits", &id], "minute, day, month"),
        (&["set-limits", &id, "--day", "many"], "`none`"),
        (&["set-limits", &id, "--day", "0"], "at least 1"),
        (&["set-limits", &id, "--month-anchor", "32"], "at most 31"),
        (
            &["set-expiry", &id, "--at", "2020-01-31T00:00:00Z"],
            "revoke it",
        ),
        (&["update", &id], "--name"),
    ] {
        let refused = keys.run(arguments).with(1);
        assert!(
            refused.err.contains(remedy),
            "{arguments:?}: {}",
            refused.err
        );
        assert!(!refused.err.contains(&key));
        assert_eq!(refused.out, "", "{arguments:?}");
    }
    let check_no_leak = run(&["keys", "list", "--data-dir", "/nowhere/at/all"]).with(1);
    assert!(
        check_no_leak.err.contains("/nowhere/at/all") && check_no_leak.err.contains("--data-dir")
    );
}

#[tokio::test]
async fn a_key_can_be_created_before_the_first_start_and_works_after_it() {
    let directory = TempDir::new().unwrap();
    let new = directory.path().join("not/there/yet");
    let (application, key) = Keys(&new).create("pro");
    let program = Program::serve(&new, &BUILT_IN);
    let client = ProgramClient::to(program.public()).await;
    assert_eq!(client.identity(&key).await, Ok(("pro".into(), application)));
    program.stop().with(0);
    let state = directory.path().join("said");
    let create = [
        "keys",
        "create",
        "--name",
        "n",
        "--tier",
        "pro",
        "--data-dir",
        state.to_str().unwrap(),
    ];
    assert!(
        run(&create)
            .with(0)
            .err
            .contains("a new store was created in"),
        "a mistyped path is noticed"
    );
    assert!(
        !run(&create).with(0).err.contains("new store"),
        "the second key uses the store of the first"
    );
}

#[tokio::test]
async fn damaged_limits_are_repaired_by_the_command_that_the_check_prints() {
    let directory = TempDir::new().unwrap();
    let keys = Keys(directory.path());
    let (id, key) = keys.create("pro");
    sql(
        directory.path(),
        "UPDATE applications SET own_limits = '{\"minute\":-1}'",
    );
    let check = [
        "store",
        "check",
        "--data-dir",
        directory.path().to_str().unwrap(),
    ];
    let output = run(&check).with(1).err;
    assert!(
        output.contains(&id) && output.contains("set-limits"),
        "{output}"
    );
    let program = Program::serve(directory.path(), &BUILT_IN);
    let client = ProgramClient::to(program.public()).await;
    assert_eq!(client.identity(&key).await, Err("invalid_api_key".into()));
    keys.run(&["set-limits", &id, "--minute", "none", "--day", "none"])
        .with(0);
    assert_eq!(client.identity(&key).await.unwrap().0, "pro");
    program.stop().with(0);
    run(&check).with(0);
}

#[test]
fn commands_work_in_a_directory_whose_path_is_too_long_for_a_socket() {
    let directory = TempDir::new().unwrap();
    let long = directory.path().join("l".repeat(120));
    std::fs::create_dir(&long).unwrap();
    Keys(&long).create("pro");
}

#[test]
fn a_directory_without_a_store_is_reported_and_not_changed() {
    let directory = TempDir::new().unwrap();
    let keys = Keys(directory.path());
    let id = "app_00000000001";
    for command in [
        &["list"][..],
        &["show", id],
        &["revoke", id],
        &["rotate", id],
        &["audit"],
        &["export"],
    ] {
        let refused = keys.run(command).with(1).err;
        assert!(
            refused.contains("there is no store in") && refused.contains("--data-dir"),
            "{refused}"
        );
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn concurrent_commands_on_a_stopped_server_run_one_after_another() {
    const AT_ONCE: usize = 4;
    let directory = TempDir::new().unwrap();
    let keys = Keys(directory.path());
    let begin = Barrier::new(AT_ONCE);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                begin.wait();
                for _ in 0..3 {
                    keys.create("pro");
                }
            });
        }
    });
    let listed = keys.json(&["list"]);
    assert_eq!(
        listed["applications"].as_array().map(Vec::len),
        Some(3 * AT_ONCE)
    );
}

#[tokio::test]
async fn a_key_whose_record_is_damaged_is_revoked_by_its_id_on_a_running_server() {
    let directory = TempDir::new().unwrap();
    let keys = Keys(directory.path());
    let (id, key) = keys.create("pro");
    let program = Program::serve(directory.path(), &BUILT_IN);
    let client = ProgramClient::to(program.public()).await;
    sql(
        directory.path(),
        "UPDATE applications SET own_limits = '{\"minute\":-1}'",
    );
    assert!(
        client.identity(&key).await.is_ok(),
        "this process still has the undamaged record"
    );
    keys.run(&["revoke", &id, "--key", "sg_live_unknown"])
        .with(1);
    keys.run(&["revoke", &id, "--key", &key]).with(0);
    assert_eq!(client.identity(&key).await, Err("invalid_api_key".into()));
    program.stop().with(0);
}

#[tokio::test]
async fn keys_list_shows_used_units_and_not_leased_units() {
    let directory = TempDir::new().unwrap();
    let keys = Keys(directory.path());
    let (_, key) = keys.create("pro");
    let running = Program::serve(directory.path(), &BUILT_IN);
    let client = ProgramClient::to(running.public()).await;
    for _ in 0..3 {
        assert_eq!(
            client
                .get("/api/v1/models?period=24h", &key)
                .send()
                .await
                .status,
            200
        );
    }
    let listed = keys.json(&["list"]);
    let one = &listed["applications"][0];
    assert_eq!(one["used_today"], 3);
    assert!(
        one["granted_today"].as_u64().unwrap() > 3,
        "units are leased in advance: {one}"
    );
    let row = keys.run(&["list"]).with(0);
    let today = row
        .out
        .lines()
        .nth(1)
        .unwrap()
        .split_whitespace()
        .nth(3)
        .map(str::to_owned);
    assert_eq!((today.as_deref(), row.err.as_str()), (Some("3"), ""));
    running.stop().with(0);
    let stopped = keys.json(&["list"]);
    assert_eq!(
        (
            &stopped["applications"][0]["used_today"],
            &stopped["applications"][0]["granted_today"]
        ),
        (&Value::Null, &3.into())
    );
    let output = keys.run(&["list"]).with(0);
    assert!(
        output.err.contains("no server is running"),
        "{}",
        output.err
    );
}
