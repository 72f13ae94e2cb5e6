//! The levels of one model's score, and the changes between them: one detector for drift, alerts, degradations and
//! incidents.
//!
//! Two cumulative sums of the rounds, with outliers and the cycle removed, show where a change may be. A test, based on the noise within
//! the levels, decides whether there is one. `drift`, `losses` and `incident_scan` decide which changes are published.

use std::ops::Range;

use serde::Serialize;

use super::{
    hour::{Hour, HourRange},
    method,
    noise::{
        cycle::{Cycle, CycleShape},
        outliers::without_outliers,
        peer_noise::TypicalNoise,
        round_noise::{LevelSums, RoundNoise},
    },
    period_scores::ScoreRound,
    round_length::RoundLength,
    statistics::{Estimate, Spread, chance_of_change},
};

/// Differences of fewer standard errors than this are never significant, so their p-value is not computed. The actual limit is
/// 4.15 with daily rounds, and higher with shorter ones.
const LEAST_ERRORS: f64 = 4.0;

/// The levels of a series of rounds.
#[derive(Clone, Debug)]
pub struct ScoreLevels {
    /// The cyclic effects that the rounds show.
    pub shape: CycleShape,
    /// The changes between levels, oldest first.
    pub changes: Vec<LevelChange>,
    length: RoundLength,
    /// The rounds without their cycle.
    rounds: Vec<ScoreRound>,
    /// The same without outliers.
    sums: LevelSums,
    /// Number of fitted effects.
    fitted: usize,
    /// The noise of the rounds before the newest change, or of all rounds if there is no change.
    noise: Option<LevelNoise>,
}

/// A detected change of level.
#[derive(Clone, Copy, Debug)]
pub struct LevelChange {
    /// The indexes of three rounds: the first of the previous level, the first of this level, and the round in which this level
    /// was detected.
    before: usize,
    at: usize,
    found: usize,
    /// The hours in which the level began and was detected.
    pub began: Hour,
    pub found_with: Hour,
    pub direction: ShiftDirection,
    noise: LevelNoise,
    /// The hour of the round in which the fall became deep enough for an incident, and the previous level.
    pub incident: Option<(Hour, f64)>,
}

/// The direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ShiftDirection {
    /// The level rose.
    Up,
    /// The level fell.
    Down,
}

/// A comparison of the newest level with a previous one.
#[derive(Clone, Copy, Debug)]
pub struct LevelComparison {
    pub before: Estimate,
    pub now: Estimate,
    /// The hours of the previous level's rounds.
    pub baseline: HourRange,
    /// The first hour of the newest level.
    pub since: Hour,
}

/// The noise of rounds around their level.
#[derive(Clone, Copy, Debug)]
struct LevelNoise {
    typical: TypicalNoise,
    df: f64,
}

/// A cumulative sum of deviations in one direction, and the place after the last zero of the sum.
#[derive(Clone, Copy, Default)]
struct DeviationSum {
    sum: f64,
    from: usize,
}

impl DeviationSum {
    fn add(&mut self, deviation: f64, at: usize) {
        self.sum = (self.sum + deviation - method::CHANGE_ALLOWANCE).max(0.0);
        if self.sum <= 0.0 {
            self.from = at + 1;
        }
    }
}

impl ScoreLevels {
    /// Determines the levels of rounds of one length, oldest first.
    pub fn of(rounds: &[ScoreRound], length: RoundLength) -> Self {
        let usual = without_outliers(rounds);
        let shape = CycleShape::of(&usual, length);
        let cycle = Cycle::fit(&usual, length, shape);
        let without = |round: &ScoreRound| ScoreRound {
            score: round.score - cycle.at(round.hour),
            ..*round
        };
        let sums = LevelSums::of(usual.iter().map(|round| without(round).score));
        let mut levels = Self {
            shape,
            changes: Vec::new(),
            length,
            rounds: rounds.iter().map(without).collect(),
            sums,
            fitted: cycle.fitted,
            noise: None,
        };
        levels.search();
        levels
    }

    /// The standard deviation of a single round, and the long-run standard deviation.
    pub fn deviations(&self) -> Option<[f64; 2]> {
        let typical = self.noise?.typical;
        Some([typical.single, typical.long_run].map(f64::sqrt))
    }

    /// The rounds without their cycle, oldest first.
    pub fn rounds(&self) -> &[ScoreRound] {
        &self.rounds
    }

    /// The newest level compared with the reference of the first change that was detected at or after `hour`.
    pub fn since(&self, hour: Hour) -> Option<LevelComparison> {
        let first = self
            .changes
            .iter()
            .find(|change| change.found_with >= hour)?;
        let newest = self.changes.last()?;
        let before = self.reference(first)?;
        let now = newest.at..self.rounds.len();
        Some(LevelComparison {
            before: first.noise.estimate(&self.sums, 0..0, before.clone())?,
            now: first.noise.estimate(&self.sums, 0..0, now)?,
            baseline: HourRange {
                from: self.hour_of(before.start)?,
                to: self.hour_of(before.end)?,
            },
            since: newest.began,
        })
    }

    fn hour_of(&self, round: usize) -> Option<Hour> {
        self.rounds.get(round).map(|round| round.hour)
    }

    /// The level at an hour as known at that time, if there were enough rounds.
    pub fn level_at(&self, hour: Hour) -> Option<f64> {
        let known = self.changes.iter().rfind(|change| change.found_with < hour);
        let end = self.rounds.partition_point(|round| round.hour < hour);
        let before = self.before(known.map_or(0, |change| change.at), end);
        let least = self.length.rounds(method::BASELINE_LEAST);
        let level = self
            .sums
            .mean(before.clone())
            .filter(|_| before.len() >= least)?;
        Some(level + self.sums.origin)
    }

    /// The newest change, unless the model only returned to a level that it held before.
    pub fn newest(&self) -> Option<&LevelChange> {
        let newest = self.changes.last()?;
        let levels = self.since(newest.found_with)?;
        let is_held = levels.baseline.to == newest.began;
        let is_fall = levels.now.mean < levels.before.mean;
        let is_same_way = is_fall == (newest.direction == ShiftDirection::Down);
        (is_held || is_same_way && self.is_significant(levels.before, levels.now)).then_some(newest)
    }

    /// The newest rounds of the level that a change is compared with: the previous level or the held level, whichever
    /// differs less, so that the end of a rise does not count as a fall. `None` for a fall before any level was held.
    fn reference(&self, change: &LevelChange) -> Option<Range<usize>> {
        let is_fall = change.direction == ShiftDirection::Down;
        let before = self.before(change.before, change.at);
        let Some(held) = self.held(change) else {
            return (!is_fall).then_some(before);
        };
        let is_lower = self.sums.mean(held.clone())? < self.sums.mean(before.clone())?;
        Some(if is_lower == is_fall { held } else { before })
    }

    /// The newest rounds of the held level. Before a fall, this is the highest level that the model reached or exceeded for half
    /// of the last days. Before a rise, it is the lowest level that the model was at or below for half of them.
    fn held(&self, change: &LevelChange) -> Option<Range<usize>> {
        let days = change.began.last(method::LEVEL_HELD_HOURS);
        let known = self.changes.iter().map(|one| one.at);
        let ends = known.take_while(|at| *at <= change.at);
        let starts = std::iter::once(0).chain(ends.clone());
        let mut levels: Vec<(f64, Range<usize>)> = starts
            .zip(ends)
            .filter_map(|(start, end)| Some((self.sums.mean(self.before(start, end))?, start..end)))
            .collect();
        levels.sort_by(|one, other| one.0.total_cmp(&other.0));
        if change.direction == ShiftDirection::Down {
            levels.reverse();
        }
        let mut hours = 0;
        let held = levels.into_iter().find(|(_, level)| {
            let ends = [level.start, level.end].map(|at| self.rounds.get(at));
            let [from, to] =
                ends.map(|round| round.map_or(0, |round| days.hours_before(round.hour)));
            hours += to - from;
            2 * hours >= days.hours_before(days.to)
        });
        held.map(|(_, level)| self.before(level.start, level.end))
    }

    /// The newest rounds before `end` of a level that begins at `start`.
    fn before(&self, start: usize, end: usize) -> Range<usize> {
        start.max(end.saturating_sub(self.length.rounds(method::BASELINE_ROUNDS)))..end
    }

    fn search(&mut self) {
        let mut fall = DeviationSum::default();
        let mut rise = DeviationSum::default();
        // Rounds before `known` are already assigned to a level. The noise is measured from the first `measured` rounds.
        let mut known = 0;
        let mut measured = 0;
        for at in 0..self.rounds.len() {
            let start = self.changes.last().map_or(0, |change| change.at);
            if let Some(deviation) = self.deviation(start..known, at) {
                fall.add(-deviation, at);
                rise.add(deviation, at);
            }
            self.deepen(at);
            let fallen = self.tested(start, fall, at, ShiftDirection::Down);
            let found = fallen.or_else(|| self.tested(start, rise, at, ShiftDirection::Up));
            let is_found = found.is_some();
            self.changes.extend(found);
            if is_found {
                self.deepen(at);
            }
            // After `BASELINE_ROUNDS` rounds without a change, these rounds belong to the level.
            let is_old = at - fall.from.min(rise.from).min(at)
                >= self.length.rounds(method::BASELINE_ROUNDS);
            if is_found || is_old || fall.sum + rise.sum <= 0.0 || self.noise.is_none() {
                known = at + 1;
                let none = DeviationSum {
                    sum: 0.0,
                    from: known,
                };
                (fall, rise) = (none, none);
            }
            if known >= self.length.rounds(method::BASELINE_LEAST) && 4 * known >= 5 * measured {
                measured = known;
                self.noise = self.measure(known, None).or(self.noise);
            }
        }
    }

    /// The deviation of a round from the level of the `known` rounds, in long-run standard deviations. Large deviations are limited.
    fn deviation(&self, known: Range<usize>, at: usize) -> Option<f64> {
        let [single, long_run] = self.deviations()?;
        let level = self.sums.mean(self.before(known.start, known.end))?;
        let limit = method::NOISE_LIMIT * single;
        Some((self.sums.mean(at..at + 1)? - level).clamp(-limit, limit) / long_run)
    }

    /// The change between a level and the rounds of a cumulative sum, if a test confirms it.
    fn tested(
        &self,
        start: usize,
        sum: DeviationSum,
        at: usize,
        way: ShiftDirection,
    ) -> Option<LevelChange> {
        let rounds = sum.from..at + 1;
        if sum.sum < method::CHANGE_SIGNALS || rounds.len() < method::CHANGE_LEAST_ROUNDS {
            return None;
        }
        let level = self.sums.mean(self.before(start, sum.from))?;
        let middle = level.midpoint(self.sums.mean(rounds.clone())?);
        let first = self.beginning(rounds, middle, way);
        // In a long series, the noise is not measured again here, because that takes a long time and the rounds before the change suffice.
        let noise = if at + 1 < method::NOISE_BLOCKS * method::NOISE_BLOCK {
            self.measure(at + 1, Some(first))
        } else {
            self.noise
        }?;
        let baseline = self.before(start, first);
        let before = noise.estimate(&self.sums, 0..0, baseline.clone())?;
        let now = noise.estimate(&self.sums, baseline, first..at + 1)?;
        let is_way = (now.mean < before.mean) == (way == ShiftDirection::Down);
        if !is_way || !self.is_significant(before, now) {
            return None;
        }
        Some(LevelChange {
            before: start,
            at: first,
            found: at,
            began: self.rounds.get(first)?.hour,
            found_with: self.rounds.get(at)?.hour,
            direction: way,
            noise,
            incident: None,
        })
    }

    /// Whether the difference between two levels is significant, given the number of tests in a month.
    fn is_significant(&self, before: Estimate, now: Estimate) -> bool {
        let spreads = before.spread.zip(now.spread);
        let Some(spread) = spreads.map(|(before, now)| before.variance + now.variance) else {
            return false;
        };
        if (now.mean - before.mean).powi(2) < LEAST_ERRORS.powi(2) * spread {
            return false;
        }
        let month =
            f64::from(u32::try_from(method::NOISE_HOURS / self.length.hours()).unwrap_or(u32::MAX));
        chance_of_change(before, now) * month < method::CHANGE_ALPHA
    }

    /// The first round of the new level: the round after the maximum of the cumulative deviation from `middle` towards the old level.
    fn beginning(&self, rounds: Range<usize>, middle: f64, way: ShiftDirection) -> usize {
        let mut sum = 0.0;
        let mut most = 0.0;
        let mut first = rounds.start;
        for at in rounds.start..rounds.end - method::CHANGE_LEAST_ROUNDS {
            let above = self
                .sums
                .mean(at..at + 1)
                .map_or(0.0, |score| score - middle);
            sum += if way == ShiftDirection::Down {
                above
            } else {
                -above
            };
            if sum > most {
                (most, first) = (sum, at + 1);
            }
        }
        first
    }

    /// Checks whether the newest fall has become deep enough for an incident, for a limited number of rounds after its
    /// detection.
    fn deepen(&mut self, at: usize) {
        let Some(change) = self.changes.last() else {
            return;
        };
        let is_over = at - change.found > self.length.rounds(method::INCIDENT_REACH);
        if change.direction == ShiftDirection::Up || change.incident.is_some() || is_over {
            return;
        }
        let before = self
            .reference(change)
            .and_then(|rounds| self.sums.mean(rounds));
        let now = self.sums.mean(change.at..at + 1);
        let Some(((before, now), round)) = before.zip(now).zip(self.rounds.get(at)) else {
            return;
        };
        let incident = (round.hour, before + self.sums.origin);
        if before - now >= method::INCIDENT_OPENS
            && let Some(change) = self.changes.last_mut()
        {
            change.incident = Some(incident);
        }
    }

    /// The noise of the first `known` rounds about their levels. If `further` is given, another level begins there.
    fn measure(&self, known: usize, further: Option<usize>) -> Option<LevelNoise> {
        let starts = self.changes.iter().map(|change| change.at).chain(further);
        let levels = starts.clone().count() + 1;
        let residuals = self.sums.residuals(known, starts);
        let noise = RoundNoise::of(&residuals, levels, self.fitted)?;
        let typical = TypicalNoise::of(&noise, method::RESOLUTION.powi(2));
        Some(LevelNoise {
            typical: typical.cautious(known),
            df: noise.of_mean(1).df,
        })
    }
}

impl LevelNoise {
    /// The mean of `rounds`. Its variance is increased if these rounds, or the rounds of any day in `before`, vary more than usual.
    fn estimate(
        self,
        sums: &LevelSums,
        before: Range<usize>,
        rounds: Range<usize>,
    ) -> Option<Estimate> {
        let mean = sums.mean(rounds.clone())? + sums.origin;
        let days = (before.len() / method::NOISE_LATELY).max(1);
        let known = (0..days)
            .map(|age| {
                let end = before.end - age * method::NOISE_LATELY;
                before.start.max(end.saturating_sub(method::NOISE_LATELY))..end
            })
            .chain([rounds.clone()]);
        let unusual = known
            .filter_map(|rounds| sums.variance(rounds))
            .fold(1.0_f64, |most, variance| {
                most.max(variance / self.typical.single)
            });
        let variance = self.typical.of_mean(rounds.len()) * unusual;
        Some(Estimate {
            mean,
            spread: Some(Spread {
                variance,
                df: self.df,
            }),
        })
    }
}
