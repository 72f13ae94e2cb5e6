//! The fixtures in `releases/`, restored as the releases left them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use rusqlite::Connection;
use scoregate_base::clock::{Clock, Wall};
use scoregate_store::Embedded;
use serde_json::Value;
use tempfile::TempDir;

use crate::fake_clock::FakeClock;
use crate::program::{CommandOutput, Program, run_with, sql_on};

/// A release.
pub(super) struct Release {
    path: PathBuf,
    /// What it said about its data.
    pub(super) expected: Value,
}

/// Settings of a release after the advice of the program.
pub(super) struct Settings {
    directory: TempDir,
    pub(super) variables: BTreeMap<String, String>,
    /// New names of settings and variables.
    pub(super) renamed: BTreeMap<String, String>,
}

impl Release {
    /// Every folder of `releases/` is one.
    pub(super) fn all() -> Vec<Self> {
        let releases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/upgrades/releases");
        let paths = fs::read_dir(releases)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let releases = paths.filter(|path| path.is_dir()).map(|path| {
            let expected = fs::read_to_string(path.join("expected.json")).unwrap();
            Self {
                path,
                expected: serde_json::from_str(&expected).unwrap(),
            }
        });
        releases.collect()
    }

    /// Whether its stored documents have an older fingerprint of the mapping, so that they are fetched again.
    pub(super) fn has_other_mappings(&self) -> bool {
        self.path.ends_with("5844e98")
    }

    pub(super) fn text(&self, file: &str) -> String {
        fs::read_to_string(self.path.join(file)).unwrap()
    }

    /// Its data directory after a stop, or after a kill.
    pub(super) fn data(&self, state: &str) -> TempDir {
        let directory = TempDir::new().unwrap();
        let path = directory.path();
        restore(
            &self.text(&format!("{state}.sql")),
            &path.join(Embedded::FILE_NAME),
        );
        restore(&self.text("runs.sql"), &path.join("runs.db"));
        if state == "killed" {
            drop(std::os::unix::net::UnixListener::bind(path.join("scoregate.sock")).unwrap());
        }
        fs::write(path.join("scoregate.lock"), "").unwrap();
        let documents: BTreeMap<String, String> =
            serde_json::from_str(&self.text("documents.json")).unwrap();
        fs::create_dir(path.join("documents")).unwrap();
        for (name, content) in documents {
            fs::write(
                path.join("documents").join(name),
                BASE64.decode(content.as_bytes()).unwrap(),
            )
            .unwrap();
        }
        directory
    }

    /// A clock that shows a later time of its last day.
    pub(super) fn clock(&self) -> FakeClock {
        let at = Wall::parse_rfc3339(self.expected["at"].as_str().unwrap())
            .unwrap()
            .millis();
        let seconds = |millis: u64| i64::try_from(millis / 1_000).unwrap();
        FakeClock::new(seconds(at) - seconds(Clock::system().now().wall.millis()))
    }

    /// Its settings, renamed by the advice of one error. The files are parts of one.
    pub(super) fn settings(&self, files: &[&str]) -> Settings {
        let directory = TempDir::new().unwrap();
        let parts: Vec<String> = files.iter().map(|file| self.text(file)).collect();
        fs::write(directory.path().join("scoregate.toml"), parts.join("\n")).unwrap();
        let lines = self.text("environment");
        let variables = lines.lines().map(|line| line.split_once('=').unwrap());
        let variables = variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut settings = Settings {
            directory,
            variables,
            renamed: BTreeMap::new(),
        };
        let refused = settings.check();
        if refused.code != Some(0) {
            settings.rename(&refused.err);
            settings.check().with(0);
        }
        settings
    }
}

impl Settings {
    fn file(&self) -> String {
        self.directory
            .path()
            .join("scoregate.toml")
            .display()
            .to_string()
    }

    fn check(&self) -> CommandOutput {
        let variables = pairs(&self.variables);
        let checked = run_with(&["check", "--config", &self.file()], &variables);
        if checked.code != Some(0) {
            let data_dir = TempDir::new().unwrap();
            let place = [
                "--config",
                &self.file(),
                "--data-dir",
                data_dir.path().to_str().unwrap(),
            ];
            let served = run_with(&[&["serve"], &place[..]].concat(), &variables).with(1);
            assert_eq!(
                renames(&served.err),
                renames(&checked.err),
                "{}",
                served.err
            );
        }
        checked
    }

    fn rename(&mut self, advice: &str) {
        let mut text = fs::read_to_string(self.file()).unwrap();
        self.renamed = renames(advice);
        for (old, new) in &self.renamed {
            match self.variables.remove(old) {
                Some(value) => drop(self.variables.insert(new.clone(), value)),
                None => text = renamed_in(&text, old, new),
            }
        }
        fs::write(self.file(), text).unwrap();
    }

    /// A server with these settings on a data directory.
    pub(super) fn serve(&self, data_dir: &Path, clock: &FakeClock) -> Program {
        let free = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
            "--data-dir",
        ];
        let place = [data_dir.to_str().unwrap(), "--config", &self.file()];
        let clock = clock.environment();
        let clock = clock
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let environment: Vec<_> = pairs(&self.variables).into_iter().chain(clock).collect();
        Program::start(&[&free[..], &place].concat(), &environment)
    }
}

fn pairs(variables: &BTreeMap<String, String>) -> Vec<(&str, &str)> {
    variables
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

/// Old and new names in an error.
fn renames(advice: &str) -> BTreeMap<String, String> {
    let rename = |line: &str| {
        let line = line.strip_prefix("error: ").unwrap_or(line);
        let (old, rest) = line.split_once(": ")?;
        let new = rest
            .split_once("this setting was renamed: write `")
            .map(|(_, new)| new.trim_end_matches('`'));
        let new = new.or_else(|| rest.strip_prefix("this variable was renamed: set "))?;
        Some((old.to_owned(), new.to_owned()))
    };
    advice.lines().filter_map(rename).collect()
}

/// A configuration file with another name for one setting.
fn renamed_in(text: &str, old: &str, new: &str) -> String {
    let (table, old) = old.rsplit_once('.').unwrap();
    let (same_table, new) = new.rsplit_once('.').unwrap();
    assert_eq!(table, same_table);
    let mut here = String::new();
    let mut is_found = false;
    let mut renamed = String::new();
    for line in text.lines() {
        if line.starts_with('[') {
            line.clone_into(&mut here);
        }
        let value = line
            .strip_prefix(&format!("{old} = "))
            .filter(|_| here == format!("[{table}]"));
        is_found |= value.is_some();
        renamed += &value.map_or_else(|| line.to_owned(), |value| format!("{new} = {value}"));
        renamed.push('\n');
    }
    assert!(is_found, "{table}.{old}");
    renamed
}

/// Restores a database from its statements, all of it in the write-ahead log: so a kill leaves it.
pub(super) fn restore(statements: &str, file: &Path) {
    let scratch = TempDir::new().unwrap();
    let from = scratch.path().join("db");
    let connection = Connection::open(&from).unwrap();
    let settings = "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;";
    connection
        .execute_batch(&format!("{settings}{statements}"))
        .unwrap();
    for suffix in ["", "-wal"] {
        let with_suffix = |path: &Path| format!("{}{suffix}", path.display());
        fs::copy(with_suffix(&from), with_suffix(file)).unwrap();
    }
}

/// Rows that a database lacks of those that these statements made, and the names of the other tables.
pub(super) fn lost_rows(statements: &str, file: &Path, tables: &[&str]) -> String {
    let scratch = TempDir::new().unwrap();
    let original = scratch.path().join("db");
    restore(statements, &original);
    let names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let names = sql_on(&original, names).unwrap();
    let mut lost = String::new();
    for table in names
        .lines()
        .filter(|name| tables.is_empty() || tables.contains(name))
    {
        let columns = format!("SELECT group_concat(name) FROM pragma_table_info('{table}')");
        let columns = sql_on(&original, &columns).unwrap();
        let rows = format!(
            "ATTACH '{}' AS original; SELECT '{table}', * FROM (SELECT {columns} FROM original.{table} \
             EXCEPT SELECT {columns} FROM main.{table})",
            original.display()
        );
        lost += &sql_on(file, &rows).unwrap();
    }
    lost
}
