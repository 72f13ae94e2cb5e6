//! Incidents in an archive: recorded once, by the first snapshot that finds them, and never changed by later runs.

use std::{sync::Arc, time::Duration};

use rusqlite::Connection;
use tempfile::TempDir;

use scoregate_base::{
    clock::Wall,
    routes::{DocumentKey, Limit, ModelId, Period, Route},
};

use super::{
    Archive, incident_records, query,
    tests::{in_, now, record},
};
use crate::{
    RunSource, Scoring,
    incident_scan::incident::{IncidentRecord, ScanPosition},
    run::{
        ChangeAuthor, ChangeReason, IdentifiedRun, Run, RunFailure, RunOutcome, TestedModel, Trial,
    },
    suite::Suite,
};

const HOUR: Duration = Duration::from_hours(1);

fn author() -> ChangeAuthor {
    ChangeAuthor {
        actor: "cli:anna".into(),
        reason: ChangeReason::new("wrong key").unwrap(),
    }
}

/// Hourly runs of one model, the last one `end` hours ago. `None` is an hour in which every run failed.
fn runs(end: u32, parts: &[(u32, Option<f64>)]) -> Vec<IdentifiedRun> {
    let model =
        Arc::new(TestedModel::new(ModelId::new("m").unwrap(), "M", "p", None, None).unwrap());
    let scores: Vec<Option<f64>> = parts
        .iter()
        .flat_map(|(hours, score)| (0..*hours).map(move |_| *score))
        .collect();
    let ages = (end + 1..=end + u32::try_from(scores.len()).unwrap()).rev();
    let mut records = Vec::new();
    for (ago, score) in ages.zip(scores) {
        for suite in Suite::DEFAULT {
            let outcome = match score {
                Some(score) => {
                    RunOutcome::Scored(vec![Trial::new([score / 100.0; 7], 9.0, 0.1).unwrap()])
                }
                None => RunOutcome::Failed(RunFailure::Unreachable),
            };
            let run =
                Run::new(Arc::clone(&model), suite, now().minus(HOUR * ago), outcome).unwrap();
            records.push(record(&format!("{}-{ago}", suite.name()), run));
        }
    }
    records
}

/// A 20-hour fall that ended 40 hours ago, and an ongoing outage.
fn eventful() -> Vec<IdentifiedRun> {
    runs(
        0,
        &[
            (300, Some(70.0)),
            (20, Some(58.0)),
            (36, Some(70.0)),
            (4, None),
        ],
    )
}

fn import(place: &TempDir, records: &[IdentifiedRun], at: Wall) {
    in_(place).import(records, at).unwrap();
}

/// The incidents of a month, as published by a server that starts at this time.
fn published(place: &TempDir, at: Wall) -> String {
    let scoring = Scoring::open(RunSource::Archive(in_(place)), at).unwrap();
    incidents(&scoring)
}

fn incidents(scoring: &Scoring) -> String {
    let key = DocumentKey {
        limit: Limit::parse("100"),
        ..DocumentKey::over(Route::Incidents, Period::Month)
    };
    String::from_utf8(scoring.answer(&key).unwrap().data.to_vec()).unwrap()
}

fn records(place: &TempDir) -> Vec<IncidentRecord> {
    let mut records = Vec::new();
    in_(place)
        .each_incident_record(&mut |record| {
            records.push(record);
            true
        })
        .unwrap();
    records
}

impl Archive {
    /// The scan position of each model.
    pub(crate) fn scan_positions(&self) -> Vec<(String, ScanPosition)> {
        self.with(|file| {
            let sql = "SELECT model FROM incident_scan ORDER BY model";
            let models: Vec<String> = query::all(file, sql, [], |row| Ok(row.get(0)?))?;
            let positions = models.into_iter().map(|model| {
                let position = incident_records::position(file, &model)?;
                Ok((model, position))
            });
            positions.collect()
        })
        .unwrap()
    }
}

#[test]
fn a_snapshot_records_incidents_with_its_date_and_the_newest_run() {
    let place = TempDir::new().unwrap();
    import(&place, &eventful(), now());
    let published = published(&place, now());
    let records = records(&place);
    let ids: Vec<String> = records.iter().map(IncidentRecord::id).collect();
    let [fall, outage] = ids.as_slice() else {
        panic!("{records:?}")
    };
    assert!(
        fall.starts_with("degradation-m-") && outage.starts_with("outage-m-"),
        "{ids:?}"
    );
    for record in &records {
        assert!(
            published.contains(&record.id()) && record.revision() == 1,
            "{published}"
        );
        assert_eq!(
            (record.recorded, record.last_run.as_str()),
            (now(), "tooling-1"),
            "{record:?}"
        );
    }
    let [(_, position)] = in_(&place).scan_positions().try_into().unwrap();
    assert!(position.round < position.hour, "{position:?}");
}

#[test]
fn an_incident_of_an_earlier_method_stays_and_says_so() {
    let place = TempDir::new().unwrap();
    import(&place, &eventful(), now());
    let method = format!(r#","methodVersion":"{}""#, crate::METHOD_VERSION);
    let found = published(&place, now());
    assert_eq!(found.matches(&method).count(), 2, "{found}");
    let file = Connection::open(place.path().join("runs.db")).unwrap();
    file.execute_batch("UPDATE incident_record SET record = json_set(record, '$.method', '0.1')")
        .unwrap();
    let earlier = r#","methodVersion":"0.1""#;
    assert_eq!(published(&place, now()), found.replace(&method, earlier));
}

#[test]
fn older_runs_and_deletions_do_not_change_recorded_incidents() {
    let place = TempDir::new().unwrap();
    import(&place, &eventful(), now());
    let before = published(&place, now());
    let recorded = records(&place);
    // These runs are older than all others. They would lower the baseline, but recorded incidents do not change.
    import(&place, &runs(360, &[(200, Some(60.0))]), now());
    assert_eq!(published(&place, now()), before);
    let fallen = now().minus(HOUR * 60)..now().minus(HOUR * 40);
    let ids: Vec<String> = eventful()
        .into_iter()
        .filter(|one| fallen.contains(&one.run.at()))
        .map(|one| one.id.to_string())
        .collect();
    assert_eq!(ids.len(), 60);
    in_(&place).delete(&ids, &author(), now()).unwrap();
    assert_eq!(published(&place, now()), before);
    assert_eq!(records(&place), recorded);
}

#[test]
fn records_outlive_the_window() {
    let place = TempDir::new().unwrap();
    import(&place, &eventful(), now());
    published(&place, now());
    let recorded = records(&place);
    let later = now().plus(HOUR * 24 * 40);
    let new = eventful().into_iter().take(3).map(|one| {
        let outcome = one.run.outcome().clone();
        let run = Run::new(
            Arc::clone(one.run.model()),
            one.run.suite(),
            later.minus(HOUR),
            outcome,
        )
        .unwrap();
        record(&format!("later-{}", one.id), run)
    });
    import(&place, &new.collect::<Vec<_>>(), later);
    let published = published(&place, later);
    let [fall, outage, resolved] = records(&place).try_into().unwrap();
    assert_eq!([&fall, &outage], [&recorded[0], &recorded[1]]);
    assert_eq!((resolved.id(), resolved.revision()), (outage.id(), 2));
    // In this month, only the outage remains, which has just ended.
    assert!(
        !published.contains(&fall.id()) && published.contains(&outage.id()),
        "{published}"
    );
}

#[test]
fn a_restart_or_a_second_server_makes_no_further_record() {
    let place = TempDir::new().unwrap();
    import(&place, &eventful(), now());
    let first = Scoring::open(RunSource::Archive(in_(&place)), now()).unwrap();
    let recorded = records(&place);
    let second = Scoring::open(RunSource::Archive(in_(&place)), now()).unwrap();
    assert_eq!(incidents(&first), incidents(&second));
    for server in [&first, &second] {
        assert!(server.refresh(now().plus(HOUR)).unwrap());
    }
    assert_eq!(records(&place), recorded);
}

#[test]
fn a_deleted_incident_is_not_published_again() {
    let place = TempDir::new().unwrap();
    import(&place, &eventful(), now());
    let scoring = Scoring::open(RunSource::Archive(in_(&place)), now()).unwrap();
    let ids: Vec<String> = records(&place).iter().map(IncidentRecord::id).collect();
    let archive = in_(&place);
    assert_eq!(archive.delete(&ids, &author(), now()).unwrap(), [""; 0]);
    assert_eq!(archive.delete(&ids, &author(), now()).unwrap(), ids);
    assert_eq!(
        scoring.check(now().plus(Duration::from_secs(2))).unwrap(),
        crate::Change::ByAnImport
    );
    assert_eq!(incidents(&scoring), "[]");
    assert_eq!(published(&place, now().plus(HOUR)), "[]");
    let deleted: Vec<_> = records(&place)
        .into_iter()
        .filter_map(|record| Some((record.id(), record.revision(), record.retraction?)))
        .collect();
    let expected = ids.into_iter().map(|id| (id, 2, author()));
    assert!(deleted.iter().cloned().eq(expected), "{deleted:?}");
}

#[test]
fn a_failed_write_leaves_the_scan_to_the_next_snapshot() {
    let place = TempDir::new().unwrap();
    import(&place, &eventful(), now());
    let file = Connection::open(place.path().join("runs.db")).unwrap();
    file.execute_batch(
        "CREATE TRIGGER broken BEFORE INSERT ON incident_scan BEGIN SELECT RAISE(ABORT, 'broken'); END;",
    )
    .unwrap();
    let unrecorded = published(&place, now());
    assert!(unrecorded.contains("degradation-m-"), "{unrecorded}");
    assert_eq!(
        (records(&place).len(), in_(&place).scan_positions().len()),
        (0, 0)
    );
    file.execute_batch("DROP TRIGGER broken").unwrap();
    assert_eq!(published(&place, now().plus(HOUR)), unrecorded);
    assert_eq!(records(&place).len(), 2);
}
