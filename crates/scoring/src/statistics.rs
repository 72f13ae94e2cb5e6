//! Estimates and tests of means and of differences between means.
//!
//! Pure arithmetic on finite numbers. Samples are assumed to be independent, which is nearly true for runs of
//! neighbouring hours.

use super::student::{self, TailQuantiles};

/// Aggregated samples: number, sum and sum of squares.
///
/// Scores are between 0 and 1 and vary by hundredths, so the difference of squares keeps ten digits. A smaller spread
/// is below the resolution of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampleSums {
    /// Number of samples.
    pub count: u32,
    /// The sum of the samples.
    pub sum: f64,
    /// The sum of the squared samples.
    pub squares: f64,
}

/// A mean with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The variance of the mean; `None` for a single sample.
    pub spread: Option<Spread>,
}

/// The variance of a mean, with its degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The variance of the mean.
    pub variance: f64,
    /// Degrees of freedom.
    pub df: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FittedLine {
    /// The slope.
    pub slope: f64,
    /// Two-sided p-value of the slope.
    pub p: f64,
}

impl SampleSums {
    /// Adds a sample.
    pub fn add(&mut self, sample: f64) {
        self.merge(Self {
            count: 1,
            sum: sample,
            squares: sample * sample,
        });
    }

    /// Adds the samples of `other`.
    pub fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// The mean; `None` if there are no samples.
    pub fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }

    /// The sample variance; `None` if there are fewer than two samples.
    pub fn variance(self) -> Option<f64> {
        let n = f64::from(self.count);
        let mean = self.mean().filter(|_| self.count > 1)?;
        // The difference may be negative for equal samples because of rounding.
        Some(((self.squares - n * mean * mean) / (n - 1.0)).max(0.0))
    }
}

impl FromIterator<f64> for SampleSums {
    fn from_iter<I: IntoIterator<Item = f64>>(samples: I) -> Self {
        let mut sums = Self::default();
        samples.into_iter().for_each(|sample| sums.add(sample));
        sums
    }
}

impl Estimate {
    /// A weighted sum of independent estimates, with Welch-Satterthwaite degrees of freedom.
    pub fn weighted(parts: &[(f64, Self)]) -> Self {
        let mean = parts.iter().map(|(weight, part)| weight * part.mean).sum();
        let spreads = parts.iter().map(|(weight, part)| {
            part.spread.map(|known| Spread {
                variance: weight * weight * known.variance,
                ..known
            })
        });
        let spreads: Option<Vec<Spread>> = spreads.collect();
        let spread = spreads
            .filter(|spreads| !spreads.is_empty())
            .map(|spreads| {
                let variance: f64 = spreads.iter().map(|s| s.variance).sum();
                let denominator: f64 = spreads.iter().map(|s| s.variance * s.variance / s.df).sum();
                // If there is no variance, the degrees of freedom are arbitrary. The smallest number is the most
                // conservative.
                let least = spreads.iter().map(|s| s.df).fold(f64::INFINITY, f64::min);
                Spread {
                    variance,
                    df: if denominator > 0.0 {
                        variance * variance / denominator
                    } else {
                        least
                    },
                }
            });
        Self { mean, spread }
    }

    /// The half-width of the confidence interval; `None` if the variance is unknown.
    pub fn reach(&self, bounds: &TailQuantiles) -> Option<f64> {
        let spread = self.spread?;
        Some(bounds.with(spread.df) * spread.variance.sqrt())
    }

    /// Two-sided p-value for a mean of zero; 1 if it cannot be tested.
    pub fn chance_from_zero(&self) -> f64 {
        let distance = Self {
            mean: self.mean.abs(),
            ..*self
        };
        (2.0 * distance.chance_above_zero()).min(1.0)
    }

    /// One-sided p-value for the hypothesis that the mean is at most zero; 1 if it cannot be tested.
    pub fn chance_above_zero(&self) -> f64 {
        match self.spread {
            Some(spread) if spread.variance > 0.0 => {
                student::upper_tail(self.mean / spread.variance.sqrt(), spread.df)
            }
            // If there is no variance, any difference is significant.
            Some(_) if self.mean > 0.0 => 0.0,
            Some(_) | None => 1.0,
        }
    }
}

/// The mean of `before` minus the mean of `now`. Both variances are from the same history, so the smaller degrees of
/// freedom apply.
fn difference(before: Estimate, now: Estimate) -> Estimate {
    let spread = before.spread.zip(now.spread).map(|(before, now)| Spread {
        variance: before.variance + now.variance,
        df: before.df.min(now.df),
    });
    Estimate {
        mean: before.mean - now.mean,
        spread,
    }
}

/// The p-value of a fall from `before` to `now`.
pub fn chance_of_fall(before: Estimate, now: Estimate) -> f64 {
    difference(before, now).chance_above_zero()
}

/// The p-value of a change in either direction.
pub fn chance_of_change(before: Estimate, now: Estimate) -> f64 {
    difference(before, now).chance_from_zero()
}

/// The change that a two-sided test at level `alpha` misses with probability `missed`.
pub fn least_visible_change(
    before: Estimate,
    now: Estimate,
    alpha: f64,
    missed: f64,
) -> Option<f64> {
    let spread = difference(before, now).spread?;
    let quantiles = [alpha / 2.0, missed].map(|tail| student::quantile(tail, spread.df));
    Some(quantiles.iter().sum::<f64>() * spread.variance.sqrt())
}

/// Holm's correction: the adjusted p-values in the given order.
pub fn holm(chances: &[f64]) -> Vec<f64> {
    let mut order: Vec<(usize, f64)> = chances.iter().copied().enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut corrected = Vec::with_capacity(order.len());
    let mut least = 0.0_f64;
    let mut left = chances.iter().map(|_| 1.0).sum::<f64>();
    for (index, chance) in order {
        least = least.max((left * chance).min(1.0));
        left -= 1.0;
        corrected.push((index, least));
    }
    corrected.sort_by_key(|(index, _)| *index);
    corrected.into_iter().map(|(_, chance)| chance).collect()
}

/// The least-squares line through points. The variance about the line is assumed to be at least `least_variance`. `None` if there
/// are fewer than three points or all have the same x.
pub fn line(points: &[(f64, f64)], least_variance: f64) -> Option<FittedLine> {
    let xs: SampleSums = points.iter().map(|(x, _)| *x).collect();
    let ys: SampleSums = points.iter().map(|(_, y)| *y).collect();
    let x_mean = xs.mean()?;
    let y_mean = ys.mean()?;
    let x_squares: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
    if points.len() < 3 || x_squares <= 0.0 {
        return None;
    }
    let slope = points
        .iter()
        .map(|(x, y)| (x - x_mean) * (y - y_mean))
        .sum::<f64>()
        / x_squares;
    let residual_sum: f64 = points
        .iter()
        .map(|(x, y)| (y - y_mean - slope * (x - x_mean)).powi(2))
        .sum();
    let df = f64::from(xs.count) - 2.0;
    let variance = (residual_sum / df).max(least_variance);
    let spread = Some(Spread {
        variance: variance / x_squares,
        df,
    });
    Some(FittedLine {
        slope,
        p: Estimate {
            mean: slope,
            spread,
        }
        .chance_from_zero(),
    })
}

/// The median of non-negative numbers. Their bit patterns have the same order and are faster to compare.
pub fn median(amounts: &[f64]) -> Option<f64> {
    let middle = amounts.len() / 2;
    if amounts.is_empty() {
        return None;
    }
    // Turns a negative zero into zero.
    let mut bits: Vec<u64> = amounts
        .iter()
        .map(|amount| (amount + 0.0).to_bits())
        .collect();
    let (below, upper, _) = bits.select_nth_unstable(middle);
    let upper = *upper;
    let lower = if amounts.len().is_multiple_of(2) {
        below.iter().copied().max()?
    } else {
        upper
    };
    Some(f64::from_bits(lower).midpoint(f64::from_bits(upper)))
}
