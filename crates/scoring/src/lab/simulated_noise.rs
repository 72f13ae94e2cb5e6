//! Seeded noise for simulations of the method: independent, heavy-tailed, autocorrelated or changing noise, noise with
//! cycles or outliers, and the noise of pass rates.

use std::f64::consts::TAU;

use crate::simulate::SplitMix64;

/// A kind of noise in a series of rounds. The caller chooses the standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoiseKind {
    /// Independent normal values.
    White,
    /// Independent values from Student's t distribution with 3 degrees of freedom, which has frequent and large
    /// outliers.
    HeavyTailed,
    /// A first-order autoregression with this coefficient.
    Autoregressive(f64),
    /// Independent normal values around a weekly cycle with this amplitude, in standard deviations.
    WeeklyCycle(f64),
    /// Independent normal values around a daily cycle with this amplitude.
    DailyCycle(f64),
    /// Independent normal values around a level that is lower by this amount on two days of the week.
    Weekend(f64),
    /// Independent normal values, of which this share are outliers: lower by this amount.
    Outliers(f64, f64),
    /// Independent normal values whose standard deviation is half, equal to or twice the usual one, depending on the day.
    ChangingByDay,
    /// Independent normal values whose standard deviation is multiplied by this factor from this hour on.
    Changed(f64, u32),
    /// The combined score of three suites with this many trials each, which pass with this probability.
    PassRate(f64, u32),
}

/// The weights of the default suites.
const WEIGHTS: [f64; 3] = [0.40, 0.35, 0.25];

/// A noise generator for a series of rounds.
#[derive(Clone, Debug)]
pub struct NoiseGenerator {
    kind: NoiseKind,
    deviation: f64,
    random: SeededNormal,
    state: Option<f64>,
    /// The hour of the next value, and its hour in the cycle.
    hour: f64,
    cycle: f64,
    /// Number of hours between values.
    step: f64,
    /// The factor for the standard deviation, and the day on which it applies.
    today: (f64, f64),
}

/// Normal values from the simulator's random number generator.
#[derive(Clone, Debug)]
pub struct SeededNormal(SplitMix64);

impl NoiseGenerator {
    /// A generator of hourly noise with this standard deviation.
    pub fn new(kind: NoiseKind, deviation: f64, seed: u64) -> Self {
        let mut random = SeededNormal::new(seed);
        // A cycle begins at a random hour of the week.
        let cycle = (random.uniform() * 168.0).floor();
        Self {
            kind,
            deviation,
            random,
            state: None,
            hour: 0.0,
            cycle,
            step: 1.0,
            today: (1.0, -1.0),
        }
    }

    /// Sets the number of hours between values.
    pub fn every(self, hours: u32) -> Self {
        Self {
            step: f64::from(hours),
            ..self
        }
    }

    /// The next value.
    pub fn draw(&mut self) -> f64 {
        let normal = self.random.normal();
        let hour = self.hour;
        self.hour += self.step;
        self.cycle += self.step;
        let sine = |hours: f64| (TAU * self.cycle / hours).sin();
        match self.kind {
            NoiseKind::White => self.deviation * normal,
            NoiseKind::HeavyTailed => self.heavy_tailed(normal),
            NoiseKind::Autoregressive(coefficient) => self.autoregressive(coefficient, normal),
            NoiseKind::WeeklyCycle(amplitude) => amplitude * sine(168.0) + self.deviation * normal,
            NoiseKind::DailyCycle(amplitude) => amplitude * sine(24.0) + self.deviation * normal,
            NoiseKind::Weekend(amount) => {
                let is_weekend = (self.cycle / 24.0).floor() % 7.0 < 2.0;
                lowered(amount, 2.0 / 7.0, is_weekend) + self.deviation * normal
            }
            NoiseKind::Outliers(share, amount) => {
                let is_outlier = self.random.uniform() < share;
                lowered(amount, share, is_outlier) + self.deviation * normal
            }
            NoiseKind::ChangingByDay => self.factor_of_day(hour) * self.deviation * normal,
            NoiseKind::Changed(factor, from) => {
                let factor = if hour < f64::from(from) { 1.0 } else { factor };
                factor * self.deviation * normal
            }
            NoiseKind::PassRate(share, trials) => self.pass_rate(share, trials),
        }
    }

    fn autoregressive(&mut self, coefficient: f64, normal: f64) -> f64 {
        let innovation = (1.0 - coefficient * coefficient).sqrt() * normal;
        let value = self
            .state
            .map_or(normal, |state| coefficient * state + innovation);
        self.state = Some(value);
        self.deviation * value
    }

    fn heavy_tailed(&mut self, normal: f64) -> f64 {
        let squares: f64 = (0..3).map(|_| self.random.normal().powi(2)).sum();
        // The variance of the t distribution is 3.
        self.deviation * normal / (squares / 3.0).sqrt() / 3.0_f64.sqrt()
    }

    fn factor_of_day(&mut self, hour: f64) -> f64 {
        let day = (hour / 24.0).floor();
        if day > self.today.1 {
            self.today.0 = 2.0_f64.powf((self.random.uniform() * 3.0).floor() - 1.0);
            self.today.1 = day;
        }
        self.today.0
    }

    fn pass_rate(&mut self, share: f64, trials: u32) -> f64 {
        let mut points = 0.0;
        for weight in WEIGHTS {
            let passed = (0..trials)
                .filter(|_| self.random.uniform() < share)
                .count();
            points += weight * f64::from(u32::try_from(passed).unwrap_or_default());
        }
        100.0 * (points / f64::from(trials) - share)
    }
}

/// Noise that lowers this share of the values by `amount`, shifted so that the mean is zero.
fn lowered(amount: f64, share: f64, is_lower: bool) -> f64 {
    amount * (share - f64::from(u8::from(is_lower)))
}

impl SeededNormal {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64(seed))
    }

    /// A uniform value from 0 to 1, excluding 1.
    pub fn uniform(&mut self) -> f64 {
        f64::from(u32::try_from(self.0.next() >> 32).unwrap_or_default()) / 4_294_967_296.0
    }

    /// A value with mean 0 and standard deviation 1, never beyond 6: the sum of twelve uniform numbers, whose tails are
    /// close enough to normal.
    pub fn normal(&mut self) -> f64 {
        let evenly = |bits: u64| {
            [bits, bits >> 16, bits >> 32, bits >> 48].map(|bits| (bits & 0xFFFF) as u32)
        };
        let sum: u32 = [self.0.next(), self.0.next(), self.0.next()]
            .into_iter()
            .flat_map(evenly)
            .sum();
        (f64::from(sum) + 6.0) / 65_536.0 - 6.0
    }
}

#[cfg(test)]
mod tests {
    use crate::statistics::SampleSums;

    use super::*;

    fn drawn(kind: NoiseKind, count: usize) -> Vec<f64> {
        let mut all = Vec::new();
        for seed in 0..20 {
            let mut noise = NoiseGenerator::new(kind, 1.5, seed << 20);
            all.extend((0..count).map(|_| noise.draw()));
        }
        all
    }

    #[test]
    fn noise_has_zero_mean_and_the_requested_deviation() {
        let kinds = [
            NoiseKind::White,
            NoiseKind::HeavyTailed,
            NoiseKind::Autoregressive(0.8),
        ];
        for kind in kinds {
            let sums: SampleSums = drawn(kind, 2_000).into_iter().collect();
            assert!(sums.mean().unwrap().abs() < 0.07, "{kind:?} {sums:?}");
            assert!(
                (sums.variance().unwrap().sqrt() - 1.5).abs() < 0.1,
                "{kind:?} {sums:?}"
            );
        }
    }

    #[test]
    fn cycles_outliers_and_shares_have_zero_mean() {
        let kinds = [
            NoiseKind::DailyCycle(2.0),
            NoiseKind::Weekend(3.0),
            NoiseKind::Outliers(0.02, 20.0),
            NoiseKind::ChangingByDay,
            NoiseKind::PassRate(0.98, 5),
        ];
        for kind in kinds {
            let sums: SampleSums = drawn(kind, 2_016).into_iter().collect();
            assert!(sums.mean().unwrap().abs() < 0.07, "{kind:?} {sums:?}");
            assert!(sums.variance().unwrap() > 2.0, "{kind:?} {sums:?}");
        }
    }

    #[test]
    fn neighbours_are_correlated_as_requested() {
        for coefficient in [0.0, 0.5, 0.8] {
            let all = drawn(NoiseKind::Autoregressive(coefficient), 2_000);
            let products: SampleSums = all
                .iter()
                .zip(all.iter().skip(1))
                .map(|(a, b)| a * b)
                .collect();
            assert!(
                (products.mean().unwrap() / 2.25 - coefficient).abs() < 0.03,
                "{coefficient}"
            );
        }
    }
}
