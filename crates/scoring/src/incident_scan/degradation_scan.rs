//! Scans the complete rounds of one model for degradations, oldest first, by a rule with two thresholds: one to open,
//! one to resolve.
//!
//! A degradation opens when the mean of the recent rounds is significantly and substantially below the week before.
//! What was recorded stays: a scan continues with the open degradations of the records.

use std::collections::VecDeque;

use super::super::figures::Severity;
use super::super::hour::Hour;
use super::super::method;
use super::super::noise::round_length::RoundLength;
use super::super::period_scores::ScoreRound;
use super::super::statistics::{SampleSums, pooled_difference};
use super::incident::{Incident, IncidentHistory, IncidentKind, KnownIncident};

/// Bound of the rounding error of the running sum, in points.
const SUM_TOLERANCE: f64 = 1e-6;

/// A scan of one model, round by round.
pub(in super::super) struct DegradationScan {
    length: RoundLength,
    /// Degradations that are not retracted, and retracted ones.
    known: Vec<ScannedDegradation>,
    retracted: Vec<KnownIncident>,
    /// Rounds before the recent ones that belong to the baseline.
    before: VecDeque<f64>,
    /// Their approximate sum: updated by adding and subtracting, so rounding errors accumulate.
    before_sum: f64,
    /// The recent rounds.
    recent: VecDeque<ScoreRound>,
    /// Earlier rounds are of a level that is no longer the normal one.
    normal_since: Hour,
}

struct ScannedDegradation {
    baseline: f64,
    opened: Hour,
    resolved: Option<Hour>,
    /// Its rounds; only while it is open, and after it was resolved by this scan.
    rounds: Vec<(Hour, f64)>,
    /// The recorded state.
    recorded: Option<Incident>,
    is_final: bool,
}

impl DegradationScan {
    /// A scan that continues after the records.
    pub(in super::super) fn after(history: &IncidentHistory, length: RoundLength) -> Self {
        let (retracted, standing): (Vec<_>, Vec<_>) =
            history.of(IncidentKind::Degradation).cloned().partition(|known| known.retracted.is_some());
        let ends = standing.iter().filter_map(|known| known.incident.new_normal());
        Self {
            length,
            normal_since: ends.max().unwrap_or(Hour::numbered(0)),
            known: standing.into_iter().map(|known| ScannedDegradation::recorded(known.incident)).collect(),
            retracted,
            before: VecDeque::new(),
            before_sum: 0.0,
            recent: VecDeque::new(),
        }
    }

    /// Adds the next round, which was scanned before: states come from the records.
    pub(in super::super) fn recall_round(&mut self, round: ScoreRound) {
        for open in self.known.iter_mut().filter(|known| known.resolved.is_none()) {
            open.extend(round);
        }
        self.recent.push_back(round);
        if self.recent.len() > self.length.rounds(method::INCIDENT_ROUNDS) {
            let leaving = self.recent.pop_front();
            self.add_to_baseline(leaving);
        }
    }

    /// Scans the next round. A degradation opens and ends with the round that shows it.
    pub(in super::super) fn observe_round(&mut self, round: ScoreRound) {
        self.recall_round(round);
        let recent: SampleSums = self.recent.iter().map(|round| round.score).collect();
        let Some(mean) = recent.mean() else { return };
        if self.has_opened() {
            self.resolve(mean, round.hour);
        } else if self.recent.len() == self.length.rounds(method::INCIDENT_ROUNDS) {
            let opened = self.opening(recent, mean);
            self.known.extend(opened);
        }
    }

    /// Whether a degradation is ongoing.
    pub(in super::super) fn has_opened(&self) -> bool {
        self.known.iter().any(|known| known.resolved.is_none())
    }

    /// The baseline at the newest of these rounds: that of the degradation which the round is in, else the mean of the
    /// rounds before the recent ones.
    pub(in super::super) fn baseline_at(&self, rounds: &[ScoreRound]) -> Option<f64> {
        let newest = rounds.last()?.hour;
        if let Some(known) = self.known.iter().find(|known| known.covers(newest)) {
            return Some(known.baseline);
        }
        let ends = self.known.iter().filter_map(ScannedDegradation::new_normal);
        let since = ends.filter(|end| *end <= newest).max().unwrap_or(Hour::numbered(0));
        let before = rounds.iter().rev().skip(self.length.rounds(method::INCIDENT_ROUNDS));
        let before = before.filter(|round| round.hour >= since && !self.is_degraded(round.hour));
        let before = before.take(self.length.rounds(method::INCIDENT_BASELINE_ROUNDS));
        let sums: SampleSums = before.map(|round| round.score).collect();
        let least = self.length.rounds(method::INCIDENT_BASELINE_LEAST);
        sums.mean().filter(|_| usize::try_from(sums.count).is_ok_and(|count| count >= least))
    }

    /// The degradations that were open or were found, in their newest state.
    pub(in super::super) fn found(&self) -> impl Iterator<Item = Incident> {
        self.known.iter().filter(|known| !known.is_final).map(ScannedDegradation::incident)
    }

    fn is_degraded(&self, hour: Hour) -> bool {
        self.known.iter().any(|known| known.covers(hour))
    }

    fn add_to_baseline(&mut self, leaving: Option<ScoreRound>) {
        let Some(round) = leaving else { return };
        if round.hour < self.normal_since || self.is_degraded(round.hour) {
            return;
        }
        self.before.push_back(round.score);
        self.before_sum += round.score;
        if self.before.len() > self.length.rounds(method::INCIDENT_BASELINE_ROUNDS) {
            self.before_sum -= self.before.pop_front().unwrap_or_default();
        }
    }

    fn opening(&self, recent: SampleSums, mean: f64) -> Option<ScannedDegradation> {
        if self.before.len() < self.length.rounds(method::INCIDENT_BASELINE_LEAST) {
            return None;
        }
        let rounds: f64 = u32::try_from(self.before.len()).unwrap_or(u32::MAX).into();
        // Nearly every round ends here, and a running sum is precise enough for that.
        if self.before_sum / rounds - mean < method::INCIDENT_OPENS - SUM_TOLERANCE {
            return None;
        }
        let before: SampleSums = self.before.iter().copied().collect();
        let baseline = before.mean().filter(|baseline| baseline - mean >= method::INCIDENT_OPENS)?;
        let difference = pooled_difference(before, recent, method::RESOLUTION)?;
        if difference.chance_above_zero() >= method::INCIDENT_ALPHA {
            return None;
        }
        let is_first = |round: &&ScoreRound| {
            let is_retracted = self.retracted.iter().any(|known| known.is_retracted_at(round.hour));
            is_low(round, baseline) && !self.is_degraded(round.hour) && !is_retracted
        };
        let opened = self.recent.iter().find(is_first)?.hour;
        let mut found = ScannedDegradation {
            baseline,
            opened,
            resolved: None,
            rounds: Vec::new(),
            recorded: None,
            is_final: false,
        };
        self.recent.iter().for_each(|round| found.extend(*round));
        Some(found)
    }

    /// Resolves the open degradations that have ended with the round that begins at `newest`.
    fn resolve(&mut self, mean: f64, newest: Hour) {
        for open in self.known.iter_mut().filter(|known| known.resolved.is_none()) {
            let lasted = newest.number().saturating_sub(open.opened.number());
            if open.baseline - mean <= method::INCIDENT_RESOLVES {
                open.resolved = Some(recovered(&self.recent, open).max(open.opened));
            } else if lasted >= method::INCIDENT_LONGEST_HOURS {
                open.resolved = Some(newest);
            }
            if let Some(end) = open.new_normal() {
                // The new level is the normal one; the old baseline no longer applies.
                self.before.clear();
                self.before_sum = 0.0;
                self.normal_since = self.normal_since.max(end);
            }
        }
    }
}

impl ScannedDegradation {
    fn recorded(incident: Incident) -> Self {
        Self {
            // Records of degradations have a baseline; without one it would be resolved with the next round.
            baseline: incident.baseline.unwrap_or_default(),
            opened: Hour::of(incident.opened),
            resolved: incident.resolved.map(Hour::of),
            rounds: Vec::new(),
            is_final: incident.resolved.is_some(),
            recorded: Some(incident),
        }
    }

    fn covers(&self, hour: Hour) -> bool {
        self.opened <= hour && self.resolved.is_none_or(|resolved| hour < resolved)
    }

    fn extend(&mut self, round: ScoreRound) {
        if round.hour >= self.opened {
            self.rounds.push((round.hour, round.score));
        }
    }

    fn new_normal(&self) -> Option<Hour> {
        let end = self.resolved?;
        (end.number().saturating_sub(self.opened.number()) >= method::INCIDENT_LONGEST_HOURS).then_some(end)
    }

    /// Its newest state. A recorded lowest score does not rise.
    fn incident(&self) -> Incident {
        let rounds = || self.rounds.iter().filter(|(hour, _)| self.covers(*hour)).map(|(_, score)| *score);
        let recorded = self.recorded.as_ref();
        let known_lowest = recorded.and_then(|recorded| recorded.lowest);
        let mean = rounds().collect::<SampleSums>().mean();
        let mean = mean.or_else(|| recorded.and_then(|recorded| recorded.mean));
        let fallen = mean.map_or(0.0, |mean| self.baseline - mean);
        Incident {
            kind: IncidentKind::Degradation,
            severity: Severity::from(fallen, method::INCIDENT_CRITICAL),
            opened: self.opened.start(),
            resolved: self.resolved.map(Hour::start),
            lowest: rounds().chain(known_lowest).min_by(f64::total_cmp),
            mean,
            baseline: Some(self.baseline),
        }
    }
}

/// Half of the way to opening an incident.
fn is_low(round: &ScoreRound, baseline: f64) -> bool {
    baseline - round.score > method::INCIDENT_RESOLVES
}

/// The hour of the first round after the last low one; if the newest is low, its hour.
fn recovered(recent: &VecDeque<ScoreRound>, open: &ScannedDegradation) -> Hour {
    let high = recent.iter().rev().take_while(|round| !is_low(round, open.baseline));
    high.last().or(recent.back()).map_or(open.opened, |round| round.hour)
}
