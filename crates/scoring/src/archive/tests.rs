//! The guarantees of the archive: nothing is stored twice or partially, and scores do not depend on the order of
//! imports.
//!
//! Killed processes are tested in `tests/suite/archive/scoring_kills.rs`.

use std::{sync::Arc, time::Duration};

use rusqlite::Connection;
use tempfile::TempDir;

use scoregate_base::{
    clock::{Clock, Wall},
    routes::{DocumentKey, Period, Route, SortBy},
};

use super::*;
use crate::{
    Change, RunSource, Scoring,
    hour::Hour,
    run::{ChangeAuthor, ChangeReason, IdentifiedRun, Run, RunFailure, RunId, RunOutcome, Trial},
    simulate,
    suite::Suite,
};

pub fn now() -> Wall {
    Wall::parse_rfc3339("2026-11-21T12:34:00Z").unwrap()
}

/// All runs of two simulated models over several hours, with ids.
pub fn records(hours: u64) -> Vec<IdentifiedRun> {
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

pub fn record(id: &str, run: Run) -> IdentifiedRun {
    IdentifiedRun {
        id: RunId::new(id).unwrap(),
        run,
        detail: None,
    }
}

pub fn in_(place: &TempDir) -> Archive {
    Archive::open(&place.path().join("runs.db")).unwrap()
}

pub fn models(archive: Archive, now: Wall) -> String {
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
            .import(&records, now())
            .unwrap()
            .iter()
            .all(|taken| *taken == RunInsertion::New)
    );
    assert!(
        archive
            .import(&records, now())
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
    archive.import(&records, now()).unwrap();
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
        archive.import(&[moved, failed, other], now()).unwrap(),
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
    archive.import(&records, now()).unwrap();
    let expected = models(archive, now());
    assert!(expected.contains("\"currentScore\":8"), "{expected}");

    let pieces = TempDir::new().unwrap();
    let mut mixed = records;
    mixed.sort_by_key(|record| (record.run.at().seconds() * 7_919) % 10_007);
    for piece in mixed.chunks(100) {
        let archive = in_(&pieces);
        archive.import(piece, now()).unwrap();
    }
    assert_eq!(models(in_(&pieces), now()), expected);
}

#[test]
fn archived_runs_score_as_the_same_runs_in_memory() {
    let records = records(24 * 20);
    let place = TempDir::new().unwrap();
    let archive = in_(&place);
    archive.import(&records, now()).unwrap();
    let archived = Scoring::open(RunSource::Archive(archive), now()).unwrap();
    let runs: Vec<_> = records.into_iter().map(|record| record.run).collect();
    let in_memory = Scoring::open(RunSource::Runs(runs.into()), now()).unwrap();
    // Only the data is compared. The dates differ, because only an archive has imports.
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
    archive.import(&all, now()).unwrap();
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
    archive.import(&[record("late", late)], now()).unwrap();
    assert_eq!(scoring.check(now()).unwrap(), Change::ByAnImport);
    assert_eq!(
        runs(),
        70,
        "23 complete hours, and the runs so far of the current hour"
    );
}

#[test]
fn an_import_counts_at_its_end_and_leaves_nothing_if_it_is_dropped() {
    let place = TempDir::new().unwrap();
    let records = records(48);
    let archive = in_(&place);
    let mut import = archive.begin_import().unwrap();
    for record in &records {
        import.store(record).unwrap();
    }
    assert_eq!(models(in_(&place), now()), "[]", "half an import");
    drop(import);
    assert!(archive.is_empty().unwrap());
    let mut import = archive.begin_import().unwrap();
    for record in &records {
        assert_eq!(import.store(record).unwrap(), RunInsertion::New);
    }
    import.commit(now()).unwrap();
    assert!(models(in_(&place), now()).contains("atlas"));
}

#[test]
fn a_snapshot_during_an_import_does_not_wait_and_records_incidents_after_it() {
    let place = TempDir::new().unwrap();
    let archive = in_(&place);
    archive.import(&records(48), now()).unwrap();
    let importing = in_(&place);
    let import = importing.begin_import().unwrap();
    let clock = Clock::system();
    let began = clock.mono();
    assert!(models(in_(&place), now()).contains("atlas"));
    assert!(clock.mono().since(began) < file::PATIENCE / 2, "it waited");
    assert_eq!(archive.scan_positions(), []);
    drop(import);
    models(in_(&place), now());
    assert_eq!(archive.scan_positions().len(), 2);
}

#[test]
fn a_running_backend_uses_new_runs_after_a_check() {
    let place = TempDir::new().unwrap();
    let scoring = Scoring::open(RunSource::Archive(in_(&place)), now()).unwrap();
    let importing = in_(&place);
    importing.import(&records(48), now()).unwrap();
    assert!(!scoring.refresh(now()).unwrap());
    assert!(scoring.model_ids().is_empty());
    assert_eq!(scoring.check(now()).unwrap(), Change::ByAnImport);
    assert_eq!(scoring.model_ids().len(), 2);
    // Storing runs that already exist does not count as an import.
    importing.import(&records(48), now()).unwrap();
    assert_eq!(scoring.check(now()).unwrap(), Change::Nothing);
    // The results are dated by the time of the import. The next refresh is due at the full hour, as before.
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
    // A server that starts now gives the same answer.
    let other = Scoring::open(RunSource::Archive(in_(&place)), hour.plus(1).start()).unwrap();
    assert_eq!(
        other.answer(&DocumentKey::plain(Route::Index)),
        scoring.answer(&DocumentKey::plain(Route::Index))
    );
}

fn author() -> ChangeAuthor {
    ChangeAuthor {
        actor: "cli:anna".into(),
        reason: ChangeReason::new("wrong key").unwrap(),
    }
}

#[test]
fn a_deleted_run_counts_nowhere_is_kept_with_the_reason_and_can_be_imported_again() {
    let place = TempDir::new().unwrap();
    let archive = in_(&place);
    let records = records(48);
    archive.import(&records, now()).unwrap();
    let all = models(in_(&place), now());
    let (gone, rest) = records.split_at(40);
    let ids: Vec<String> = gone.iter().map(|one| one.id.to_string()).collect();
    let scoring = Scoring::open(RunSource::Archive(in_(&place)), now()).unwrap();
    assert_eq!(archive.delete(&ids, &author(), now()).unwrap(), [""; 0]);
    assert_eq!(scoring.check(now()).unwrap(), Change::ByAnImport);
    let elsewhere = TempDir::new().unwrap();
    in_(&elsewhere).import(rest, now()).unwrap();
    assert_eq!(models(in_(&place), now()), models(in_(&elsewhere), now()));
    let kept: String = archive
        .with(|file| {
            let sql = "SELECT concat_ws(' ', actor, reason, at, run) FROM deleted WHERE id = ?1";
            Ok(file.query_row(sql, [&ids[0]], |row| row.get(0))?)
        })
        .unwrap();
    let expected = format!("cli:anna wrong key {} {}", now().millis(), gone[0].write());
    assert_eq!(kept, expected);
    assert_eq!(
        archive.import(gone, now()).unwrap(),
        [RunInsertion::New; 40]
    );
    assert_eq!(models(in_(&place), now()), all);
}

#[test]
fn nothing_is_deleted_if_one_of_the_ids_is_unknown() {
    let place = TempDir::new().unwrap();
    let archive = in_(&place);
    archive.import(&records(24), now()).unwrap();
    let before = models(in_(&place), now());
    let ids = ["run-1", "none", "run-2"].map(str::to_owned);
    assert_eq!(archive.delete(&ids, &author(), now()).unwrap(), ["none"]);
    assert_eq!(models(in_(&place), now()), before);
}

#[test]
fn a_foreign_or_damaged_file_is_rejected_with_the_remedy_and_unchanged() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("file");
    let refused = |what: &str| {
        let before = std::fs::read(&path).unwrap();
        let error = Archive::open(&path).unwrap_err().to_string();
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
    drop(Archive::open(&path).unwrap());
    Connection::open(&path)
        .unwrap()
        .pragma_update(None, "user_version", 2)
        .unwrap();
    refused("has format 2, but this version supports 1; use a newer version");
    let nowhere = place.path().join("no/such/file");
    assert!(
        Archive::open(&nowhere)
            .unwrap_err()
            .to_string()
            .contains("directory exist")
    );
}

#[test]
fn a_damaged_run_fails_a_refresh_and_the_previous_snapshot_stays() {
    let place = TempDir::new().unwrap();
    let archive = in_(&place);
    archive.import(&records(48), now()).unwrap();
    let scoring = Scoring::open(RunSource::Archive(in_(&place)), now()).unwrap();
    archive
        .with(|file| Ok(file.execute_batch("UPDATE run SET trials = x'0102'")?))
        .unwrap();
    let later = now().plus(Duration::from_hours(1));
    let error = scoring.refresh(later).unwrap_err().to_string();
    assert!(error.contains("is damaged (a stored run cannot"), "{error}");
    assert_eq!(scoring.model_ids().len(), 2);
    assert!(
        !scoring
            .refresh(later.plus(Duration::from_secs(29)))
            .unwrap(),
        "a damaged archive is not read again for a while"
    );
    assert!(
        scoring
            .refresh(later.plus(Duration::from_secs(31)))
            .is_err()
    );
}
