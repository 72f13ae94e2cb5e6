//! `scoregate accounts`: the same commands on a running and on a stopped server.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{BUILT_IN, CommandOutput, Keys, Program, ProgramClient, run, sql};

pub const ANN: &str = "own_0000000000A";
pub const BOB: &str = "own_0000000000B";

/// `scoregate accounts` for one data directory.
pub struct Accounts<'d>(pub &'d Path);

impl Accounts<'_> {
    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        run(&[
            &["accounts"],
            arguments,
            &["--data-dir", self.0.to_str().unwrap()],
        ]
        .concat())
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        self.run(&[arguments, &["--json"]].concat()).with(0).json()
    }

    fn ids(&self, arguments: &[&str]) -> Vec<String> {
        let listed = self.json(&[&["list"], arguments].concat());
        let accounts = listed["accounts"].as_array().unwrap().iter();
        accounts
            .map(|account| account["id"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// Two accounts in the state after sign-up. The first one owns these applications.
pub fn plant(directory: &Path, applications: &[&str]) {
    for (id, email) in [(ANN, "Ann+x@example.org"), (BOB, "bob@example.com")] {
        let row = format!(
            "'{id}', '{email}', '{email}', 1763726400000, '1', 1763726400000, NULL, NULL, NULL, NULL"
        );
        sql(directory, &format!("INSERT INTO owners VALUES ({row})"));
    }
    for application in applications {
        sql(
            directory,
            &format!("INSERT INTO owned_applications VALUES ('{application}', '{ANN}')"),
        );
    }
}

#[tokio::test]
async fn a_suspended_account_has_no_valid_key_at_once() {
    let directory = TempDir::new().unwrap();
    let keys = Keys(directory.path());
    let accounts = Accounts(directory.path());
    let (first, key) = keys.create("free");
    let (second, other) = keys.create("free");
    let (_, unowned) = keys.create("free");
    plant(directory.path(), &[&first, &second]);
    let program = Program::serve(directory.path(), &BUILT_IN);
    let client = ProgramClient::to(program.public()).await;
    assert_eq!(accounts.json(&["set-tier", ANN, "pro"])["tier"], "pro");
    assert_eq!(client.identity(&key).await, Ok(("pro".into(), first)));
    let unknown = accounts.run(&["set-tier", ANN, "gold"]).with(1);
    assert!(unknown.err.contains("the tiers are"), "{}", unknown.err);

    assert!(!accounts.json(&["suspend", ANN])["suspended_at"].is_null());
    for key in [&key, &other] {
        assert_eq!(client.identity(key).await, Err("invalid_api_key".into()));
    }
    assert!(client.identity(&unowned).await.is_ok());
    assert!(accounts.json(&["resume", ANN])["suspended_at"].is_null());
    assert_eq!(
        client.identity(&key).await,
        Err("invalid_api_key".into()),
        "keys stay revoked"
    );
    let new = keys.json(&["rotate", &second])["key"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(client.identity(&new).await, Ok(("pro".into(), second)));
    assert_eq!(
        accounts.json(&["set-tier", ANN, "--default"])["tier"],
        Value::Null
    );
    assert_eq!(
        client.identity(&new).await.unwrap().0,
        "pro",
        "existing applications keep their tier"
    );

    assert_eq!(accounts.ids(&["--email", "o'brien%"]), Vec::<String>::new());
    assert_eq!(accounts.ids(&["--email", "Ann+x@"]), [ANN]);
    let exported = accounts.run(&["export", ANN]).with(0).json();
    assert!(
        exported["requests"].is_array() && exported["evidence"].is_array(),
        "{exported}"
    );
    assert_eq!(exported["webhooks"], json!([]));
    let deleted = accounts.run(&["delete", ANN]).with(0);
    assert!(
        deleted.out.contains("deleted") && !deleted.out.contains("active"),
        "{}",
        deleted.out
    );
    assert_eq!(client.identity(&new).await, Err("invalid_api_key".into()));
    assert_eq!(accounts.ids(&[]), [BOB]);
    program.stop().with(0);
}

#[test]
fn accounts_are_found_exported_and_deleted_on_a_stopped_server() {
    let directory = TempDir::new().unwrap();
    let keys = Keys(directory.path());
    let accounts = Accounts(directory.path());
    let (id, _) = keys.create("free");
    keys.run(&[
        "update",
        &id,
        "--name",
        "Ann's site",
        "--contact",
        "ann@example.org",
    ])
    .with(0);
    plant(directory.path(), &[&id]);
    assert_eq!(accounts.ids(&[]), [ANN, BOB]);
    assert_eq!(accounts.ids(&["--email", "ann+X@"]), [ANN]);
    assert_eq!(accounts.ids(&["--email", "example"]), [ANN, BOB]);
    sql(
        directory.path(),
        &format!("UPDATE owners SET email = 'o''b%rien@x.example' WHERE id = '{BOB}'"),
    );
    assert_eq!(accounts.ids(&["--email", "O'B%R"]), [BOB]);
    assert_eq!(accounts.ids(&["--application", &id]), [ANN]);
    assert_eq!(accounts.ids(&["--after", ANN]), [BOB]);
    let page = accounts.run(&["list", "--limit", "1"]).with(0);
    assert!(
        page.out.contains("Ann+x@example.org") && !page.out.contains("bob@"),
        "{}",
        page.out
    );
    assert!(page.err.contains(&format!("--after {ANN}")), "{}", page.err);

    sql(
        directory.path(),
        &format!("UPDATE owners SET notices = 'quota_80,new_sign_in' WHERE id = '{ANN}'"),
    );
    let shown = accounts.run(&["show", ANN]).with(0).out;
    assert!(shown.contains("quota_80 new_sign_in"), "{shown}");
    let day = "date('now'), ?, 'models', 'ok', 7".replace('?', &format!("'{id}'"));
    sql(
        directory.path(),
        &format!("INSERT INTO request_days VALUES ({day})"),
    );
    let exported = accounts.run(&["export", ANN]).with(0).json();
    let requests = exported["requests"].as_array().unwrap();
    assert_eq!(requests.len(), 1, "{exported}");
    assert_eq!(
        exported["evidence"],
        json!([{ "application": id, "days": [] }])
    );
    for (field, value) in [
        ("application", json!(id)),
        ("endpoint", json!("models")),
        ("outcome", json!("ok")),
    ] {
        assert_eq!(requests[0][field], value);
    }
    assert_eq!(requests[0]["requests"], 7);
    assert_eq!(exported["account"]["email"], "Ann+x@example.org");
    assert_eq!(
        exported["account"]["notices"],
        json!(["quota_80", "new_sign_in"])
    );
    assert_eq!(exported["account"]["applications"], json!([id]));
    assert_eq!(exported["applications"][0]["contact"], "ann@example.org");
    let actions = exported["audit"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["action"].clone());
    assert_eq!(actions.collect::<Vec<_>>(), ["describe", "create"]);

    accounts.run(&["delete", ANN]).with(0);
    let gone = accounts.run(&["show", ANN]).with(1);
    assert!(
        gone.err.contains("`scoregate accounts list` lists all"),
        "{}",
        gone.err
    );
    let shown = keys.json(&["show", &id]);
    assert_eq!(
        (&shown["name"], &shown["contact"]),
        (&json!("closed"), &Value::Null)
    );
    assert!(!shown["keys"][0]["revoked_at"].is_null());
    let tables = "SELECT 'SELECT * FROM ' || name || ';' FROM sqlite_schema WHERE type = 'table'";
    let everything = sql(directory.path(), &sql(directory.path(), tables));
    for personal in ["Ann", "ann@", "ann+"] {
        assert!(!everything.contains(personal), "{personal} in {everything}");
    }
    let newest = keys.json(&["audit", "--limit", "2"]);
    assert_eq!(newest["records"][0]["action"], "delete_account");
    assert_eq!(newest["records"][1]["action"], "close");
}

#[test]
fn limits_of_an_account_are_set_for_its_applications_and_taken_back() {
    let directory = TempDir::new().unwrap();
    let keys = Keys(directory.path());
    let accounts = Accounts(directory.path());
    let (id, _) = keys.create("pro");
    plant(directory.path(), &[&id]);
    let limits = ["--owner-day", "40", "--owner-month", "900"];
    let limited = accounts.json(&[&["set-limits", ANN], &limits[..]].concat());
    let pool = json!({"owner_day": 40, "owner_month": 900});
    assert_eq!(limited["own_limits"], pool);
    assert_eq!(keys.json(&["show", &id])["own_limits"], pool);
    let back = accounts.run(&["set-limits", ANN, "--owner-day", "none"]);
    assert!(back.with(0).out.contains("{\"owner_month\":900}"));
    let left = json!({"owner_month": 900});
    assert_eq!(keys.json(&["show", &id])["own_limits"], left);
    for (arguments, words) in [
        (&["set-limits", ANN][..], "owner_day, owner_month"),
        (&["set-limits", ANN, "--owner-day", "0"], "at least 1"),
        (&["set-limits", ANN, "--day", "5"], "--day"),
    ] {
        let refused = accounts.run(arguments).with(1).err;
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn a_wrong_account_command_is_a_usage_error() {
    let directory = TempDir::new().unwrap();
    let accounts = Accounts(directory.path());
    Keys(directory.path()).create("free");
    for (arguments, words) in [
        (&["show", "app_0000000000A"][..], "`own_` and eleven"),
        (&["suspend", ANN], "there is no account"),
        (&["delete", ANN], "there is no account"),
        (&["set-tier", ANN], "<TIER|--default>"),
        (
            &["set-tier", ANN, "pro", "--default"],
            "cannot be used with",
        ),
        (&["list", "--email", "a b"], "part of an email address"),
    ] {
        let refused = accounts.run(arguments).with(1);
        assert!(
            refused.err.contains(words),
            "{arguments:?}: {}",
            refused.err
        );
    }
}
