//! The cycle of a series of rounds: a regression on hour of day and day of week, if the history shows such effects.
//!
//! Effects are measured as deviations from the mean of the week around each round, so a change of level is not mistaken
//! for an effect.

use super::round_noise::ratio;
use crate::{
    hour::{Hour, HourRange},
    method,
    period_scores::ScoreRound,
    round_length::RoundLength,
};

const DAY: usize = 24;
const WEEKDAYS: usize = 7;
const WEEK: usize = WEEKDAYS * DAY;

/// The effects that a series shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CycleShape {
    hours: bool,
    weekdays: bool,
}

/// The effects in a series, relative to its level. They repeat every week.
#[derive(Clone, Debug)]
pub struct Cycle {
    /// Length of a round in hours.
    length: usize,
    /// Prefix sums of the effects over the rounds of a week, starting with zero. A week begins on a Thursday, like the
    /// epoch.
    sums: Vec<f64>,
    /// Number of fitted effects.
    pub fitted: usize,
}

/// The effect of each class, and the number of values in it.
#[derive(Default)]
struct ClassEffects([(f64, f64); DAY]);

impl CycleShape {
    /// Determines which effects these rounds show. An effect is shown if its variance far exceeds the variance of the
    /// remaining deviations.
    pub(crate) fn of(rounds: &[ScoreRound], length: RoundLength) -> Self {
        let length = hours(length);
        if rounds.len() * length < method::CYCLE_LEAST_HOURS {
            return Self::default();
        }
        let deviations = deviations(rounds, length);
        Self {
            hours: length < DAY && is_shown(&deviations, |hour| hour % DAY / length),
            weekdays: is_shown(&of_days(&deviations), weekday),
        }
    }
}

impl Cycle {
    /// Fits the effects of this shape to a series.
    pub(crate) fn fit(rounds: &[ScoreRound], length: RoundLength, shape: CycleShape) -> Self {
        let mut cycle = Self {
            length: hours(length),
            sums: Vec::new(),
            fitted: 0,
        };
        let length = cycle.length;
        if shape == CycleShape::default() {
            return cycle;
        }
        let deviations = deviations(rounds, length);
        let by_hour = shape
            .hours
            .then(|| ClassEffects::of(&deviations, |hour| hour % DAY / length));
        let by_weekday = shape
            .weekdays
            .then(|| ClassEffects::of(&of_days(&deviations), weekday));
        let [by_hour, by_weekday] = [by_hour, by_weekday].map(Option::unwrap_or_default);
        let mut sum = 0.0;
        cycle.sums.push(sum);
        for hour in (0..WEEK).step_by(length) {
            sum += by_hour.at(hour % DAY / length) + by_weekday.at(weekday(hour));
            cycle.sums.push(sum);
        }
        cycle.fitted = by_hour.known().saturating_sub(1) + by_weekday.known().saturating_sub(1);
        cycle
    }

    /// The effect on the round that begins at an hour.
    pub(crate) fn at(&self, hour: Hour) -> f64 {
        self.mean(HourRange::one(hour))
    }

    /// The mean effect on the rounds that begin in a range.
    pub(crate) fn mean(&self, range: HourRange) -> f64 {
        if self.sums.is_empty() {
            return 0.0;
        }
        let [from, to] = [range.from, range.to].map(|hour| number(hour).div_ceil(self.length));
        let week = WEEK / self.length;
        let before = |round: usize| {
            let whole = self.sums.last().copied().unwrap_or_default();
            self.sums
                .get(round % week)
                .map_or(0.0, |sum| ratio(round / week, 1) * whole + sum)
        };
        if to <= from {
            0.0
        } else {
            (before(to) - before(from)) * ratio(1, to - from)
        }
    }
}

impl ClassEffects {
    fn of(values: &[(usize, f64)], class: impl Fn(usize) -> usize) -> Self {
        let mut effects = Self([(0.0, 0.0); DAY]);
        for (hour, value) in values {
            if let Some((sum, count)) = effects.0.get_mut(class(*hour)) {
                *sum += value;
                *count += 1.0;
            }
        }
        let known = effects.known().max(1);
        let known_effects = || effects.0.iter().filter(|(_, count)| *count > 0.0);
        let mean = known_effects().map(|(sum, count)| sum / count).sum::<f64>() * ratio(1, known);
        for (effect, count) in effects.0.iter_mut().filter(|(_, count)| *count > 0.0) {
            *effect = *effect / *count - mean;
        }
        effects
    }

    fn known(&self) -> usize {
        self.0.iter().filter(|(_, count)| *count > 0.0).count()
    }

    fn at(&self, class: usize) -> f64 {
        self.0.get(class).map_or(0.0, |(effect, _)| *effect)
    }
}

/// Whether the variance between classes is many times the variance within classes.
fn is_shown(values: &[(usize, f64)], class: impl Fn(usize) -> usize + Copy) -> bool {
    let effects = ClassEffects::of(values, class);
    let between: f64 = effects
        .0
        .iter()
        .map(|(effect, count)| effect * effect * count)
        .sum();
    let within: f64 = values
        .iter()
        .map(|(hour, value)| (value - effects.at(class(*hour))).powi(2))
        .sum();
    let classes = ratio(effects.known(), 1);
    between * (ratio(values.len(), 1) - classes) > method::CYCLE_RATIO * within * (classes - 1.0)
}

/// The deviation of each round from the mean of the week around it.
fn deviations(rounds: &[ScoreRound], length: usize) -> Vec<(usize, f64)> {
    let week = (WEEK / length).min(rounds.len());
    let mut sums = vec![0.0];
    let mut sum = 0.0;
    for round in rounds {
        sum += round.score;
        sums.push(sum);
    }
    rounds
        .iter()
        .enumerate()
        .map(|(at, round)| {
            let from = at.saturating_sub(week / 2).min(rounds.len() - week);
            let around = sums
                .get(from + week)
                .zip(sums.get(from))
                .map_or(0.0, |(to, from)| to - from);
            (number(round.hour), round.score - around * ratio(1, week))
        })
        .collect()
}

/// The mean value of each day.
fn of_days(values: &[(usize, f64)]) -> Vec<(usize, f64)> {
    let days = values.chunk_by(|(one, _), (other, _)| one / DAY == other / DAY);
    days.filter_map(|day| {
        let sum: f64 = day.iter().map(|(_, value)| value).sum();
        day.first()
            .map(|(hour, _)| (*hour, sum * ratio(1, day.len())))
    })
    .collect()
}

fn weekday(hour: usize) -> usize {
    hour / DAY % WEEKDAYS
}

fn number(hour: Hour) -> usize {
    usize::try_from(hour.number()).unwrap_or(usize::MAX)
}

fn hours(length: RoundLength) -> usize {
    usize::try_from(length.hours()).unwrap_or(usize::MAX)
}
