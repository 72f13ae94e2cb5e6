//! The guarantees of the archive: nothing is stored twice or partially, and scores do not depend on the order of
//! imports.
//!
//! Killed processes are tested in the suite.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tempfile::TempDir;

use crate::SuiteTable;
use scoregate_base::clock::Wall;
use scoregate_base::routes::{DocumentKey, Period, Route, SortBy};

use super::*;
use crate::hour::{Hour, HourRange};
use crate::run::IdentifiedRun;
use crate::run::{Run, RunFailure, RunId, RunOutcome, Trial};
use crate::simulate;
use crate::suite::Suite;
use crate::{Change, RunSource, Scoring};

pub(super) fn now() -> Wall {
    Wall::parse_rfc3339("2026-11-21T12:34:00Z").unwrap()
}

/// All runs of two simulated models in some hours, with ids.
pub(super) fn records(hours: u64) -> Vec<IdentifiedRun> {
    let range = Hour::of(now()).last(hours);
    let models = simulate::models(7);
    let runs = models
        .iter()
        .take(2)
        .flat_map(|model| model.runs(range).collect::<Vec<_>>());
    runs.enumerate()
        .map(|(number, run)| record(&format!("run-{number}"), run))
        .collect()
}

pub(super) fn record(id: &str, run: Run) -> IdentifiedRun {
    IdentifiedRun {
        id: RunId::new(id).unwrap(),
        run,
        detail: None,
    }
}

pub(super) fn in_(place: &TempDir) -> Archive {
    Archive::open(&place.path().join("runs.db"), now()).unwrap()
}

pub(super) fn models(archive: Archive, now: Wall) -> String {
    let question = DocumentKey {
        sort_by: Some(SortBy::Combined),
        ..DocumentKey::over(Route::Models, Period::Day)
    };
    let data = Scoring::open(RunSource::Archive(archive), now)
        .unwrap()
        .answer(&question)
        .unwrap()
        .data;
    String::from_utf8(data.to_vec()).unwrap()
}

#[test]
fn imported_runs_are_read_back_exactly_and_once() {
    let place = TempDir::new().unwrap();
    let mut records = records(30);
    let failed = records
        .iter_mut()
        .find(|r| matches!(r.run.outcome(), RunOutcome::Failed(_)));
    failed.unwrap().detail = Some("no answer".into());
    let like = Arc::clone(records.first().unwrap().run.model());
    let outcome = RunOutcome::Scored(vec![
        Trial::new([0.5; 7], None, 0.1).unwrap(),
        Trial::new([0.5; 7], 9.0, None).unwrap(),
    ]);
    let none = RunOutcome::Scored(Vec::new());
    for (id, outcome, failed) in [
        ("unmeasured", outcome, vec![]),
        ("failed", none, RunFailure::ALL.to_vec()),
    ] {
        let run = Run::with_failed_trials(Arc::clone(&like), Suite::CODING, now(), outcome, failed);
        records.push(record(id, run.unwrap()));
    }
    let archive = in_(&place);
    assert!(
        archive
            .take(&records)
            .unwrap()
            .iter()
            .all(|taken| *taken == RunInsertion::New)
    );
    assert!(
        archive
            .take(&records)
            .unwrap()
            .iter()
            .all(|taken| *taken == RunInsertion::AlreadyThere)
    );
    drop(archive);
    let mut back = Vec::new();
    in_(&place)
        .each_run(&mut |record| {
            back.push(record);
            true
        })
        .unwrap();
    let by_id = |records: &mut Vec<IdentifiedRun>| records.sort_by(|a, b| a.id.cmp(&b.id));
    by_id(&mut back);
    by_id(&mut records);
    assert_eq!(back, records);
}

#[test]
fn another_run_under_a_known_identifier_is_rejected_and_changes_nothing() {
    let place = TempDir::new().unwrap();
    let records = records(2);
    let archive = in_(&place);
    archive.take(&records).unwrap();
    let [first, second, ..] = records.as_slice() else {
        panic!("too few")
    };
    let moved = record(
        "run-0",
        Run::new(
            first.run.model().clone(),
            first.run.suite(),
            first.run.at().plus(Duration::from_secs(1)),
            first.run.outcome().clone(),
        )
        .unwrap(),
    );
    let failed = record(
        "run-0",
        Run::new(
            first.run.model().clone(),
            first.run.suite(),
            first.run.at(),
            RunOutcome::Failed(RunFailure::Timeout),
        )
        .unwrap(),
    );
    let other = record("run-0", second.run.clone());
    assert_eq!(
        archive.take(&[moved, failed, other]).unwrap(),
        [RunInsertion::OtherContent; 3]
    );
    let mut count = 0;
    archive
        .each_run(&mut |_| {
            count += 1;
            true
        })
        .unwrap();
    assert_eq!(count, records.len());
}

#[test]
fn scores_are_independent_of_import_order_and_batches() {
    let records = records(72);
    let whole = TempDir::new().unwrap();
    let archive = in_(&whole);
    archive.take(&records).unwrap();
    archive.sum_up(now()).unwrap();
    let expected = models(archive, now());
    assert!(expected.contains("\"currentScore\":8"), "{expected}");

    let pieces = TempDir::new().unwrap();
    let mut mixed = records;
    mixed.sort_by_key(|record| (record.run.at().seconds() * 7_919) % 10_007);
    for piece in mixed.chunks(100) {
        let archive = in_(&pieces);
        archive.take(piece).unwrap();
        archive.sum_up(now()).unwrap();
    }
    assert_eq!(models(in_(&pieces), now()), expected);
}

#[test]
fn archived_runs_score_as_the_same_runs_in_memory() {
    let records = records(24 * 20);
    let place = TempDir::new().unwrap();
    let archive = in_(&place);
    archive.take(&records).unwrap();
    archive.sum_up(now()).unwrap();
    let archived = Scoring::open(RunSource::Archive(archive), now()).unwrap();
    let runs: Vec<_> = records.into_iter().map(|record| record.run).collect();
    let in_memory = Scoring::open(RunSource::Runs(runs.into()), now()).unwrap();
    // Their dates differ: only an archive knows about imports.
    let data = |scoring: &Scoring, key: &DocumentKey| scoring.answer(key).map(|answer| answer.data);
    for id in in_memory.model_ids() {
        for question in [
            DocumentKey::of_model(Route::Model, id.clone()),
            DocumentKey::of_model(Route::Drift, id.clone()),
            DocumentKey {
                id: Some(id),
                ..DocumentKey::over(Route::History, Period::Month)
            },
        ] {
            assert_eq!(data(&archived, &question), data(&in_memory, &question));
        }
    }
    assert_eq!(archived.model_ids(), in_memory.model_ids());
    assert_eq!(
        data(&archived, &DocumentKey::plain(Route::Index)),
        data(&in_memory, &DocumentKey::plain(Route::Index))
    );
}

#[test]
fn runs_of_the_current_hour_count_once_imported() {
    let place = TempDir::new().unwrap();
    let archive = in_(&place);
    let all = records(24);
    archive.take(&all).unwrap();
    archive.sum_up(now()).unwrap();
    let scoring = Scoring::open(RunSource::Archive(in_(&place)), now()).unwrap();
    let id = scoring.model_ids().remove(0);
    let runs = || {
        let detail = scoring
            .answer(&DocumentKey::of_model(Route::Model, id.clone()))
            .unwrap()
            .data;
        serde_json::from_slice::<serde_json::Value>(&detail).unwrap()[0]["runs"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(runs(), 72, "a run of each suite in each of 24 hours");
    let model = Arc::clone(
        all.iter()
            .find(|record| *record.run.model().id() == id)
            .unwrap()
            .run
            .model(),
    );
    let at = Hour::of(now()).start().plus(Duration::from_mins(5));
    let late = Run::new(
        model,
        Suite::CODING,
        at,
        RunOutcome::Failed(RunFailure::Timeout),
    )
    .unwrap();
    archive.take(&[record("late", late)]).unwrap();
    archive.sum_up(now()).unwrap();
    assert_eq!(scoring.check(now()).unwrap(), Change::ByAnImport);
    assert_eq!(
        runs(),
        70,
        "23 whole hours, and what is there of the running one"
    );
}

#[test]
fn runs_count_after_their_import_and_the_previous_snapshot_is_unchanged() {
    let place = TempDir::new().unwrap();
    let records = records(48);
    let archive = in_(&place);
    let (half, rest) = records.split_at(records.len() / 2);
    let import = archive.begin_import().unwrap();
    archive.take(half).unwrap();
    assert_eq!(models(in_(&place), now()), "[]", "half an import");
    assert!(archive.is_empty().unwrap());
    archive.take(rest).unwrap();
    assert_eq!(
        archive.end_import(import, now()).unwrap(),
        ImportEnd::Counted
    );
    assert!(!archive.is_empty().unwrap());
    assert!(models(in_(&place), now()).contains("atlas"));
}

#[test]
fn a_running_backend_uses_new_runs_after_a_check() {
    let place = TempDir::new().unwrap();
    let scoring = Scoring::open(RunSource::Archive(in_(&place)), now()).unwrap();
    let importing = in_(&place);
    let import = importing.begin_import().unwrap();
    importing.take(&records(48)).unwrap();
    assert_eq!(
        scoring.check(now()).unwrap(),
        Change::Nothing,
        "they count at the end of the import"
    );
    importing.end_import(import, now()).unwrap();
    assert!(!scoring.refresh(now()).unwrap());
    assert!(scoring.model_ids().is_empty());
    assert_eq!(scoring.check(now()).unwrap(), Change::ByAnImport);
    assert_eq!(scoring.model_ids().len(), 2);
    // Existing runs are not an import.
    importing.take(&records(48)).unwrap();
    importing.sum_up(now()).unwrap();
    assert_eq!(scoring.check(now()).unwrap(), Change::Nothing);
    // Its date is that of the import; the next refresh is due at the full hour, as before.
    let index = || scoring.answer(&DocumentKey::plain(Route::Index)).unwrap();
    let hour = Hour::of(now());
    assert_eq!(
        (index().generated_at, index().next_refresh),
        (now(), hour.plus(1).start())
    );
    assert_eq!(
        scoring.check(hour.plus(1).start()).unwrap(),
        Change::ByTheHour
    );
    assert_eq!(
        (index().generated_at, scoring.model_ids().len()),
        (hour.plus(1).start(), 2)
    );
    // A server started now agrees.
    let other = Scoring::open(RunSource::Archive(in_(&place)), hour.plus(1).start()).unwrap();
    assert_eq!(
        other.answer(&DocumentKey::plain(Route::Index)),
        scoring.answer(&DocumentKey::plain(Route::Index))
    );
}

#[test]
fn sums_of_another_method_are_recomputed_at_opening() {
    let place = TempDir::new().unwrap();
    let archive = in_(&place);
    archive.take(&records(48)).unwrap();
    archive.sum_up(now()).unwrap();
    let expected = models(in_(&place), now());
    {
        let inside = archive.inside();
        let file = &inside.connection;
        file.execute_batch("UPDATE summed_by SET method = 'older'; UPDATE day SET sum = x'00'")
            .unwrap();
    }
    let window = HourRange {
        from: Hour::of(now()),
        to: Hour::of(now()).plus(1),
    };
    assert!(matches!(
        archive.each_series(&|_| window, &mut |_| {}),
        Err(ArchiveError {
            trouble: Trouble::OtherMethod,
            ..
        })
    ));
    drop(archive);
    assert_eq!(models(in_(&place), now()), expected);
}

#[test]
fn a_foreign_or_damaged_file_is_rejected_with_the_remedy_and_unchanged() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("file");
    let refused = |what: &str| {
        let before = std::fs::read(&path).unwrap();
        let error = Archive::open(&path, now()).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains("file"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), before, "{what}");
    };
    std::fs::write(&path, "some text that somebody needs, and more of it").unwrap();
    refused("not an archive of runs");
    std::fs::remove_file(&path).unwrap();
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE theirs (x)")
        .unwrap();
    refused("not an archive of runs");
    std::fs::remove_file(&path).unwrap();
    drop(Archive::open(&path, now()).unwrap());
    Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", 2)
        .unwrap();
    refused("has format 2, but this version supports 1; use a newer version");
    let nowhere = place.path().join("no/such/file");
    assert!(
        Archive::open(&nowhere, now())
            .unwrap_err()
            .to_string()
            .contains("directory exist")
    );
}

#[test]
fn a_damaged_aggregate_fails_a_refresh_and_the_previous_snapshot_stays() {
    let place = TempDir::new().unwrap();
    let archive = in_(&place);
    archive.take(&records(48)).unwrap();
    archive.sum_up(now()).unwrap();
    let scoring = Scoring::open(RunSource::Archive(in_(&place)), now()).unwrap();
    archive
        .inside()
        .connection
        .execute_batch("UPDATE day SET sum = x'0102'")
        .unwrap();
    let later = now().plus(Duration::from_hours(1));
    let error = scoring.refresh(later).unwrap_err().to_string();
    assert!(
        error.contains("is damaged (the stored sum of a day"),
        "{error}"
    );
    assert_eq!(scoring.model_ids().len(), 2);
    assert!(
        !scoring
            .refresh(later.plus(Duration::from_secs(29)))
            .unwrap(),
        "it is left alone for a while"
    );
    assert!(
        scoring
            .refresh(later.plus(Duration::from_secs(31)))
            .is_err()
    );
}

#[test]
fn day_sums_equal_run_counts() {
    let table = SuiteTable::default();
    let mut summing = sums::DaySummation::default();
    let mut series = crate::series::ScoreSeries::new(Arc::default(), Hour::of(now()).last(24));
    for record in records(24)
        .iter()
        .filter(|record| record.run.model().id().as_str() == "atlas-4-large")
    {
        let number = Suite::DEFAULT
            .iter()
            .position(|suite| *suite == record.run.suite())
            .unwrap();
        summing.add(
            &record.run,
            (
                i64::try_from(number).unwrap(),
                table.entry(record.run.suite()),
            ),
            3,
        );
        series.add(&record.run);
    }
    let mut seen = 0;
    sums::read(&summing.stored(), &mut |summed| {
        let count = &series.at(summed.hour).unwrap()[usize::try_from(summed.suite).unwrap()];
        assert_eq!((&summed.count, summed.description), (count, 3));
        assert_eq!(
            summed.latencies.len(),
            usize::try_from(count.trials).unwrap()
        );
        seen += 1;
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, 24 * Suite::DEFAULT.len());
    let stored = summing.stored();
    let cut = stored.get(..stored.len() - 3).unwrap();
    assert!(sums::read(cut, &mut |_| Ok(())).is_err());
}
