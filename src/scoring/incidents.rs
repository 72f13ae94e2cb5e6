//! The incidents of one model: its series is scanned from the position of the previous scan, in the order of time.
//!
//! Recorded incidents stay as they are. Alerts, which test the last day, are separate.

use super::degradation_scan::DegradationScan;
use super::hour::{Hour, HourRange};
use super::incident::{IncidentHistory, ScanPosition, ScannedIncidents};
use super::outage_scan::OutageScan;
use super::series::ScoreSeries;

/// Scans what is new in a window. Without a history this is the whole window.
pub(super) fn scan(series: &ScoreSeries, window: HourRange, history: &IncidentHistory) -> ScannedIncidents {
    let (length, rounds) = (series.round_length(), series.rounds(window));
    let mut degradations = DegradationScan::after(history, length);
    let mut outages = OutageScan::after(history);
    let start = history.position;
    // More runs may have been imported in the newest round and hour, so these are scanned again.
    let first_round = start.round.map_or(window.from, |hour| length.round_of(hour).from);
    let first_hour = start.hour.unwrap_or(window.from).clamp(window.from, window.to);
    let before = |hour: Hour| rounds.partition_point(|round| round.hour < hour);
    let (old, new) = rounds.split_at(before(first_round));
    old.iter().for_each(|round| degradations.recall_round(*round));

    let mut new = new.iter().peekable();
    let mut newest_hour = None;
    for hour in window.hours() {
        let runs = series.runs_at(hour).unwrap_or_default();
        if hour < first_hour {
            outages.recall_hour(hour, runs);
            continue;
        }
        // A record is made from what was known then.
        while let Some(round) = new.next_if(|round| round.hour <= hour) {
            degradations.observe_round(*round);
        }
        let level = |since: Hour| degradations.baseline_at(rounds.get(..before(since)).unwrap_or_default());
        outages.observe_hour(hour, runs, level);
        newest_hour = newest_hour.max(Some(hour).filter(|_| runs.0 > 0));
    }
    new.for_each(|round| degradations.observe_round(*round));
    let newest = ScanPosition { round: rounds.last().map(|round| round.hour), hour: newest_hour };
    let found = degradations.found().chain(outages.found()).collect();
    history.after(found, start.newest(newest), window)
}

#[cfg(test)]
mod tests {
    use super::super::figures::Severity;
    use super::super::incident::{Incident, IncidentKind};
    use super::super::method;
    use super::super::run::{Run, RunFailure, RunOutcome, Suite, TestedModel, Trial};
    use super::*;
    use crate::clock::Wall;
    use crate::routes::ModelId;
    use std::sync::Arc;

    /// A series with these hourly scores; `None` is an hour in which every run failed.
    fn found(scores: &[Option<f64>]) -> (Hour, Vec<Incident>) {
        let first = Hour::of(Wall::from_seconds(1_000_000_000));
        let model = Arc::new(TestedModel::new(ModelId::new("m").unwrap(), "M", "p", None, None).unwrap());
        let window = HourRange { from: first, to: first.plus(scores.len() as u64) };
        let mut series = ScoreSeries::new(Arc::default(), window);
        for (hour, score) in window.hours().zip(scores) {
            for suite in Suite::DEFAULT {
                let outcome = match score {
                    Some(score) => {
                        RunOutcome::Scored(vec![Trial::new([*score / 100.0; 7], 1.0, 0.0).unwrap()])
                    }
                    None => RunOutcome::Failed(RunFailure::Unreachable),
                };
                series.add(&Run::new(Arc::clone(&model), suite, hour.start(), outcome).unwrap());
            }
        }
        (first, scan(&series, window, &IncidentHistory::default()).published)
    }

    fn of(parts: &[(usize, Option<f64>)]) -> Vec<Option<f64>> {
        parts.iter().flat_map(|(hours, score)| std::iter::repeat_n(*score, *hours)).collect()
    }

    #[test]
    fn degradation_and_recovery_are_one_incident() {
        let (first, incidents) = found(&of(&[(100, Some(70.0)), (20, Some(58.0)), (30, Some(70.0))]));
        let [incident] = incidents.as_slice() else { panic!("{incidents:?}") };
        assert_eq!((incident.kind, incident.severity), (IncidentKind::Degradation, Severity::Critical));
        assert_eq!(incident.opened, first.plus(100).start());
        assert_eq!(incident.resolved, Some(first.plus(120).start()));
        assert!((incident.lowest.unwrap() - 58.0).abs() < 1e-9);
        assert!((incident.baseline.unwrap() - 70.0).abs() < 1e-9);
    }

    #[test]
    fn lasting_degradation_becomes_the_new_level_after_a_week() {
        let (_, incidents) = found(&of(&[(100, Some(70.0)), (100, Some(62.0))]));
        assert!(matches!(incidents.as_slice(), [Incident { resolved: None, .. }]));
        let (first, incidents) = found(&of(&[(100, Some(70.0)), (400, Some(62.0))]));
        let [incident] = incidents.as_slice() else { panic!("{incidents:?}") };
        assert_eq!(incident.resolved, Some(first.plus(100 + method::INCIDENT_LONGEST_HOURS).start()));
    }

    #[test]
    fn an_outage_takes_three_hours_and_ends_with_the_first_score() {
        let (_, short) = found(&of(&[(50, Some(70.0)), (2, None), (10, Some(70.0))]));
        assert!(short.is_empty());
        let (first, long) = found(&of(&[(50, Some(70.0)), (7, None), (10, Some(70.0))]));
        let [incident] = long.as_slice() else { panic!("{long:?}") };
        assert_eq!((incident.kind, incident.severity), (IncidentKind::Outage, Severity::Critical));
        assert_eq!(incident.opened, first.plus(50).start());
        assert_eq!(incident.resolved, Some(first.plus(57).start()));
        assert_eq!(incident.lowest, None);
    }

    #[test]
    fn drop_within_the_noise_is_not_an_incident() {
        let reaches = |level: f64, hours: usize| {
            (0..hours).map(move |n| Some(level + if n % 2 == 0 { 9.0 } else { -9.0 }))
        };
        let fall = |points: f64| reaches(70.0, 168).chain(reaches(70.0 - points, 12)).collect::<Vec<_>>();
        assert!(found(&fall(8.0)).1.is_empty());
        assert_eq!(found(&fall(25.0)).1.len(), 1);
    }

    #[test]
    fn single_low_round_is_not_an_incident() {
        assert!(found(&of(&[(100, Some(70.0)), (1, Some(45.0)), (30, Some(70.0))])).1.is_empty());
    }
}
