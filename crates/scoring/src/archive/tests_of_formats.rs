//! Archives of older formats: their runs are read unchanged, and older programs reject the upgraded file as newer.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Connection;
use tempfile::TempDir;

use crate::SuiteTable;

use super::tests::{in_, models, now, record, records};
use super::*;
use crate::run::{IdentifiedRun, Run, RunFailure, RunOutcome, Trial};

/// The layout of format 1, as method 2.0 made it.
const FORMAT_1: &str = "
    PRAGMA page_size = 16384;
    PRAGMA application_id = 0x7367526E;
    PRAGMA user_version = 1;
    CREATE TABLE model (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE description (
        number INTEGER PRIMARY KEY,
        model INTEGER NOT NULL,
        name TEXT NOT NULL,
        provider TEXT NOT NULL,
        price_input REAL,
        price_output REAL
    ) STRICT;
    CREATE INDEX description_of ON description (model, name);
    CREATE TABLE run (
        model INTEGER NOT NULL,
        at_ms INTEGER NOT NULL,
        id TEXT NOT NULL,
        suite INTEGER NOT NULL,
        description INTEGER NOT NULL,
        trials BLOB,
        failed_trials BLOB,
        failure INTEGER,
        detail TEXT,
        PRIMARY KEY (model, at_ms, id)
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX run_id ON run (id);
    CREATE TABLE day (number INTEGER PRIMARY KEY, sum BLOB NOT NULL) STRICT;
    CREATE TABLE unsummed (number INTEGER PRIMARY KEY) STRICT;
    CREATE TABLE summed_by (method TEXT NOT NULL) STRICT;
    CREATE TABLE last_import (only INTEGER PRIMARY KEY CHECK (only = 1), at_ms INTEGER NOT NULL) STRICT;
    INSERT INTO summed_by VALUES ('2.0 5');
";

/// The file of format 1 with these runs.
fn format_1(place: &TempDir, records: &[IdentifiedRun]) -> PathBuf {
    let path = place.path().join("runs.db");
    let mut file = Connection::open(&path).unwrap();
    file.execute_batch(FORMAT_1).unwrap();
    let file = file.transaction().unwrap();
    for record in records {
        let run = &record.run;
        let model = record.run.model();
        let id = model.id().as_str();
        file.execute("INSERT OR IGNORE INTO model (id) VALUES (?1)", [id])
            .unwrap();
        let number: i64 = file
            .query_row("SELECT number FROM model WHERE id = ?1", [id], |row| {
                row.get(0)
            })
            .unwrap();
        let described = (
            number,
            model.name(),
            model.provider(),
            model.price_input(),
            model.price_output(),
        );
        file.execute(
            "INSERT OR IGNORE INTO description VALUES (?1, ?1, ?2, ?3, ?4, ?5)",
            described,
        )
        .unwrap();
        let at = i64::try_from(run.at().millis()).unwrap();
        let suite = ["coding", "reasoning", "tooling"]
            .iter()
            .zip(0_i64..)
            .find(|(name, _)| **name == run.suite().name());
        let suite = suite.unwrap().1;
        let (trials, failure) = match run.outcome() {
            RunOutcome::Scored(trials) => {
                let numbers = trials.iter().flat_map(|trial| {
                    trial
                        .scores()
                        .iter()
                        .copied()
                        .chain([trial.latency_ms(), trial.cost()])
                });
                (
                    Some(
                        numbers
                            .flat_map(|number| number.unwrap().to_le_bytes())
                            .collect::<Vec<u8>>(),
                    ),
                    None,
                )
            }
            RunOutcome::Failed(failure) => (None, Some(code(*failure))),
        };
        let failed: Vec<u8> = run
            .failed_trials()
            .iter()
            .map(|failure| code(*failure))
            .collect();
        let failed = Some(failed).filter(|failed| !failed.is_empty());
        file.execute(
            "INSERT INTO run VALUES (?1, ?2, ?3, ?4, ?1, ?5, ?6, ?7, ?8)",
            (
                number,
                at,
                record.id.as_str(),
                suite,
                trials,
                failed,
                failure,
                &record.detail,
            ),
        )
        .unwrap();
        let day = number * 1_000_000 + at / 86_400_000;
        file.execute("INSERT OR IGNORE INTO day VALUES (?1, x'00')", [day])
            .unwrap();
    }
    file.commit().unwrap();
    path
}

/// The number of a failure in format 1.
fn code(failure: RunFailure) -> u8 {
    match failure {
        RunFailure::Timeout => 0,
        RunFailure::Throttled => 1,
        RunFailure::Unreachable => 2,
        RunFailure::Unusable => 3,
        RunFailure::Harness => panic!("format 1 does not have it"),
    }
}

fn version(path: &Path) -> i32 {
    Connection::open(path)
        .unwrap()
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

/// Runs with failures of every kind that format 1 has.
fn older_records() -> Vec<IdentifiedRun> {
    let mut records = records(72);
    let kinds = [
        RunFailure::Timeout,
        RunFailure::Throttled,
        RunFailure::Unreachable,
        RunFailure::Unusable,
    ];
    for (record, failure) in records
        .iter_mut()
        .step_by(31)
        .zip(kinds.into_iter().cycle())
    {
        let run = &record.run;
        let model = Arc::clone(run.model());
        let suite = run.suite();
        let outcome = run.outcome().clone();
        let failed = match &outcome {
            RunOutcome::Scored(_) => kinds.to_vec(),
            RunOutcome::Failed(_) => Vec::new(),
        };
        record.run = Run::with_failed_trials(model, suite, run.at(), outcome, failed).unwrap();
        record.detail =
            matches!(record.run.outcome(), RunOutcome::Failed(_)).then(|| format!("{failure:?}"));
    }
    records
}

#[test]
fn an_archive_of_format_1_is_upgraded_and_its_runs_are_read_unchanged() {
    let place = TempDir::new().unwrap();
    let mut expected = older_records();
    let path = format_1(&place, &expected);
    assert_eq!(version(&path), 1);
    let archive = in_(&place);
    assert_eq!(version(&path), 2);
    let mut found = Vec::new();
    archive
        .each_run(&mut |record| {
            found.push(record);
            true
        })
        .unwrap();
    for records in [&mut found, &mut expected] {
        records.sort_by(|a, b| a.id.cmp(&b.id));
    }
    assert_eq!(found, expected);
    let elsewhere = TempDir::new().unwrap();
    let new = in_(&elsewhere);
    new.take(&expected).unwrap();
    new.sum_up(now()).unwrap();
    // Opened once more: an upgraded archive.
    drop(archive);
    assert_eq!(models(in_(&place), now()), models(new, now()));
    assert!(
        in_(&place)
            .take(&expected)
            .unwrap()
            .iter()
            .all(|taken| *taken == RunInsertion::AlreadyThere)
    );
}

#[test]
fn an_upgrade_that_fails_leaves_the_archive_in_format_1() {
    let place = TempDir::new().unwrap();
    let path = format_1(&place, &older_records());
    // The triggers of the table cannot be added to a view.
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE VIEW audit AS SELECT 1 AS number")
        .unwrap();
    let error = Archive::open(&path, now()).unwrap_err().to_string();
    assert!(error.contains("cannot be used"), "{error}");
    assert_eq!(version(&path), 1);
    let file = Connection::open(&path).unwrap();
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name IN ('withdrawn', 'suite')";
    assert_eq!(
        file.query_row(tables, [], |row| row.get::<_, i64>(0))
            .unwrap(),
        0
    );
    file.execute_batch("DROP VIEW audit").unwrap();
    drop(file);
    assert!(!in_(&place).is_empty().unwrap());
    assert_eq!(version(&path), 2);
}

#[test]
fn processes_that_open_an_old_archive_together_upgrade_it_once() {
    let place = TempDir::new().unwrap();
    let path = format_1(&place, &older_records());
    let ready = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                ready.wait();
                assert!(!in_(&place).is_empty().unwrap());
            });
        }
    });
    assert_eq!(version(&path), 2);
    assert_eq!(*in_(&place).suites().unwrap(), SuiteTable::default());
}

#[test]
fn runs_whose_numbers_an_older_version_read_without_all_digits_are_known() {
    let place = TempDir::new().unwrap();
    let archive = in_(&place);
    let like = records(1).remove(0).run;
    let one = |last_places: u64| {
        let number = f64::from_bits(0.123_456_789_012_345_67_f64.to_bits() + last_places);
        let trial = Trial::new([number; 7], 4_200.0, None).unwrap();
        let outcome = RunOutcome::Scored(vec![trial]);
        let run = Run::new(Arc::clone(like.model()), like.suite(), like.at(), outcome).unwrap();
        record("r", run)
    };
    assert_eq!(archive.take(&[one(0)]).unwrap(), [RunInsertion::New]);
    let again = archive.take(&[one(1), one(2), one(3)]).unwrap();
    assert_eq!(
        again,
        [
            RunInsertion::AlreadyThere,
            RunInsertion::AlreadyThere,
            RunInsertion::OtherContent
        ]
    );
}
