//! Imports that were killed, and imports at the same time. A killed import is one whose lock is gone.

use tempfile::TempDir;

use super::tests::{in_, models, now, records};
use super::*;
use crate::{Change, RunSource, Scoring};

/// The published models of an archive whose runs were imported without interruption.
fn undisturbed(records: &[crate::run::IdentifiedRun]) -> String {
    let place = TempDir::new().unwrap();
    let archive = in_(&place);
    archive.take(records).unwrap();
    archive.sum_up(now()).unwrap();
    models(archive, now())
}

#[test]
fn a_killed_import_counts_at_the_next_start() {
    let place = TempDir::new().unwrap();
    let records = records(48);
    let (stored, _) = records.split_at(records.len() / 2);
    let archive = in_(&place);
    let import = archive.begin_import().unwrap();
    archive.take(stored).unwrap();
    drop((import, archive));
    assert_eq!(models(in_(&place), now()), undisturbed(stored));
    assert_eq!(
        in_(&place).complete_imports(now()).unwrap(),
        0,
        "it is completed once"
    );
}

#[test]
fn a_killed_import_counts_after_a_check_of_a_running_server_and_only_once_no_import_is_running() {
    let place = TempDir::new().unwrap();
    let records = records(48);
    let scoring = Scoring::open(RunSource::Archive(in_(&place)), now()).unwrap();
    let killed = in_(&place);
    let running = in_(&place);
    let (first, second) = records.split_at(records.len() / 2);
    let import = killed.begin_import().unwrap();
    let other = running.begin_import().unwrap();
    killed.take(first).unwrap();
    running.take(second).unwrap();
    drop((import, killed));
    assert_eq!(
        scoring.check(now()).unwrap(),
        Change::Nothing,
        "the other import is running"
    );
    assert_eq!(models(in_(&place), now()), "[]");
    drop((other, running));
    assert_eq!(scoring.check(now()).unwrap(), Change::ByAnImport);
    assert_eq!(scoring.check(now()).unwrap(), Change::Nothing);
    assert_eq!(models(in_(&place), now()), undisturbed(&records));
}

#[test]
fn of_imports_at_the_same_time_the_last_to_end_updates_the_scores() {
    let place = TempDir::new().unwrap();
    let records = records(48);
    let one = in_(&place);
    let two = in_(&place);
    let (first, second) = records.split_at(records.len() / 2);
    let import = one.begin_import().unwrap();
    let other = two.begin_import().unwrap();
    one.take(first).unwrap();
    two.take(second).unwrap();
    assert_eq!(
        one.end_import(import, now()).unwrap(),
        ImportEnd::AnotherIsRunning
    );
    assert!(one.is_empty().unwrap());
    assert_eq!(two.end_import(other, now()).unwrap(), ImportEnd::Counted);
    assert_eq!(models(in_(&place), now()), undisturbed(&records));
}

#[test]
fn imports_that_end_together_leave_no_day_without_its_aggregate() {
    let place = TempDir::new().unwrap();
    let records = records(24);
    drop(in_(&place));
    let parts: Vec<_> = records.chunks(records.len().div_ceil(4)).collect();
    let ready = std::sync::Barrier::new(parts.len());
    let import = |part: &[crate::run::IdentifiedRun]| {
        let archive = in_(&place);
        let import = archive.begin_import().unwrap();
        archive.take(part).unwrap();
        ready.wait();
        archive.end_import(import, now()).unwrap()
    };
    let ends: Vec<ImportEnd> = std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .iter()
            .map(|part| scope.spawn(|| import(part)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(ends.contains(&ImportEnd::Counted), "{ends:?}");
    let archive = in_(&place);
    let left: i64 = archive
        .inside()
        .connection
        .query_row("SELECT count(*) FROM unsummed", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 0);
    assert_eq!(models(archive, now()), undisturbed(&records));
}

#[test]
fn a_server_does_not_wait_for_an_import_that_is_storing_a_batch() {
    let place = TempDir::new().unwrap();
    let records = records(24);
    let server = in_(&place);
    let importing = in_(&place);
    importing.take(&records).unwrap();
    let inside = &mut *importing.inside();
    let batch = writing::begin(&mut inside.connection).unwrap();
    assert_eq!(server.complete_imports(now()).unwrap(), 0);
    drop(batch);
    assert!(server.complete_imports(now()).unwrap() > 0);
}

#[test]
fn a_lock_that_cannot_be_opened_is_reported_and_the_previous_scores_are_served() {
    let place = TempDir::new().unwrap();
    let records = records(24);
    let archive = in_(&place);
    archive.take(&records).unwrap();
    std::os::unix::fs::symlink("no/such/place", place.path().join("runs.db-import")).unwrap();
    let error = archive.begin_import().unwrap_err().to_string();
    assert!(
        error.contains("runs.db-import cannot be used") && error.contains("check that"),
        "{error}"
    );
    assert_eq!(models(in_(&place), now()), "[]");
}

#[test]
fn an_import_creates_no_file_through_a_planted_link() {
    let place = TempDir::new().unwrap();
    let elsewhere = TempDir::new().unwrap();
    let archive = in_(&place);
    let target = elsewhere.path().join("target");
    std::os::unix::fs::symlink(&target, place.path().join("runs.db-import")).unwrap();
    let refused = archive.begin_import().unwrap_err();
    assert!(
        matches!(
            refused,
            ArchiveError {
                trouble: Trouble::Lock(_),
                ..
            }
        ),
        "{refused}"
    );
    assert!(!target.exists());
}
