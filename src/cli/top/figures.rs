//! Rates, shares and latencies between two samples of a running server.

use super::sample::ServerSample;

/// Two consecutive samples.
pub struct UsageRates<'s> {
    before: &'s ServerSample,
    pub after: &'s ServerSample,
    /// Time between the samples.
    seconds: f64,
}

impl<'s> UsageRates<'s> {
    pub fn new(before: &'s ServerSample, after: &'s ServerSample) -> Self {
        // Rates between two samples at the same time are undefined, so one second is assumed.
        let seconds = after.at.mono.since(before.at.mono).as_secs_f64();
        Self {
            before,
            after,
            seconds: if seconds > 0.0 { seconds } else { 1.0 },
        }
    }

    /// Increase of a counter per second. If the counter is lower than before, the server was restarted.
    pub fn rate(&self, name: &str, with: &[&str]) -> f64 {
        increase(
            self.before.metrics.sum(name, with),
            self.after.metrics.sum(name, with),
        ) / self.seconds
    }

    /// The share of a counter's increase that has one of these labels. `None` if the counter did not increase.
    pub fn share(&self, name: &str, with: &[&str]) -> Option<f64> {
        let all = self.rate(name, &[]);
        (all > 0.0).then(|| self.rate(name, with) / all)
    }

    /// The current value of a gauge.
    pub fn gauge(&self, name: &str, with: &[&str]) -> f64 {
        self.after.metrics.sum(name, with)
    }

    /// A quantile of a histogram's new observations, interpolated linearly within a bucket as in Prometheus. `None` if
    /// there are no new observations.
    pub fn quantile(&self, name: &str, quantile: f64) -> Option<f64> {
        let before = self.before.metrics.buckets(name);
        let counts = self.after.metrics.buckets(name).into_iter().enumerate();
        let new: Vec<(f64, f64)> = counts
            .map(|(index, (bound, count))| {
                (
                    bound,
                    increase(before.get(index).map_or(0.0, |(_, count)| *count), count),
                )
            })
            .collect();
        let all = new
            .last()
            .map(|(_, count)| *count)
            .filter(|all| *all > 0.0)?;
        let rank = all * quantile;
        let index = new.iter().position(|(_, count)| *count >= rank)?;
        let (upper, count) = *new.get(index)?;
        let below = index.checked_sub(1).and_then(|index| new.get(index));
        let (lower, counted) = below.copied().unwrap_or((0.0, 0.0));
        if upper.is_infinite() {
            return Some(lower);
        }
        Some(lower + (upper - lower) * (rank - counted) / (count - counted).max(f64::MIN_POSITIVE))
    }
}

/// Increase of a counter. A lower value means that the counter was reset.
fn increase(before: f64, now: f64) -> f64 {
    if now < before { now } else { now - before }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::UsageView;
    use crate::cli::top::sample::ScrapedMetrics;
    use scoregate_base::clock::{Mono, Now, Wall};

    fn sample(seconds: u64, metrics: &str) -> ServerSample {
        ServerSample {
            at: Now {
                wall: Wall::from_seconds(seconds),
                mono: Mono::from_nanos(seconds * 1_000_000_000),
            },
            metrics: ScrapedMetrics::read(metrics),
            usage: UsageView {
                since: String::new(),
                applications: Vec::new(),
                unauthenticated: Vec::new(),
            },
        }
    }

    #[test]
    fn rates_cover_the_time_between_two_samples_and_a_reset_counter_counts_from_zero() {
        let before = sample(10, "a{x=\"1\"} 5\nb 100");
        let after = sample(14, "a{x=\"1\"} 9\nb 8");
        let figures = UsageRates::new(&before, &after);
        let rates = (
            figures.rate("a", &[]),
            figures.rate("b", &[]),
            figures.share("a", &["x=\"1\""]),
        );
        assert_eq!(format!("{rates:?}"), "(1.0, 2.0, Some(1.0))");
        assert_eq!(
            (figures.share("none", &[]), figures.quantile("none", 0.5)),
            (None, None)
        );
    }

    #[test]
    fn a_quantile_is_interpolated_and_covers_only_new_observations() {
        let histogram = |counts: [u32; 3]| {
            let [low, high, all] = counts;
            format!(
                "h_bucket{{le=\"1\"}} {low}\nh_bucket{{le=\"3\"}} {high}\nh_bucket{{le=\"+Inf\"}} {all}"
            )
        };
        let before = sample(0, &histogram([5, 5, 5]));
        let after = sample(1, &histogram([7, 9, 10]));
        let figures = UsageRates::new(&before, &after);
        // Two new observations up to 1, two from 1 to 3, and one above 3.
        let quantiles: Vec<_> = [0.2, 0.4, 0.6, 0.9]
            .map(|quantile| figures.quantile("h", quantile))
            .to_vec();
        assert_eq!(
            format!("{quantiles:?}"),
            "[Some(0.5), Some(1.0), Some(2.0), Some(3.0)]"
        );
    }
}
