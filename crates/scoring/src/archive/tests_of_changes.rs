//! Withdrawn and corrected runs: the scores are those of an archive that never had the previous content.

use std::sync::Arc;

use tempfile::TempDir;

use scoregate_base::routes::{DocumentKey, ModelId, Period, Route};

use super::tests::{in_, models, now, record, records};
use super::*;
use crate::run::{ChangeAuthor, ChangeReason, IdentifiedRun, Run, RunId, TestedModel, Withdrawal};
use crate::{RunSource, Scoring};

fn author() -> ChangeAuthor {
    ChangeAuthor {
        actor: "cli:anna".into(),
        reason: ChangeReason::new("wrong key").unwrap(),
    }
}

fn imported(place: &TempDir, records: &[IdentifiedRun]) -> Archive {
    let archive = in_(place);
    archive.take(records).unwrap();
    archive.sum_up(now()).unwrap();
    archive
}

/// The details and the month's history of every model: every stored day counts in them.
fn published(archive: Archive) -> Vec<String> {
    let scoring = Scoring::open(RunSource::Archive(archive), now()).unwrap();
    let documents = scoring.model_ids().into_iter().flat_map(|id| {
        let history = DocumentKey {
            id: Some(id.clone()),
            ..DocumentKey::over(Route::History, Period::Month)
        };
        [DocumentKey::of_model(Route::Model, id), history]
    });
    let text = |key| String::from_utf8(scoring.answer(&key).unwrap().data.to_vec()).unwrap();
    documents.map(text).collect()
}

/// The published documents of an archive of these runs only.
fn undisturbed(records: &[IdentifiedRun]) -> Vec<String> {
    published(imported(&TempDir::new().unwrap(), records))
}

/// Every run and withdrawal, as lines.
fn exported(archive: &Archive) -> Vec<String> {
    let mut lines = Vec::new();
    archive
        .each_run(&mut |record| {
            lines.push(record.write());
            true
        })
        .unwrap();
    archive
        .each_withdrawal(&mut |withdrawal| {
            lines.push(withdrawal.write());
            true
        })
        .unwrap();
    lines
}

fn ids(records: &[IdentifiedRun]) -> Vec<RunId> {
    records.iter().map(|record| record.id.clone()).collect()
}

fn refused(error: RunChangeError) -> Vec<String> {
    match error {
        RunChangeError::Refused(refused) => refused.iter().map(ToString::to_string).collect(),
        RunChangeError::Archive(error) => panic!("{error}"),
    }
}

#[test]
fn a_withdrawn_run_counts_nowhere_and_stays_withdrawn_when_it_is_imported_again() {
    let place = TempDir::new().unwrap();
    let records = records(48);
    let archive = imported(&place, &records);
    let (gone, rest) = records.split_at(40);
    archive.withdraw(&ids(gone), &author(), now()).unwrap();
    archive.sum_up(now()).unwrap();
    let again = archive.take(&records).unwrap();
    assert!(
        again
            .iter()
            .take(40)
            .all(|taken| *taken == RunInsertion::Withdrawn)
    );
    assert!(
        again
            .iter()
            .skip(40)
            .all(|taken| *taken == RunInsertion::AlreadyThere)
    );
    let other = record("run-0", rest.first().unwrap().run.clone());
    assert_eq!(
        archive.take(&[other]).unwrap(),
        [RunInsertion::Withdrawn],
        "its id is not used again"
    );
    archive.sum_up(now()).unwrap();
    assert_eq!(published(archive), undisturbed(rest));
}

#[test]
fn a_model_without_runs_left_is_not_listed() {
    let place = TempDir::new().unwrap();
    let records = records(24);
    let archive = imported(&place, &records);
    archive.withdraw(&ids(&records), &author(), now()).unwrap();
    archive.sum_up(now()).unwrap();
    assert!(archive.is_empty().unwrap());
    assert_eq!(models(archive, now()), "[]");
}

#[test]
fn runs_are_withdrawn_all_or_none_and_every_obstacle_is_reported() {
    let place = TempDir::new().unwrap();
    let records = records(24);
    let archive = imported(&place, &records);
    let id = |text: &str| RunId::new(text).unwrap();
    archive.withdraw(&[id("run-7")], &author(), now()).unwrap();
    let before = exported(&archive);
    let error = archive.withdraw(
        &[id("run-1"), id("run-7"), id("none"), id("run-1")],
        &author(),
        now(),
    );
    assert_eq!(
        refused(error.unwrap_err()),
        [
            "run-7 is withdrawn, which is final",
            "none does not exist; check the id",
            "run-1 is given twice; give it once"
        ]
    );
    assert_eq!(exported(&archive), before);
    assert_eq!(archive.changes(None, None, 10).unwrap().len(), 1);
}

#[test]
fn a_corrected_run_counts_with_its_new_content_also_on_another_day_and_for_another_model() {
    let place = TempDir::new().unwrap();
    let mut records = records(72);
    let archive = imported(&place, &records);
    let first = records.first().unwrap().run.clone();
    let last = records.last().unwrap().run.clone();
    // The first run moves to the newest day and another model, the last one to the oldest day and a new model.
    let moved = |run: &Run, at: &Run, model: &Arc<TestedModel>| {
        Run::new(
            Arc::clone(model),
            run.suite(),
            at.at(),
            run.outcome().clone(),
        )
        .unwrap()
    };
    let new = Arc::new(
        TestedModel::new(ModelId::new("new").unwrap(), "New", "p", Some(1.0), None).unwrap(),
    );
    let last_id = records.last().unwrap().id.clone();
    let corrected = [
        record("run-0", moved(&first, &last, last.model())),
        IdentifiedRun {
            id: last_id,
            run: moved(&last, &first, &new),
            detail: None,
        },
        records.get(5).unwrap().clone(),
    ];
    assert_eq!(
        archive.correct(&corrected, &author(), now()).unwrap(),
        [true, true, false]
    );
    archive.sum_up(now()).unwrap();
    for one in &corrected {
        *records
            .iter_mut()
            .find(|record| record.id == one.id)
            .unwrap() = one.clone();
    }
    let mut found = exported(&archive);
    let expected = imported(&TempDir::new().unwrap(), &records);
    let mut expected_lines = exported(&expected);
    found.sort_unstable();
    expected_lines.sort_unstable();
    assert_eq!(found, expected_lines);
    assert_eq!(published(archive), published(expected));
}

#[test]
fn an_unknown_withdrawn_or_repeated_run_is_not_corrected_and_nothing_changes() {
    let place = TempDir::new().unwrap();
    let records = records(24);
    let archive = imported(&place, &records);
    archive
        .withdraw(&ids(&records[..1]), &author(), now())
        .unwrap();
    let before = exported(&archive);
    let other = |index: usize| record(&format!("run-{index}"), records[9].run.clone());
    let request = [
        other(1),
        other(0),
        record("none", records[9].run.clone()),
        other(2),
        other(2),
    ];
    let problems = refused(archive.correct(&request, &author(), now()).unwrap_err());
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(
        problems[0].contains("run-0 is withdrawn") && problems[1].contains("none does not exist")
    );
    assert!(problems[2].contains("run-2 is given twice"));
    assert_eq!(exported(&archive), before);
}

#[test]
fn the_audit_trail_has_the_previous_content_and_cannot_be_changed() {
    let place = TempDir::new().unwrap();
    let records = records(24);
    let archive = imported(&place, &records);
    let corrected = record("run-1", records[9].run.clone());
    archive
        .correct(std::slice::from_ref(&corrected), &author(), now())
        .unwrap();
    archive
        .withdraw(&ids(&records[1..2]), &author(), now())
        .unwrap();
    let changes = archive.changes(None, None, 10).unwrap();
    let shown: Vec<_> = changes
        .iter()
        .map(|change| (change.number, change.kind, change.before.clone()))
        .collect();
    assert_eq!(
        shown,
        [
            (2, RunChangeKind::Withdrawal, Some(corrected.write())),
            (1, RunChangeKind::Correction, Some(records[1].write())),
        ]
    );
    let first = changes.first().unwrap();
    assert_eq!(
        (first.actor.as_str(), first.reason.as_str(), first.at),
        ("cli:anna", "wrong key", now())
    );
    assert_eq!(archive.changes(None, Some(2), 10).unwrap().len(), 1);
    assert_eq!(
        archive
            .changes(Some(&RunId::new("run-2").unwrap()), None, 10)
            .unwrap(),
        []
    );
    for statement in ["DELETE FROM audit", "UPDATE audit SET reason = ''"] {
        let error = archive
            .inside()
            .connection
            .execute_batch(statement)
            .unwrap_err()
            .to_string();
        assert!(error.contains("append-only"), "{error}");
    }
}

#[test]
fn an_export_with_withdrawals_reproduces_the_archive() {
    let place = TempDir::new().unwrap();
    let records = records(48);
    let archive = imported(&place, &records);
    archive
        .withdraw(&ids(&records[..30]), &author(), now())
        .unwrap();
    archive
        .correct(
            &[record("run-40", records[50].run.clone())],
            &author(),
            now(),
        )
        .unwrap();
    archive.sum_up(now()).unwrap();
    let mut runs = Vec::new();
    let mut withdrawals = Vec::<Withdrawal>::new();
    archive
        .each_run(&mut |record| {
            runs.push(record);
            true
        })
        .unwrap();
    archive
        .each_withdrawal(&mut |withdrawal| {
            withdrawals.push(withdrawal);
            true
        })
        .unwrap();
    assert_eq!(withdrawals.len(), 30);
    // Also into an archive that has one of the withdrawn runs.
    for known in [&records[..0], &records[..10]] {
        let elsewhere = TempDir::new().unwrap();
        let copy = imported(&elsewhere, known);
        copy.take(&runs).unwrap();
        let later = now().plus(std::time::Duration::from_mins(1));
        let taken = copy
            .take_withdrawals(&withdrawals, "cli:bert", later)
            .unwrap();
        assert!(taken.iter().all(|taken| *taken == RunInsertion::New));
        copy.sum_up(now()).unwrap();
        assert_eq!(exported(&copy), exported(&archive));
        let changes = copy.changes(None, None, 100).unwrap();
        assert!(
            changes
                .iter()
                .all(|change| change.kind == RunChangeKind::ImportedWithdrawal)
        );
        assert_eq!(
            changes
                .iter()
                .filter(|change| change.before.is_some())
                .count(),
            known.len()
        );
        let again = copy
            .take_withdrawals(&withdrawals, "cli:bert", later)
            .unwrap();
        assert!(
            again
                .iter()
                .all(|taken| *taken == RunInsertion::AlreadyThere)
        );
        assert_eq!(copy.changes(None, None, 100).unwrap().len(), 30);
        assert_eq!(published(copy), published(in_(&place)));
    }
}
