//! Rates, shares and latencies between two samples of a running server.

use std::collections::HashMap;

use crate::accounts::{CountedRequests, RequestCounts};
use crate::statistics::ApplicationUse;
use crate::statistics::UnauthenticatedUse;

use super::sample::ServerSample;

/// Two consecutive samples.
pub(super) struct UsageRates<'s> {
    before: &'s ServerSample,
    pub(super) after: &'s ServerSample,
    /// Time between the samples.
    seconds: f64,
}

/// The change of the request counts of a caller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RequestDelta {
    from: RequestCounts,
    to: RequestCounts,
    seconds: f64,
}

impl<'s> UsageRates<'s> {
    pub(super) fn new(before: &'s ServerSample, after: &'s ServerSample) -> Self {
        // Two samples at the same time would have no rates: one second is assumed.
        let seconds = after.at.mono.since(before.at.mono).as_secs_f64();
        Self {
            before,
            after,
            seconds: if seconds > 0.0 { seconds } else { 1.0 },
        }
    }

    /// Increase of a counter per second. A lower value means that the server was restarted.
    pub(super) fn rate(&self, name: &str, with: &str) -> f64 {
        increase(
            self.before.metrics.sum(name, with),
            self.after.metrics.sum(name, with),
        ) / self.seconds
    }

    /// The share of a counter's increase that has these labels; none if the counter did not increase.
    pub(super) fn share(&self, name: &str, with: &str) -> Option<f64> {
        let all = self.rate(name, "");
        (all > 0.0).then(|| self.rate(name, with) / all)
    }

    /// The current value of a gauge.
    pub(super) fn gauge(&self, name: &str, with: &str) -> f64 {
        self.after.metrics.sum(name, with)
    }

    /// A quantile of a histogram's new observations, interpolated linearly within a bucket as in Prometheus; none if there
    /// are no new observations.
    pub(super) fn quantile(&self, name: &str, quantile: f64) -> Option<f64> {
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

    /// Applications by current request rate, highest first.
    pub(super) fn applications(&self) -> Vec<(&'s ApplicationUse, RequestDelta)> {
        let counted = |sample: &'s ServerSample| {
            let all = sample.usage.applications.iter();
            all.filter_map(|used| Some((used.application.as_str(), used, used.requests?)))
        };
        self.changes(counted(self.before), counted(self.after))
    }

    /// Unauthenticated addresses by current request rate, highest first.
    pub(super) fn unauthenticated(&self) -> Vec<(&'s UnauthenticatedUse, RequestDelta)> {
        let counted = |sample: &'s ServerSample| {
            sample
                .usage
                .unauthenticated
                .iter()
                .map(|used| (used.address.as_str(), used, used.requests))
        };
        self.changes(counted(self.before), counted(self.after))
    }

    /// The change since the previous sample, or the last full minute of a caller that was not in it.
    fn changes<U>(
        &self,
        before: impl Iterator<Item = (&'s str, U, CountedRequests)>,
        after: impl Iterator<Item = (&'s str, U, CountedRequests)>,
    ) -> Vec<(U, RequestDelta)> {
        let known: HashMap<&str, CountedRequests> =
            before.map(|(id, _, counted)| (id, counted)).collect();
        let change = |(id, used, now): (&'s str, U, CountedRequests)| {
            let before = known
                .get(id)
                .filter(|before| before.today.requests <= now.today.requests);
            let change = match before {
                Some(before) => RequestDelta {
                    from: before.today,
                    to: now.today,
                    seconds: self.seconds,
                },
                None => RequestDelta {
                    from: RequestCounts::default(),
                    to: now.last_minute,
                    seconds: 60.0,
                },
            };
            (used, change)
        };
        let mut all: Vec<(U, RequestDelta)> = after.map(change).collect();
        let requests = |change: &RequestDelta| change.rate(|counts| counts.requests);
        all.sort_by(|(_, one), (_, other)| requests(other).total_cmp(&requests(one)));
        all
    }
}

impl RequestDelta {
    /// Requests of a kind per second.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of requests, far below 2^52"
    )]
    pub(super) fn rate(&self, of: fn(&RequestCounts) -> u64) -> f64 {
        of(&self.to).saturating_sub(of(&self.from)) as f64 / self.seconds
    }
}

/// Increase of a counter; a lower value means that it was reset.
fn increase(before: f64, now: f64) -> f64 {
    if now < before { now } else { now - before }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::UsageView;
    use crate::cli::top::sample::ScrapedMetrics;
    use scoregate_base::clock::{Mono, Now, Wall};

    fn counted(requests: u64, last_minute: u64) -> CountedRequests {
        let total = |requests| RequestCounts {
            requests,
            ..RequestCounts::default()
        };
        CountedRequests {
            today: total(requests),
            last_minute: total(last_minute),
            missed: 0,
        }
    }

    fn sample(
        seconds: u64,
        metrics: &str,
        unauthenticated: &[(&str, CountedRequests)],
    ) -> ServerSample {
        let at = Now {
            wall: Wall::from_seconds(seconds),
            mono: Mono::from_nanos(seconds * 1_000_000_000),
        };
        let view = |(address, counted): &(&str, CountedRequests)| UnauthenticatedUse {
            address: (*address).into(),
            requests: *counted,
        };
        let unauthenticated = unauthenticated.iter().map(view).collect();
        let usage = UsageView {
            since: String::new(),
            applications: Vec::new(),
            unauthenticated,
        };
        ServerSample {
            at,
            metrics: ScrapedMetrics::read(metrics),
            usage,
        }
    }

    #[test]
    fn rates_cover_the_time_between_two_samples_and_a_reset_counter_counts_from_zero() {
        let before = sample(10, "a{x=\"1\"} 5\nb 100", &[]);
        let after = sample(14, "a{x=\"1\"} 9\nb 8", &[]);
        let figures = UsageRates::new(&before, &after);
        let rates = (
            figures.rate("a", ""),
            figures.rate("b", ""),
            figures.share("a", "x=\"1\""),
        );
        assert_eq!(format!("{rates:?}"), "(1.0, 2.0, Some(1.0))");
        assert_eq!(
            (figures.share("none", ""), figures.quantile("none", 0.5)),
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
        let before = sample(0, &histogram([5, 5, 5]), &[]);
        let after = sample(1, &histogram([7, 9, 10]), &[]);
        let figures = UsageRates::new(&before, &after);
        // Two new observations up to 1, two up to 3, and one above.
        let quantiles: Vec<_> = [0.2, 0.4, 0.6, 0.9]
            .map(|quantile| figures.quantile("h", quantile))
            .to_vec();
        assert_eq!(
            format!("{quantiles:?}"),
            "[Some(0.5), Some(1.0), Some(2.0), Some(3.0)]"
        );
    }

    #[test]
    fn callers_are_sorted_by_current_rate_and_a_new_caller_has_the_rate_of_the_last_minute() {
        let before = [
            ("much before", counted(1_000, 0)),
            ("much now", counted(10, 0)),
        ];
        let after = [
            ("much before", counted(1_001, 0)),
            ("new", counted(700, 120)),
            ("much now", counted(50, 0)),
        ];
        let before = sample(0, "", &before);
        let after = sample(2, "", &after);
        let figures = UsageRates::new(&before, &after);
        let rows = figures.unauthenticated().into_iter().map(|(used, change)| {
            format!("{} {}", used.address, change.rate(|counts| counts.requests))
        });
        assert_eq!(
            rows.collect::<Vec<_>>(),
            ["much now 20", "new 2", "much before 0.5"]
        );
    }
}
