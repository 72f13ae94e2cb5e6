//! The weekly cycle of a series of rounds, if it has one: a line in its spectrum at the period of one week.
//!
//! The noise of a week's mean is measured by differences of days, so a cycle of a week counts as noise although it cancels
//! in the mean of a week. The spectrum of four weeks tells a cycle from correlated noise, whose power changes slowly with
//! the frequency: its power at one week is compared with that at the neighbouring frequencies.

use std::f64::consts::{PI, TAU};
use std::sync::LazyLock;

use super::super::method;

/// Hours of the spectrum.
const SPAN: usize = method::CYCLE_PERIODS * method::CYCLE_HOURS;
/// The frequencies that are compared, in cycles per span: that of the cycle, and as many below as above it.
const FREQUENCIES: [usize; 7] = [1, 2, 3, method::CYCLE_PERIODS, 5, 6, 7];
/// The number of the others.
const NEIGHBOURS: f64 = 6.0;

/// Cosine and sine of each hour's share of the span.
static CIRCLE: LazyLock<Vec<(f64, f64)>> = LazyLock::new(|| {
    let angle = |hour: usize| TAU * float(hour) / float(SPAN);
    (0..SPAN).map(|hour| (angle(hour).cos(), angle(hour).sin())).collect()
});

/// A value of a round, with the hours from the beginning of the history to the beginning of the round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct TimedValue {
    pub(in super::super) hour: usize,
    pub(in super::super) value: f64,
}

/// A cycle with the period of one week.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct WeeklyCycle {
    cosine: f64,
    sine: f64,
}

impl WeeklyCycle {
    /// The cycle of rounds of this length within the last four weeks of a history of so many hours; `None` if there is
    /// none, or too little history.
    pub(in super::super) fn of(rounds: &[TimedValue], history: usize, length: usize) -> Option<Self> {
        let begin = history.checked_sub(SPAN)?;
        let newest = || rounds.iter().filter(|round| (begin..history).contains(&round.hour));
        let number = float(newest().count());
        if number * float(length) < method::CYCLE_COMPLETE_SHARE * float(SPAN) {
            return None;
        }
        let mean = newest().map(|round| round.value).sum::<f64>() / number;
        let mut hours = [0.0; SPAN];
        for round in newest() {
            // The phase counts from the beginning of the history.
            if let Some(slot) = hours.get_mut(round.hour % SPAN) {
                *slot = round.value - mean;
            }
        }
        let lines = FREQUENCIES.map(|frequency| component(&hours, frequency));
        let power = |(cosine, sine): (f64, f64)| cosine * cosine + sine * sine;
        let (mut weekly, mut others, mut line) = (0.0, 0.0, (0.0, 0.0));
        for (frequency, component) in FREQUENCIES.into_iter().zip(lines) {
            if frequency == method::CYCLE_PERIODS {
                (weekly, line) = (power(component), component);
            } else {
                others += power(component);
            }
        }
        let ratio = weekly * NEIGHBOURS / others;
        let chance = (1.0 + ratio / NEIGHBOURS).powf(-NEIGHBOURS);
        let (cosine, sine) = line;
        (chance < method::CYCLE_ALPHA)
            .then_some(Self { cosine: 2.0 * cosine / number, sine: 2.0 * sine / number })
    }

    /// The cycle at an hour of the history.
    pub(in super::super) fn at(self, hour: usize) -> f64 {
        let (cosine, sine) = CIRCLE.get(hour * method::CYCLE_PERIODS % SPAN).copied().unwrap_or_default();
        self.cosine * cosine + self.sine * sine
    }

    /// The mean square of the cycle in means of so many rounds of this length, at a random time.
    pub(in super::super) fn variance_of_mean(self, rounds: usize, length: usize) -> f64 {
        let half_angle = |hours: f64| (PI * hours / float(method::CYCLE_HOURS)).sin();
        let (rounds, length) = (float(rounds), float(length));
        let share = half_angle(rounds * length) / (rounds * half_angle(length));
        f64::midpoint(self.cosine * self.cosine, self.sine * self.sine) * share * share
    }
}

/// The sums of the values times cosine and sine at a frequency. The four weeks are combined first: a frequency shifts its
/// phase by whole quarters from week to week.
fn component(hours: &[f64; SPAN], frequency: usize) -> (f64, f64) {
    let quarter = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)];
    let mut sums = (0.0, 0.0);
    for hour in 0..method::CYCLE_HOURS {
        let (mut real, mut imaginary) = (0.0, 0.0);
        for period in 0..method::CYCLE_PERIODS {
            let value = hours.get(period * method::CYCLE_HOURS + hour).copied().unwrap_or_default();
            let (cosine, sine) = quarter.get(period * frequency % 4).copied().unwrap_or_default();
            real += value * cosine;
            imaginary += value * sine;
        }
        let (cosine, sine) = CIRCLE.get(hour * frequency % SPAN).copied().unwrap_or_default();
        sums.0 += real * cosine - imaginary * sine;
        sums.1 += real * sine + imaginary * cosine;
    }
    sums
}

fn float(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::super::lab::simulated_noise::{NoiseGenerator, NoiseKind};
    use super::super::round_noise::RoundNoise;
    use super::*;

    const MONTH: usize = 720;

    /// A month of hourly rounds.
    fn month(kind: NoiseKind, seed: u64) -> Vec<TimedValue> {
        let mut noise = NoiseGenerator::new(kind, 1.5, seed << 32);
        (0..MONTH).map(|hour| TimedValue { hour, value: 70.0 + noise.draw() }).collect()
    }

    fn found(kind: NoiseKind, seeds: u64) -> usize {
        (0..seeds).filter(|seed| WeeklyCycle::of(&month(kind, *seed), MONTH, 1).is_some()).count()
    }

    #[test]
    fn a_cycle_is_found_with_its_amplitude_also_if_a_fifth_of_the_rounds_is_missing() {
        for seed in 0..50 {
            let rounds = month(NoiseKind::WeeklyCycle(2.0), seed);
            let gaps = rounds.iter().copied().filter(|round| round.hour * 7 % 5 != 0).collect();
            for rounds in [rounds, gaps] {
                let cycle = WeeklyCycle::of(&rounds, MONTH, 1).unwrap();
                assert!((cycle.cosine.hypot(cycle.sine) - 2.0).abs() < 0.4, "{seed}: {cycle:?}");
            }
        }
    }

    #[test]
    fn correlated_noise_is_not_mistaken_for_a_cycle() {
        for (kind, most) in [
            (NoiseKind::White, 4),
            (NoiseKind::HeavyTailed, 4),
            (NoiseKind::Autoregressive(0.8), 4),
            (NoiseKind::Autoregressive(0.95), 6),
        ] {
            let found = found(kind, 1_000);
            assert!(found <= most, "{kind:?}: {found}");
        }
    }

    #[test]
    fn without_the_cycle_the_mean_of_a_week_has_the_variance_of_the_remaining_noise() {
        let mut variances = 0.0;
        for seed in 0..40 {
            let rounds = month(NoiseKind::WeeklyCycle(2.0), seed);
            let cycle = WeeklyCycle::of(&rounds, MONTH, 1).unwrap();
            let rest = rounds.iter().map(|round| round.value - cycle.at(round.hour));
            variances += RoundNoise::of(rest, false).unwrap().of_mean(168).variance * 168.0 / 40.0;
        }
        assert!((0.9..1.3).contains(&(variances / 2.25)), "{variances}");
    }

    #[test]
    fn a_mean_contains_the_part_of_the_cycle_that_does_not_cancel() {
        let cycle = WeeklyCycle { cosine: 0.0, sine: 2.0 };
        assert!(cycle.variance_of_mean(168, 1) < 1e-25 && cycle.variance_of_mean(28, 6) < 1e-25);
        for (rounds, length) in [(240, 1), (10, 24)] {
            let mean = |begin: usize| {
                let hours = (0..rounds).map(|round| begin + round * length);
                hours.map(|hour| cycle.at(hour)).sum::<f64>() / float(rounds)
            };
            let square = (0..168).map(|begin| mean(begin).powi(2)).sum::<f64>() / 168.0;
            let share = cycle.variance_of_mean(rounds, length);
            assert!((share - square).abs() < 1e-12, "{rounds}: {share} {square}");
        }
    }

    #[test]
    fn a_constant_or_short_history_has_no_cycle() {
        let constant: Vec<_> = (0..MONTH).map(|hour| TimedValue { hour, value: 80.0 }).collect();
        assert_eq!(WeeklyCycle::of(&constant, MONTH, 1), None);
        let rounds = month(NoiseKind::WeeklyCycle(2.0), 1);
        assert_eq!(WeeklyCycle::of(&rounds[MONTH - 500..], MONTH, 1), None);
        assert!(WeeklyCycle::of(&rounds[MONTH - 505..], MONTH, 1).is_some());
    }
}
