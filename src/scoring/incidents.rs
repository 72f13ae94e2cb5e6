//! Incidents of one model, found in its series by a rule with two thresholds: one to open, one to resolve.
//!
//! A degradation opens when the mean of six rounds is significantly and substantially below the week before; an
//! outage is a sequence of hours in which every run failed. Hours without runs count as neither. The rule looks back
//! a week at most, so that an incident does not change as the window moves. Alerts, which test the last day, are
//! separate.

use std::collections::VecDeque;

use crate::clock::Wall;

use super::figures::Severity;
use super::hour::{Hour, HourRange};
use super::method;
use super::period_scores::ScoreRound;
use super::round_length::RoundLength;
use super::series::ScoreSeries;
use super::statistics::{SampleSums, pooled_difference};

/// Bound of the rounding error of the running sum, in points.
const SUM_TOLERANCE: f64 = 1e-6;

/// The kind of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IncidentKind {
    /// Scores fell.
    Degradation,
    /// Runs failed.
    Outage,
}

/// An incident.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Incident {
    pub kind: IncidentKind,
    pub severity: Severity,
    /// When it began.
    pub opened: Wall,
    /// When it ended; `None` while it lasts.
    pub resolved: Option<Wall>,
    /// The lowest round during it, in points; `None` for an outage.
    pub lowest: Option<f64>,
    /// The level before it, in points, if known.
    pub baseline: Option<f64>,
}

/// The incidents of a window, in the order of their end, ongoing ones last.
pub(super) fn find(series: &ScoreSeries, window: HourRange) -> Vec<Incident> {
    let mut watch = IncidentScan::default();
    for hour in window.hours() {
        if let Some(runs) = series.runs_at(hour) {
            watch.observe_hour(hour, runs);
        }
        if let Some(round) = series.rounds(HourRange::one(hour)).first() {
            watch.observe_round(*round);
        }
    }
    watch.end()
}

impl Incident {
    /// Whether it was opened within a range.
    pub(super) fn opened_in(&self, range: HourRange) -> bool {
        range.holds(self.opened)
    }

    /// Whether it overlaps a range.
    pub(super) fn overlaps(&self, range: HourRange) -> bool {
        self.resolved.is_none_or(|resolved| resolved > range.from.start()) && self.opened < range.to.start()
    }
}

/// A scan of one model, hour by hour.
#[derive(Default)]
pub(super) struct IncidentScan {
    found: Vec<Incident>,
    /// Rounds before the recent ones; unchanged during an incident.
    before: VecDeque<f64>,
    /// Their approximate sum: updated by adding and subtracting, so rounding errors accumulate.
    before_sum: f64,
    recent: VecDeque<ScoreRound>,
    open: Option<OpenDegradation>,
    outage: Option<OpenOutage>,
}

struct OpenDegradation {
    baseline: f64,
    opened: Hour,
    lowest: f64,
}

struct OpenOutage {
    since: Hour,
    hours: u64,
    baseline: Option<f64>,
}

impl IncidentScan {
    fn observe_hour(&mut self, hour: Hour, (runs, failed): (u32, u32)) {
        if runs > failed {
            let ended = self.outage.take().and_then(|outage| outage.into_incident(Some(hour.start())));
            self.found.extend(ended);
        } else if runs > 0 {
            let baseline = self.baseline();
            self.outage.get_or_insert(OpenOutage { since: hour, hours: 0, baseline }).hours += 1;
        }
    }

    /// Adds the next round. An incident opens and ends with the round that shows it.
    pub(super) fn observe_round(&mut self, round: ScoreRound) {
        self.recent.push_back(round);
        if self.recent.len() <= RoundLength::HOUR.rounds(method::INCIDENT_ROUNDS) {
            return;
        }
        let leaving = self.recent.pop_front();
        if self.open.is_none() {
            if let Some(score) = leaving.map(|round| round.score) {
                self.before.push_back(score);
                self.before_sum += score;
            }
            if self.before.len() > RoundLength::HOUR.rounds(method::INCIDENT_BASELINE_ROUNDS) {
                self.before_sum -= self.before.pop_front().unwrap_or_default();
            }
        }
        let recent_scores: SampleSums = self.recent.iter().map(|round| round.score).collect();
        let Some(recent) = recent_scores.mean() else {
            return;
        };
        match self.open.take() {
            None => self.open = self.opened(recent_scores),
            Some(mut open) => {
                open.lowest = open.lowest.min(round.score);
                let lasted = round.hour.number() - open.opened.number();
                if open.baseline - recent <= method::INCIDENT_RESOLVES {
                    let ended = self.recovered(&open);
                    self.found.push(open.into_incident(Some(ended.start())));
                } else if lasted >= method::INCIDENT_LONGEST_HOURS {
                    // The new level is the normal one; the old baseline no longer applies.
                    self.before.clear();
                    self.before_sum = 0.0;
                    self.found.push(open.into_incident(Some(round.hour.start())));
                } else {
                    self.open = Some(open);
                }
            }
        }
    }

    /// Whether a degradation is ongoing.
    pub(super) fn has_opened(&self) -> bool {
        self.open.is_some()
    }

    fn baseline(&self) -> Option<f64> {
        let known = self.before.len() >= RoundLength::HOUR.rounds(method::INCIDENT_BASELINE_LEAST);
        self.before.iter().copied().collect::<SampleSums>().mean().filter(|_| known)
    }

    fn opened(&self, recent: SampleSums) -> Option<OpenDegradation> {
        let mean = recent.mean()?;
        let rounds: f64 = u32::try_from(self.before.len()).unwrap_or(u32::MAX).into();
        // Nearly every round ends here, and a running sum is precise enough for that.
        if self.before_sum / rounds - mean < method::INCIDENT_OPENS - SUM_TOLERANCE {
            return None;
        }
        let baseline = self.baseline().filter(|baseline| baseline - mean >= method::INCIDENT_OPENS)?;
        let before: SampleSums = self.before.iter().copied().collect();
        let difference = pooled_difference(before, recent, method::RESOLUTION)?;
        if difference.chance_above_zero() >= method::INCIDENT_ALPHA {
            return None;
        }
        let low = |round: &&ScoreRound| is_low(round, baseline);
        let opened = self.recent.iter().find(low)?.hour;
        let lowest = self.recent.iter().map(|round| round.score).fold(f64::INFINITY, f64::min);
        Some(OpenDegradation { baseline, opened, lowest })
    }

    /// The hour of the first round after the last low one.
    fn recovered(&self, open: &OpenDegradation) -> Hour {
        let high = self.recent.iter().rev().take_while(|round| !is_low(round, open.baseline));
        high.last().or(self.recent.back()).map_or(open.opened, |round| round.hour)
    }

    fn end(mut self) -> Vec<Incident> {
        self.found.extend(self.outage.and_then(|outage| outage.into_incident(None)));
        self.found.extend(self.open.map(|open| open.into_incident(None)));
        self.found
    }
}

impl OpenDegradation {
    fn into_incident(self, resolved: Option<Wall>) -> Incident {
        Incident {
            kind: IncidentKind::Degradation,
            severity: Severity::from(self.baseline - self.lowest, method::INCIDENT_CRITICAL),
            opened: self.opened.start(),
            resolved,
            lowest: Some(self.lowest),
            baseline: Some(self.baseline),
        }
    }
}

impl OpenOutage {
    fn into_incident(self, resolved: Option<Wall>) -> Option<Incident> {
        let critical = self.hours >= method::OUTAGE_CRITICAL_HOURS;
        (self.hours >= method::OUTAGE_HOURS).then(|| Incident {
            kind: IncidentKind::Outage,
            severity: if critical { Severity::Critical } else { Severity::Warning },
            opened: self.since.start(),
            resolved,
            lowest: None,
            baseline: self.baseline,
        })
    }
}

fn is_low(round: &ScoreRound, baseline: f64) -> bool {
    round.score < baseline - method::INCIDENT_RESOLVES
}

#[cfg(test)]
mod tests {
    use super::super::run::{Run, RunFailure, RunOutcome, Suite, TestedModel, Trial};
    use super::*;
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
        (first, find(&series, window))
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
