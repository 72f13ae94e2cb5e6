//! Scans the complete rounds of one model for degradations, oldest first. There are two thresholds: one opens a
//! degradation, and the other resolves it.
//!
//! A degradation opens with a deep fall in the level, as detected by `levels`. Recorded degradations are not changed
//! afterwards. A scan continues with degradations that are still open.

use super::incident::{Incident, IncidentHistory, IncidentKind, KnownIncident};
use crate::{
    figures::Severity, hour::Hour, levels::ScoreLevels, method, period_scores::ScoreRound,
    round_length::RoundLength, statistics::SampleSums,
};

/// A scan of one model, round by round.
pub struct DegradationScan<'l> {
    length: RoundLength,
    levels: &'l ScoreLevels,
    /// Degradations that are not retracted.
    known: Vec<ScannedDegradation>,
    retracted: Vec<KnownIncident>,
    rounds: &'l [ScoreRound],
    /// The number of rounds scanned so far.
    scanned: usize,
}

struct ScannedDegradation {
    /// The incident as recorded, or as it opened.
    incident: Incident,
    is_final: bool,
}

impl<'l> DegradationScan<'l> {
    /// A scan that continues from the records. The first `scanned` rounds were scanned before, and the resulting degradations are
    /// in the records.
    pub(crate) fn after(
        history: &IncidentHistory,
        length: RoundLength,
        levels: &'l ScoreLevels,
        rounds: &'l [ScoreRound],
        scanned: usize,
    ) -> Self {
        let (retracted, standing): (Vec<_>, Vec<_>) = history
            .of(IncidentKind::Degradation)
            .cloned()
            .partition(|known| known.retracted.is_some());
        let known = standing
            .into_iter()
            .map(|KnownIncident { incident, .. }| ScannedDegradation {
                is_final: incident.resolved.is_some(),
                incident,
            })
            .collect();
        Self {
            length,
            levels,
            known,
            retracted,
            rounds,
            scanned,
        }
    }

    /// Scans the rounds that begin at or before `hour`. The scan of a round opens and resolves degradations.
    pub(crate) fn observe_until(&mut self, hour: Hour) {
        while let Some(round) = self
            .rounds
            .get(self.scanned)
            .filter(|round| round.hour <= hour)
        {
            self.scanned += 1;
            if self.has_opened() {
                self.resolve(round.hour);
            } else {
                let opened = self.opening();
                self.known.extend(opened);
            }
        }
    }

    /// Whether a degradation is ongoing.
    fn has_opened(&self) -> bool {
        self.known
            .iter()
            .any(|known| known.incident.resolved.is_none())
    }

    /// The baseline at an hour: the baseline of the degradation that covers the hour or, if there is none, the level as
    /// known at that time.
    pub(crate) fn baseline_at(&self, hour: Hour) -> Option<f64> {
        let known = self.known.iter().find(|known| known.incident.covers(hour));
        known
            .map(ScannedDegradation::baseline)
            .or_else(|| self.levels.level_at(hour))
    }

    /// The newest states of the degradations that were open before the scan or found by it.
    pub(crate) fn found(&self) -> impl Iterator<Item = Incident> {
        self.known
            .iter()
            .filter(|known| !known.is_final)
            .map(|known| known.incident(self.rounds, self.levels.rounds()))
    }

    /// The degradation that opens when the newest round is scanned: in this round or one just before it, a fall became deep
    /// enough. An earlier round may have been scanned before, since the cycle and therefore the levels are
    /// estimated again in each scan.
    fn opening(&self) -> Option<ScannedDegradation> {
        let reach = self.length.rounds(method::INCIDENT_REACH);
        let lately = self
            .rounds
            .get(self.scanned.saturating_sub(1 + reach)..self.scanned)?;
        let lately = lately.first()?.hour..=lately.last()?.hour;
        let mut falls = self.levels.changes.iter().filter_map(|change| {
            let (deep_with, baseline) = change.incident?;
            lately
                .contains(&deep_with)
                .then_some((change.began, baseline))
        });
        let (opened, baseline) = falls.find(|(began, _)| self.is_new(*began))?;
        let incident = Incident::begun(IncidentKind::Degradation, opened, Some(baseline));
        Some(ScannedDegradation {
            incident,
            is_final: false,
        })
    }

    /// Whether the fall that began at `began` is new: no degradation covers this time or opened later.
    fn is_new(&self, began: Hour) -> bool {
        let is_later = |incident: &Incident| incident.opened >= began.start();
        !self
            .known
            .iter()
            .any(|known| is_later(&known.incident) || known.incident.covers(began))
            && !self
                .retracted
                .iter()
                .any(|known| is_later(&known.incident) || known.is_retracted_at(began))
    }

    /// Resolves open degradations that end with the round that begins at `newest`.
    fn resolve(&mut self, newest: Hour) {
        let before = self
            .scanned
            .saturating_sub(self.length.rounds(method::INCIDENT_ROUNDS));
        let recent = self
            .levels
            .rounds()
            .get(before..self.scanned)
            .unwrap_or_default();
        let mean = recent
            .iter()
            .map(|round| round.score)
            .collect::<SampleSums>()
            .mean();
        for open in self
            .known
            .iter_mut()
            .filter(|known| known.incident.resolved.is_none())
        {
            let opened = Hour::of(open.incident.opened);
            let lasted = newest.number().saturating_sub(opened.number());
            if mean.is_some_and(|mean| open.baseline() - mean <= method::INCIDENT_RESOLVES) {
                open.incident.resolved = Some(
                    recovered(recent, open.baseline(), newest)
                        .max(opened)
                        .start(),
                );
            } else if lasted >= method::INCIDENT_LONGEST_HOURS {
                open.incident.resolved = Some(newest.start());
            }
        }
    }
}

impl ScannedDegradation {
    /// Records of degradations have a baseline. Without a baseline, the next round would resolve the degradation.
    fn baseline(&self) -> f64 {
        self.incident.baseline.unwrap_or_default()
    }

    /// The newest state of the incident. The recorded lowest score never rises.
    fn incident(&self, rounds: &[ScoreRound], without_cycle: &[ScoreRound]) -> Incident {
        let known = &self.incident;
        let scores = |rounds: &[ScoreRound]| -> Vec<f64> {
            rounds
                .iter()
                .filter(|round| known.covers(round.hour))
                .map(|round| round.score)
                .collect()
        };
        let mean = scores(without_cycle)
            .into_iter()
            .collect::<SampleSums>()
            .mean()
            .or(known.mean);
        let fallen = mean.map_or(0.0, |mean| self.baseline() - mean);
        Incident {
            severity: Severity::from(fallen, method::INCIDENT_CRITICAL),
            lowest: scores(rounds)
                .into_iter()
                .chain(known.lowest)
                .min_by(f64::total_cmp),
            mean,
            ..known.clone()
        }
    }
}

/// The hour of the first round after the last low one. If the newest round is low, the hour of that round.
fn recovered(recent: &[ScoreRound], baseline: f64, newest: Hour) -> Hour {
    // A round is low if its loss exceeds the resolution limit, which is half of the opening limit.
    let high = recent
        .iter()
        .rev()
        .take_while(|round| baseline - round.score <= method::INCIDENT_RESOLVES);
    high.last().map_or(newest, |round| round.hour)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::simulated_noise::{NoiseGenerator, NoiseKind};
    use scoregate_base::clock::Wall;

    const MONTH: usize = 30 * 24;

    /// A month of hourly rounds at 70 points, followed by three days of lower scores, with a daily cycle.
    fn fallen(seed: u64) -> Vec<ScoreRound> {
        let mut noise = NoiseGenerator::new(NoiseKind::DailyCycle(3.0), 1.5, seed);
        let first = Hour::of(Wall::from_seconds(1_000_000_800));
        let level = |number| if number < MONTH { 70.0 } else { 64.8 };
        let round = |number: usize| ScoreRound {
            hour: first.plus(number as u64),
            score: level(number) + noise.draw(),
        };
        (0..MONTH + 72).map(round).collect()
    }

    /// Scans each new round as a refresh does. Returns whether a scan found a deep fall. If a degradation opened, also
    /// returns it and the number of rounds at that time.
    fn scanned(
        rounds: &[ScoreRound],
        history: &IncidentHistory,
    ) -> (bool, Option<(usize, Incident)>) {
        let mut is_deep = false;
        let opened = (MONTH..=rounds.len()).find_map(|known| {
            let past = &rounds[..known];
            let levels = ScoreLevels::of(past, RoundLength::HOUR);
            is_deep |= levels
                .changes
                .iter()
                .any(|change| change.incident.is_some());
            let mut scan =
                DegradationScan::after(history, RoundLength::HOUR, &levels, past, known - 1);
            scan.observe_until(past[known - 1].hour);
            let found = scan.found().next();
            found.map(|incident| (known, incident))
        });
        (is_deep, opened)
    }

    #[test]
    fn a_deep_fall_opens_one_degradation_although_each_refresh_estimates_the_cycle_anew() {
        let mut deep = 0;
        for seed in 0..24 {
            let rounds = fallen(seed);
            let (is_deep, opened) = scanned(&rounds, &IncidentHistory::default());
            assert_eq!(is_deep, opened.is_some(), "{seed}");
            deep += u32::from(is_deep);
            let Some((known, incident)) = opened else {
                continue;
            };
            let resolved = Some(rounds[known - 1].hour.start());
            let incident = Incident {
                resolved,
                ..incident
            };
            let incidents = vec![KnownIncident {
                incident,
                revision: 1,
                retracted: None,
            }];
            let history = IncidentHistory {
                incidents,
                ..IncidentHistory::default()
            };
            assert!(scanned(&rounds, &history).1.is_none(), "{seed}");
        }
        assert!(deep > 12, "{deep}");
    }
}
