//! Upgrades from each release: what remains of its data, its settings and its commands, and what a rollback finds.
//!
//! How the fixtures were made is in `releases/README.md`.

mod commands;
mod releases;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use scoregate_store::Embedded;
use serde_json::Value;
use tempfile::TempDir;

use crate::fake_clock::FakeClock;
use crate::load_clients::{Reply, Wire};
use crate::program::{Keys, Program, run, sql_on};

use releases::{Release, lost_rows};

const TARGET: &str = "/api/v1/models?period=24h";
/// The two states in which a release left its data.
const STATES: [&str; 2] = ["clean", "killed"];
/// Fields of the audit trail that have other names in later releases.
const RENAMED_FIELDS: [(&str, &str); 2] = [("who", "actor"), ("what", "action")];

/// Whether everything that the old value has is in the new one.
fn contains(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => old.iter().all(|(name, value)| {
            let renamed = RENAMED_FIELDS
                .iter()
                .find(|(old, _)| old == name)
                .map(|(_, new)| *new);
            let found = new.get(name).or_else(|| new.get(renamed?));
            found.map_or(value.is_null(), |found| contains(found, value))
        }),
        (Value::Array(new), Value::Array(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| contains(new, old))
        }
        _ => new == old,
    }
}

fn json(address: SocketAddr, target: &str, fields: &str) -> Value {
    let reply = Wire::open(address).unwrap().send(target, fields);
    let Reply::Response {
        status: 200, body, ..
    } = reply
    else {
        panic!("{target}: {reply:?}")
    };
    serde_json::from_str(&body).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// A server of this release on the data of an older one.
struct Upgraded<'r> {
    release: &'r Release,
    state: &'static str,
    directory: TempDir,
    program: Program,
    address: SocketAddr,
    /// The program reads its file.
    _clock: FakeClock,
}

impl<'r> Upgraded<'r> {
    fn new(release: &'r Release, state: &'static str) -> Self {
        let directory = release.data(state);
        let settings = release.settings(&["scoregate.toml"]);
        let clock = release.clock();
        let program = settings.serve(directory.path(), &clock);
        let address = program.public();
        Self {
            release,
            state,
            directory,
            program,
            address,
            _clock: clock,
        }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join(Embedded::FILE_NAME)
    }

    fn statements(&self) -> String {
        self.release.text(&format!("{}.sql", self.state))
    }

    /// The remaining units of the day, and the daily quota, by `/me`.
    fn day(&self, key: &str) -> [u64; 2] {
        let me = json(self.address, "/api/v1/me", &format!("X-API-Key: {key}\r\n"));
        let day = me["data"][0]["limits"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["name"] == "day")
            .unwrap();
        ["remaining", "limit"].map(|field| day[field].as_u64().unwrap())
    }

    fn id(&self, key: &str) -> String {
        let me = json(self.address, "/api/v1/me", &format!("X-API-Key: {key}\r\n"));
        text(&me["data"][0]["application"]["id"]).to_owned()
    }

    fn applications_and_their_history_remain(&self) {
        let expected = &self.release.expected;
        let listed = &Keys(self.directory.path()).json(&["list"])["applications"];
        let old = &expected[self.state];
        assert!(contains(listed, old), "{listed:#}\n{old:#}");
        let audit = &Keys(self.directory.path()).json(&["audit"])["records"];
        assert!(contains(audit, &expected["audit"]), "{audit:#}");
        // Sign-in links and queued mail are removed once they have expired.
        let kept = [
            "applications",
            "keys",
            "audit",
            "ledger",
            "usage_days",
            "request_days",
            "owners",
            "owned_applications",
            "owner_sessions",
        ];
        assert_eq!(
            lost_rows(&self.statements(), &self.file(), &kept),
            "",
            "{}",
            self.state
        );
    }

    fn the_units_of_the_day_remain(&self) {
        let spent = self.release.expected["spent"].as_object().unwrap();
        let mut by_application: BTreeMap<String, u64> = BTreeMap::new();
        let is_expired = |key: &String| self.release.expected["refused"].get(key).is_some();
        for (key, units) in spent.iter().filter(|(key, _)| !is_expired(key)) {
            *by_application.entry(self.id(key)).or_default() += units.as_u64().unwrap();
        }
        for old in self.release.expected[self.state].as_array().unwrap() {
            let id = text(&old["id"]);
            let Some(key) = spent
                .keys()
                .find(|key| !is_expired(key) && self.id(key) == id)
            else {
                continue;
            };
            let granted = old["granted_today"].as_u64().unwrap();
            let [remaining, quota] = self.day(key);
            assert_eq!(remaining, quota - granted, "{old:#}");
            // A kill costs at most a lease; a stop costs nothing.
            let spent = by_application[id];
            assert!(
                granted == spent || self.state == "killed" && granted > spent,
                "{granted} of {spent}: {old:#}"
            );
        }
    }

    fn keys_answer_as_before(&self) {
        let expected = &self.release.expected;
        let answer = |key: &str| {
            Wire::open(self.address)
                .unwrap()
                .get(TARGET, key)
                .status_and_code()
        };
        for (key, code) in expected["refused"].as_object().unwrap() {
            assert_eq!(answer(key), (401, text(code).to_owned()));
        }
        // The backend is gone: this is a stored document, and each response costs a unit.
        let (status, cost) = if self.release.has_other_mappings() {
            (503, 0)
        } else {
            (200, 1)
        };
        for key in expected["spent"].as_object().unwrap().keys() {
            if expected["refused"].get(key).is_some() {
                continue;
            }
            let [mut left, quota] = self.day(key);
            assert_eq!(answer(key).0, status);
            left -= cost;
            assert_eq!(self.day(key)[0], left);
            while quota == 20 && cost == 1 && left > 0 {
                assert_eq!(answer(key).0, 200);
                left -= 1;
            }
            if quota == 20 && cost == 1 {
                assert_eq!(answer(key), (429, "quota_exceeded".into()));
            }
        }
    }

    fn sessions_remain(&self) {
        let account = &self.release.expected["account"];
        if let Some(cookies) = account["cookies"].as_object() {
            let pairs: Vec<String> = cookies
                .iter()
                .map(|(name, value)| format!("{name}={}", text(value)))
                .collect();
            let cookies = format!("Cookie: {}\r\n", pairs.join("; "));
            let page = Wire::open(self.address).unwrap().send("/account", &cookies);
            let Reply::Response {
                status: 200, body, ..
            } = page
            else {
                panic!("{page:?}")
            };
            assert!(
                body.contains(text(&account["email"])) && body.contains("Dashboard"),
                "{body}"
            );
        }
    }

    /// What the documentation promises for a rollback: a copy of the file as the release left it, and a newer file that the
    /// release rejects.
    fn a_rollback_finds_a_complete_copy(&self) {
        let statements = self.statements();
        let format = |statements: &str| {
            let (_, rest) = statements.split_once("PRAGMA user_version = ").unwrap();
            rest.split(';').next().unwrap().to_owned()
        };
        let old = format(&statements);
        let new = sql_on(&self.file(), "PRAGMA user_version").unwrap();
        if old == new.trim() {
            return;
        }
        let copy = self
            .directory
            .path()
            .join(format!("scoregate.db.v{old}.bak"));
        assert!(old.parse::<u32>().unwrap() < new.trim().parse().unwrap());
        assert_eq!(sql_on(&copy, "PRAGMA user_version").unwrap().trim(), old);
        assert_eq!(lost_rows(&statements, &copy, &[]), "", "{}", self.state);
    }

    fn the_archive_remains(&self) {
        let archive = self.directory.path().join("runs.db");
        let exported = run(&["scoring", "export", "--archive", archive.to_str().unwrap()])
            .with(0)
            .out;
        let mut lines = exported
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        assert!(
            lines
                .next()
                .is_some_and(|table: Value| table["suites"].is_array()),
            "{exported}"
        );
        let runs: Vec<Value> = lines.collect();
        assert!(
            contains(&runs.into(), &self.release.expected["runs"]),
            "{exported}"
        );
    }

    fn the_store_has_no_errors(self) {
        self.program.stop().with(0);
        let data_dir = self.directory.path().to_str().unwrap();
        run(&["store", "check", "--data-dir", data_dir]).with(0);
    }
}

#[test]
fn an_upgrade_keeps_keys_units_usage_accounts_documents_runs_and_a_copy_for_a_rollback() {
    needs!("libfaketime");
    let releases = Release::all();
    assert!(releases.len() >= 2);
    for release in &releases {
        for state in STATES {
            let upgraded = Upgraded::new(release, state);
            upgraded.applications_and_their_history_remain();
            upgraded.the_units_of_the_day_remain();
            upgraded.keys_answer_as_before();
            upgraded.sessions_remain();
            upgraded.a_rollback_finds_a_complete_copy();
            upgraded.the_archive_remains();
            upgraded.the_store_has_no_errors();
        }
    }
}

#[test]
fn old_settings_are_refused_with_all_new_names_and_are_the_same_after_the_advice() {
    needs!("libfaketime");
    for release in Release::all() {
        let directory = release.data("clean");
        let settings = release.settings(&["scoregate.toml", "mapping.toml"]);
        let clock = release.clock();
        let program = settings.serve(directory.path(), &clock);
        let bearer = "Authorization: Bearer a token of a fixture\r\n";
        let shown = &json(program.ports().1, "/v1/settings", bearer)["settings"];
        let renamed = |old: &str| {
            settings
                .renamed
                .get(old)
                .cloned()
                .unwrap_or_else(|| old.to_owned())
        };
        for old in release.expected["settings"].as_array().unwrap() {
            let path = renamed(text(&old["path"]));
            let from = text(&old["from"]);
            let variable = from.strip_prefix("environment ").map(renamed);
            let from =
                variable.map_or_else(|| from.to_owned(), |name| format!("environment {name}"));
            // A variable has a path whose new name is not in the advice.
            let is_variable = from.starts_with("environment ");
            let is_it =
                |one: &&Value| one["from"] == *from && (is_variable || one["path"] == *path);
            let found = shown.as_array().unwrap().iter().find(is_it);
            let found = found.unwrap_or_else(|| panic!("{old}: no {path} in {shown:#}"));
            assert_eq!(found["value"], old["value"], "{path}");
        }
        program.stop().with(0);
    }
}
