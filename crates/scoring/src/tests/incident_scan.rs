//! The rules for incidents, tested with series of one model. `docs/scoring.md` states each rule.

use std::sync::Arc;

use scoregate_base::{clock::Wall, routes::ModelId};

use crate::{
    figures::Severity,
    hour::{Hour, HourRange},
    incident_scan::{
        incident::{Incident, IncidentHistory, IncidentKind, KnownIncident, ScannedIncidents},
        incidents,
    },
    lab::simulated_noise::{NoiseGenerator, NoiseKind},
    levels::ScoreLevels,
    method,
    run::{Run, RunFailure, RunOutcome, TestedModel, Trial},
    series::ScoreSeries,
    suite::Suite,
};

/// The first hour of a day.
pub fn first() -> Hour {
    Hour::of(Wall::from_seconds(999_993_600))
}

pub fn run(suite: Suite, hour: Hour, score: Option<f64>) -> Run {
    let model =
        Arc::new(TestedModel::new(ModelId::new("m").unwrap(), "M", "p", None, None).unwrap());
    let outcome = match score {
        Some(score) => RunOutcome::Scored(vec![Trial::new([score / 100.0; 7], 1.0, 0.0).unwrap()]),
        None => RunOutcome::Failed(RunFailure::Unreachable),
    };
    Run::new(model, suite, hour.start(), outcome).unwrap()
}

/// A series with these scores, one every `length` hours. `None` is a round in which every run failed.
pub fn series(scores: &[Option<f64>], length: u64) -> (ScoreSeries, HourRange) {
    let window = HourRange {
        from: first(),
        to: first().plus(scores.len() as u64 * length),
    };
    let mut series = ScoreSeries::new(Arc::default(), window);
    for (number, score) in (0..).zip(scores) {
        for suite in Suite::DEFAULT {
            series.add(&run(suite, first().plus(number * length), *score));
        }
    }
    (series, window)
}

pub fn scan(
    series: &ScoreSeries,
    window: HourRange,
    history: &IncidentHistory,
) -> ScannedIncidents {
    let levels = ScoreLevels::of(series.rounds(window), series.round_length());
    incidents::scan(series, window, &levels, history)
}

fn found(scores: &[Option<f64>]) -> Vec<Incident> {
    let (series, window) = series(scores, 1);
    scan(&series, window, &IncidentHistory::default()).published
}

pub fn of(parts: &[(usize, Option<f64>)]) -> Vec<Option<f64>> {
    parts
        .iter()
        .flat_map(|(hours, score)| std::iter::repeat_n(*score, *hours))
        .collect()
}

pub fn at(hours: u64) -> Wall {
    first().plus(hours).start()
}

/// Records results as the archive does.
fn record(history: &mut IncidentHistory, scanned: &ScannedIncidents) {
    for revised in &scanned.revised {
        let known = |one: &&mut KnownIncident| {
            (one.incident.kind, one.incident.opened)
                == (revised.incident.kind, revised.incident.opened)
        };
        let incident = revised.incident.clone();
        let revision = revised.revision;
        match history.incidents.iter_mut().find(known) {
            Some(known) => {
                assert_eq!(revision, known.revision + 1);
                *known = KnownIncident {
                    incident,
                    revision,
                    ..known.clone()
                };
            }
            None => history.incidents.push(KnownIncident {
                incident,
                revision,
                retracted: None,
            }),
        }
    }
    history.position = scanned.position;
}

/// The history after a scan.
fn history_of(scores: &[Option<f64>]) -> IncidentHistory {
    let (series, window) = series(scores, 1);
    let mut history = IncidentHistory::default();
    record(
        &mut history,
        &scan(&series, window, &IncidentHistory::default()),
    );
    history
}

#[test]
fn degradation_and_recovery_are_one_incident() {
    let incidents = found(&of(&[
        (100, Some(70.0)),
        (20, Some(58.0)),
        (30, Some(70.0)),
    ]));
    let [incident] = incidents.as_slice() else {
        panic!("{incidents:?}")
    };
    assert_eq!(
        (incident.kind, incident.severity),
        (IncidentKind::Degradation, Severity::Critical)
    );
    assert_eq!(
        (incident.opened, incident.resolved),
        (at(100), Some(at(120)))
    );
    for (score, expected) in [
        (incident.lowest, 58.0),
        (incident.mean, 58.0),
        (incident.baseline, 70.0),
    ] {
        assert!((score.unwrap() - expected).abs() < 1e-9, "{incident:?}");
    }
}

#[test]
fn a_fall_by_five_points_that_lasts_a_week_is_a_warning() {
    let noise = |level: f64| (0..).map(move |n| Some(level + if n % 4 < 2 { 1.0 } else { -1.0 }));
    let mut scores: Vec<Option<f64>> = noise(70.0).take(200).chain(noise(64.0).take(120)).collect();
    // The lowest round alone would be critical.
    scores[240] = Some(57.0);
    scores.extend(noise(70.0).take(30));
    let incidents = found(&scores);
    let [incident] = incidents.as_slice() else {
        panic!("{incidents:?}")
    };
    assert_eq!(incident.severity, Severity::Warning, "{incident:?}");
    assert!((incident.lowest.unwrap() - 57.0).abs() < 1e-9);
    assert!((incident.mean.unwrap() - 64.0).abs() < 0.1, "{incident:?}");
}

#[test]
fn lasting_degradation_becomes_the_new_level_after_a_week() {
    let incidents = found(&of(&[(100, Some(70.0)), (100, Some(62.0))]));
    assert!(matches!(
        incidents.as_slice(),
        [Incident { resolved: None, .. }]
    ));
    let incidents = found(&of(&[(100, Some(70.0)), (400, Some(62.0))]));
    let [incident] = incidents.as_slice() else {
        panic!("{incidents:?}")
    };
    assert_eq!(
        incident.resolved,
        Some(at(100 + method::INCIDENT_LONGEST_HOURS))
    );
    // The next fall is compared only with the new level.
    for rounds in [10, 40] {
        let falls = found(&of(&[
            (100, Some(70.0)),
            (168 + rounds, Some(62.0)),
            (10, Some(52.0)),
        ]));
        let opened = at(268 + rounds as u64);
        assert_eq!(
            (falls[1].opened, falls[1].baseline.map(f64::round)),
            (opened, Some(62.0))
        );
    }
}

#[test]
fn rounds_of_an_earlier_degradation_are_not_in_a_baseline() {
    let parts = [
        (100, Some(70.0)),
        (50, Some(60.0)),
        (60, Some(70.0)),
        (10, Some(60.0)),
    ];
    let incidents = found(&of(&parts));
    let [_, second] = incidents.as_slice() else {
        panic!("{incidents:?}")
    };
    assert!((second.baseline.unwrap() - 70.0).abs() < 1e-9, "{second:?}");
    assert_eq!(second.opened, at(210));
}

#[test]
fn a_degradation_does_not_begin_in_an_earlier_one() {
    let parts = [
        (100, Some(70.0)),
        (20, Some(50.0)),
        (4, Some(70.0)),
        (20, Some(50.0)),
        (30, Some(70.0)),
    ];
    let incidents = found(&of(&parts));
    assert!(
        incidents.is_sorted_by(|a, b| a.resolved.is_some_and(|end| end <= b.opened)),
        "{incidents:?}"
    );
}

#[test]
fn an_outage_takes_three_hours_and_ends_with_the_first_score() {
    let short = found(&of(&[(50, Some(70.0)), (2, None), (10, Some(70.0))]));
    assert!(short.is_empty());
    for (hours, severity) in [
        (3, Severity::Warning),
        (5, Severity::Warning),
        (6, Severity::Critical),
    ] {
        let long = found(&of(&[(50, Some(70.0)), (hours, None), (10, Some(70.0))]));
        let [incident] = long.as_slice() else {
            panic!("{long:?}")
        };
        assert_eq!(
            (incident.kind, incident.severity),
            (IncidentKind::Outage, severity)
        );
        assert_eq!(
            (incident.opened, incident.resolved),
            (at(50), Some(at(50 + hours as u64)))
        );
        assert_eq!((incident.lowest, incident.mean), (None, None));
        assert!((incident.baseline.unwrap() - 70.0).abs() < 1e-9);
    }
}

#[test]
fn the_baseline_of_an_outage_is_that_of_the_open_degradation() {
    let parts = |level| {
        [
            (100, Some(70.0)),
            (40, Some(level)),
            (4, None),
            (20, Some(level)),
        ]
    };
    for level in [70.0, 60.0, 68.0] {
        let incidents = found(&of(&parts(level)));
        let outage = incidents
            .iter()
            .find(|incident| incident.kind == IncidentKind::Outage)
            .unwrap();
        // After a fall that is too small for a degradation, the baseline is the lower level.
        let expected = if level < 65.0 { 70.0 } else { level };
        assert!(
            (outage.baseline.unwrap() - expected).abs() < 1e-9,
            "{level}: {outage:?}"
        );
    }
    let early = found(&of(&[(20, Some(70.0)), (4, None)]));
    assert_eq!(early[0].baseline, None);
}

#[test]
fn drop_within_the_noise_is_not_an_incident() {
    let reaches = |level: f64, hours: usize| {
        (0..hours).map(move |n| Some(level + if n % 2 == 0 { 9.0 } else { -9.0 }))
    };
    let fall = |points: f64| {
        reaches(70.0, 168)
            .chain(reaches(70.0 - points, 12))
            .collect::<Vec<_>>()
    };
    assert!(found(&fall(8.0)).is_empty());
    assert_eq!(found(&fall(25.0)).len(), 1);
}

#[test]
fn single_low_round_is_not_an_incident() {
    assert!(found(&of(&[(100, Some(70.0)), (1, Some(45.0)), (30, Some(70.0))])).is_empty());
}

#[test]
fn four_low_days_of_a_daily_benchmark_are_an_incident() {
    for (days, number) in [(3, 0), (4, 1)] {
        let scores = of(&[(40, Some(70.0)), (days, Some(62.0))]);
        let (series, window) = series(&scores, 24);
        let incidents = scan(&series, window, &IncidentHistory::default()).published;
        assert_eq!(incidents.len(), number, "{incidents:?}");
        assert!(
            incidents
                .iter()
                .all(|incident| incident.opened == at(40 * 24)),
            "{incidents:?}"
        );
    }
}

#[test]
fn scans_of_every_hour_record_what_one_scan_finds() {
    for seed in 0..6 {
        let mut noise = NoiseGenerator::new(NoiseKind::Autoregressive(0.5), 2.0, seed);
        let parts = [
            (120, Some(70.0)),
            (30, Some(58.0)),
            (40, Some(71.0)),
            (5, None),
            (30, Some(70.0)),
            (190, Some(61.0)),
            (50, Some(62.0)),
            (20, Some(50.0)),
        ];
        let drawn = |level: Option<f64>| Some((level? + noise.draw()).clamp(0.0, 100.0));
        let scores: Vec<Option<f64>> = of(&parts).into_iter().map(drawn).collect();
        let (series, window) = series(&scores, 1);
        let mut history = IncidentHistory::default();
        let mut published = Vec::new();
        for to in window.hours().skip(1).chain([window.to]) {
            let scanned = scan(&series, HourRange { to, ..window }, &history);
            record(&mut history, &scanned);
            let again = scan(&series, HourRange { to, ..window }, &history);
            assert_eq!(again.revised, vec![], "{seed}");
            assert_eq!(again.published, scanned.published, "{seed}");
            published = scanned.published;
        }
        let mut together = found(&scores);
        for (one, other) in together.iter_mut().zip(&published) {
            // Later rounds may show that a round of the baseline was an outlier.
            let distance = one.baseline.unwrap() - other.baseline.unwrap();
            assert!(distance.abs() < 0.1, "{seed}: {distance}");
            one.baseline = other.baseline;
        }
        assert_eq!(published, together, "{seed}");
        assert!(published.len() >= 4, "{seed}: {published:?}");
    }
}

#[test]
fn a_record_is_made_when_severity_lowest_score_or_end_change() {
    let scores = of(&[
        (100, Some(70.0)),
        (8, Some(62.0)),
        (3, Some(63.0)),
        (1, Some(61.0)),
        (20, Some(70.0)),
    ]);
    let (series, window) = series(&scores, 1);
    let mut history = IncidentHistory::default();
    let mut revisions = Vec::new();
    for hours in 90..=132 {
        let scanned = scan(
            &series,
            HourRange {
                to: first().plus(hours),
                ..window
            },
            &history,
        );
        revisions.extend(scanned.revised.iter().map(|revised| {
            (
                hours,
                revised.revision,
                revised.incident.lowest.map(f64::round),
                revised.incident.resolved,
            )
        }));
        record(&mut history, &scanned);
    }
    let [
        (_, 1, Some(62.0), None),
        (112, 2, Some(61.0), None),
        (_, 3, Some(61.0), Some(end)),
    ] = revisions.as_slice()
    else {
        panic!("{revisions:?}")
    };
    assert_eq!(*end, at(112));
}

#[test]
fn a_run_imported_after_newer_ones_opens_no_incident() {
    let mut history = history_of(&of(&[(300, Some(70.0))]));
    let mut late = of(&[(300, Some(70.0))]);
    late[200..220].fill(Some(50.0));
    late[240..244].fill(None);
    late.extend(of(&[(20, Some(70.0))]));
    let (series, window) = series(&late, 1);
    let scanned = scan(&series, window, &history);
    assert_eq!(
        (scanned.published.as_slice(), scanned.revised.as_slice()),
        (&[][..], &[][..])
    );
    record(&mut history, &scanned);
    assert_eq!(history.position.round, Some(first().plus(319)));
}

#[test]
fn recorded_incidents_stay_when_their_runs_change_or_leave_the_window() {
    let fall = of(&[
        (200, Some(70.0)),
        (20, Some(58.0)),
        (30, Some(70.0)),
        (4, None),
        (10, Some(70.0)),
    ]);
    let history = history_of(&fall);
    let recorded = found(&fall);
    assert_eq!(recorded.len(), 2);
    let (steady, window) = series(&of(&[(264, Some(70.0))]), 1);
    let scanned = scan(&steady, window, &history);
    assert_eq!(
        (scanned.published.as_slice(), scanned.revised.len()),
        (recorded.as_slice(), 0)
    );
    let later = HourRange {
        from: first().plus(230),
        to: first().plus(500),
    };
    let scanned = scan(&ScoreSeries::new(Arc::default(), later), later, &history);
    assert_eq!(
        (scanned.published.as_slice(), scanned.revised.len()),
        (&recorded[1..], 0)
    );
    assert_eq!(scanned.position, history.position);
}

#[test]
fn an_open_degradation_keeps_its_opening_and_baseline_when_older_runs_change() {
    let history = history_of(&of(&[(200, Some(70.0)), (20, Some(58.0))]));
    let scores = of(&[(190, Some(61.0)), (33, Some(58.0))]);
    let (changed, window) = series(&scores, 1);
    let scanned = scan(&changed, window, &history);
    let [incident] = scanned.published.as_slice() else {
        panic!("{scanned:?}")
    };
    assert_eq!((incident.opened, incident.resolved), (at(200), None));
    assert!(
        (incident.baseline.unwrap() - 70.0).abs() < 1e-9,
        "{incident:?}"
    );
}

#[test]
fn a_fall_that_began_in_a_retracted_incident_opens_none() {
    let scores = of(&[(100, Some(70.0)), (10, Some(58.0))]);
    let mut history = history_of(&scores);
    history.incidents[0].retracted = Some(at(110));
    let (same, window) = series(&scores, 1);
    let scanned = scan(&same, window, &history);
    assert_eq!(
        (scanned.published.len(), scanned.revised.len()),
        (0, 0),
        "{scanned:?}"
    );
    let (on, window) = series(&of(&[(100, Some(70.0)), (30, Some(58.0))]), 1);
    assert_eq!(scan(&on, window, &history).published, []);
    let (ended, window) = series(
        &of(&[(100, Some(70.0)), (10, Some(58.0)), (40, Some(70.0))]),
        1,
    );
    let scanned = scan(&ended, window, &history);
    assert!(scanned.published.is_empty(), "{scanned:?}");
    record(&mut history, &scanned);
    let (again, window) = series(
        &of(&[
            (100, Some(70.0)),
            (10, Some(58.0)),
            (40, Some(70.0)),
            (8, Some(50.0)),
        ]),
        1,
    );
    let next = &scan(&again, window, &history).published[0];
    assert_eq!(
        (next.opened, next.baseline.map(f64::round)),
        (at(150), Some(70.0))
    );
}

#[test]
fn a_retracted_outage_that_lasts_needs_three_more_hours() {
    let mut history = history_of(&of(&[(50, Some(70.0)), (4, None)]));
    history.incidents[0].retracted = Some(at(54));
    for (more, number) in [(0, 0), (2, 0), (3, 1)] {
        let (series, window) = series(&of(&[(50, Some(70.0)), (4 + more, None)]), 1);
        let published = scan(&series, window, &history).published;
        assert_eq!(published.len(), number, "{more}: {published:?}");
        assert!(published.iter().all(|outage| outage.opened == at(54)));
    }
}
