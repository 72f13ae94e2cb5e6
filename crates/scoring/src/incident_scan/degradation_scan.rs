//! Scans the complete rounds of one model for degradations, oldest first, by a rule with two thresholds: one to open,
//! one to resolve.
//!
//! A degradation opens with a deep fall of the level, as found by `levels`. What was recorded stays: a scan continues
//! with the open degradations of the records.

use super::super::figures::Severity;
use super::super::hour::Hour;
use super::super::levels::ScoreLevels;
use super::super::method;
use super::super::noise::round_length::RoundLength;
use super::super::period_scores::ScoreRound;
use super::super::statistics::SampleSums;
use super::incident::{Incident, IncidentHistory, IncidentKind, KnownIncident};

/// A scan of one model, round by round.
pub(in super::super) struct DegradationScan<'l> {
    length: RoundLength,
    levels: &'l ScoreLevels,
    /// Degradations that are not retracted, and retracted ones.
    known: Vec<ScannedDegradation>,
    retracted: Vec<KnownIncident>,
    /// The rounds so far.
    rounds: Vec<ScoreRound>,
}

struct ScannedDegradation {
    baseline: f64,
    opened: Hour,
    resolved: Option<Hour>,
    /// The recorded state.
    recorded: Option<Incident>,
    is_final: bool,
}

impl<'l> DegradationScan<'l> {
    /// A scan that continues after the records.
    pub(in super::super) fn after(
        history: &IncidentHistory,
        length: RoundLength,
        levels: &'l ScoreLevels,
    ) -> Self {
        let (retracted, standing): (Vec<_>, Vec<_>) =
            history.of(IncidentKind::Degradation).cloned().partition(|known| known.retracted.is_some());
        Self {
            length,
            levels,
            known: standing.into_iter().map(|known| ScannedDegradation::recorded(known.incident)).collect(),
            retracted,
            rounds: Vec::new(),
        }
    }

    /// Adds the next round, which was scanned before: states come from the records.
    pub(in super::super) fn recall_round(&mut self, round: ScoreRound) {
        self.rounds.push(round);
    }

    /// Scans the next round. A degradation opens and ends with the round that shows it.
    pub(in super::super) fn observe_round(&mut self, round: ScoreRound) {
        self.recall_round(round);
        if self.has_opened() {
            self.resolve(round.hour);
        } else {
            let opened = self.opening(round.hour);
            self.known.extend(opened);
        }
    }

    /// Whether a degradation is ongoing.
    pub(in super::super) fn has_opened(&self) -> bool {
        self.known.iter().any(|known| known.resolved.is_none())
    }

    /// The baseline at an hour: that of the degradation which it is in, else the level as known then.
    pub(in super::super) fn baseline_at(&self, hour: Hour) -> Option<f64> {
        let known = self.known.iter().find(|known| known.covers(hour));
        known.map(|known| known.baseline).or_else(|| self.levels.level_at(hour))
    }

    /// The degradations that were open or were found, in their newest state.
    pub(in super::super) fn found(&self) -> impl Iterator<Item = Incident> {
        self.known.iter().filter(|known| !known.is_final).map(|known| known.incident(&self.rounds))
    }

    /// The degradation that the round at this hour opens: a fall is deep enough with it.
    fn opening(&self, hour: Hour) -> Option<ScannedDegradation> {
        let mut falls =
            self.levels.changes.iter().filter_map(|change| Some((change.began, change.incident?)));
        let (opened, (_, baseline)) = falls.find(|(_, (found_with, _))| *found_with == hour)?;
        let is_retracted = self.retracted.iter().any(|known| known.is_retracted_at(opened));
        let is_degraded = self.known.iter().any(|known| known.covers(opened));
        let found = ScannedDegradation { baseline, opened, resolved: None, recorded: None, is_final: false };
        (!is_degraded && !is_retracted).then_some(found)
    }

    /// Resolves the open degradations that have ended with the round that begins at `newest`.
    fn resolve(&mut self, newest: Hour) {
        let before = self.rounds.len().saturating_sub(self.length.rounds(method::INCIDENT_ROUNDS));
        let recent = self.rounds.get(before..).unwrap_or_default();
        let mean = recent.iter().map(|round| round.score).collect::<SampleSums>().mean();
        for open in self.known.iter_mut().filter(|known| known.resolved.is_none()) {
            let lasted = newest.number().saturating_sub(open.opened.number());
            if mean.is_some_and(|mean| open.baseline - mean <= method::INCIDENT_RESOLVES) {
                open.resolved = Some(recovered(recent, open).max(open.opened));
            } else if lasted >= method::INCIDENT_LONGEST_HOURS {
                open.resolved = Some(newest);
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
            is_final: incident.resolved.is_some(),
            recorded: Some(incident),
        }
    }

    fn covers(&self, hour: Hour) -> bool {
        self.opened <= hour && self.resolved.is_none_or(|resolved| hour < resolved)
    }

    /// Its newest state. A recorded lowest score does not rise.
    fn incident(&self, rounds: &[ScoreRound]) -> Incident {
        let rounds = || rounds.iter().filter(|round| self.covers(round.hour)).map(|round| round.score);
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
fn recovered(recent: &[ScoreRound], open: &ScannedDegradation) -> Hour {
    let high = recent.iter().rev().take_while(|round| !is_low(round, open.baseline));
    high.last().or(recent.last()).map_or(open.opened, |round| round.hour)
}
