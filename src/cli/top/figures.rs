//! What two looks at a running server say together: rates, shares and latencies of the time between them.
//!
//! Not for: how it is shown (`frame`).

use std::collections::HashMap;

use crate::admin::{ApplicationUseView, StrangerUseView};
use crate::gateway::{CountedRequests, RequestCounts};

use super::sample::ServerSample;

/// Two looks, one after the other.
pub(super) struct UsageRates<'s> {
    before: &'s ServerSample,
    /// The later one.
    pub(super) after: &'s ServerSample,
    /// The seconds between them.
    seconds: f64,
}

/// How one who asks was counted before and after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RequestDelta {
    from: RequestCounts,
    to: RequestCounts,
    seconds: f64,
}

impl<'s> UsageRates<'s> {
    /// What these two say.
    pub(super) fn of(before: &'s ServerSample, after: &'s ServerSample) -> Self {
        // Two looks at one instant have no rates: then everything is told as it were a second.
        let seconds = after.at.mono.since(before.at.mono).as_secs_f64();
        Self { before, after, seconds: if seconds > 0.0 { seconds } else { 1.0 } }
    }

    /// How often a second a counter rose. One that is lower than before began anew, with its server.
    pub(super) fn rate(&self, name: &str, with: &str) -> f64 {
        risen(self.before.metrics.sum(name, with), self.after.metrics.sum(name, with)) / self.seconds
    }

    /// Which part of a counter's rise has these labels; none if it did not rise.
    pub(super) fn share(&self, name: &str, with: &str) -> Option<f64> {
        let all = self.rate(name, "");
        (all > 0.0).then(|| self.rate(name, with) / all)
    }

    /// What a gauge says now.
    pub(super) fn gauge(&self, name: &str, with: &str) -> f64 {
        self.after.metrics.sum(name, with)
    }

    /// Below what this part of a histogram's new observations lies, in between two bounds as if they were even there;
    /// none if there were none. As Prometheus has it.
    pub(super) fn quantile(&self, name: &str, part: f64) -> Option<f64> {
        let before = self.before.metrics.buckets(name);
        let counts = self.after.metrics.buckets(name).into_iter().enumerate();
        let new: Vec<(f64, f64)> = counts
            .map(|(place, (bound, count))| {
                (bound, risen(before.get(place).map_or(0.0, |(_, count)| *count), count))
            })
            .collect();
        let all = new.last().map(|(_, count)| *count).filter(|all| *all > 0.0)?;
        let rank = all * part;
        let place = new.iter().position(|(_, count)| *count >= rank)?;
        let (upper, count) = *new.get(place)?;
        let below = place.checked_sub(1).and_then(|place| new.get(place));
        let (lower, counted) = below.copied().unwrap_or((0.0, 0.0));
        if upper.is_infinite() {
            return Some(lower);
        }
        Some(lower + (upper - lower) * (rank - counted) / (count - counted).max(f64::MIN_POSITIVE))
    }

    /// The applications, whoever asks most at the moment first.
    pub(super) fn applications(&self) -> Vec<(&'s ApplicationUseView, RequestDelta)> {
        let counted = |sample: &'s ServerSample| {
            let all = sample.usage.applications.iter();
            all.filter_map(|used| Some((used.application.as_str(), used, used.requests?)))
        };
        self.changes(counted(self.before), counted(self.after))
    }

    /// The strangers, whoever has most refused at the moment first.
    pub(super) fn strangers(&self) -> Vec<(&'s StrangerUseView, RequestDelta)> {
        let counted = |sample: &'s ServerSample| {
            sample.usage.unauthenticated.iter().map(|used| (used.address.as_str(), used, used.requests))
        };
        self.changes(counted(self.before), counted(self.after))
    }

    /// What came since the look before; of one that was not in it, what the last whole minute says.
    fn changes<U>(
        &self,
        before: impl Iterator<Item = (&'s str, U, CountedRequests)>,
        after: impl Iterator<Item = (&'s str, U, CountedRequests)>,
    ) -> Vec<(U, RequestDelta)> {
        let known: HashMap<&str, CountedRequests> = before.map(|(who, _, counted)| (who, counted)).collect();
        let change = |(who, used, now): (&'s str, U, CountedRequests)| {
            let before = known.get(who).filter(|before| before.today.requests <= now.today.requests);
            let change = match before {
                Some(before) => RequestDelta { from: before.today, to: now.today, seconds: self.seconds },
                None => RequestDelta { from: RequestCounts::default(), to: now.last_minute, seconds: 60.0 },
            };
            (used, change)
        };
        let mut all: Vec<(U, RequestDelta)> = after.map(change).collect();
        let requests = |change: &RequestDelta| change.rate(|tally| tally.requests);
        all.sort_by(|(_, one), (_, other)| requests(other).total_cmp(&requests(one)));
        all
    }
}

impl RequestDelta {
    /// How many of a kind came in a second.
    #[expect(clippy::cast_precision_loss, reason = "counts of requests, far below 2^52")]
    pub(super) fn rate(&self, of: fn(&RequestCounts) -> u64) -> f64 {
        of(&self.to).saturating_sub(of(&self.from)) as f64 / self.seconds
    }
}

/// By how much a counter rose: one that is lower than before began anew.
fn risen(before: f64, now: f64) -> f64 {
    if now < before { now } else { now - before }
}

#[cfg(test)]
mod tests {
    use super::super::sample::ScrapedMetrics;
    use super::*;
    use crate::admin::UsageView;
    use crate::clock::{Mono, Now, Wall};

    fn counted(requests: u64, last_minute: u64) -> CountedRequests {
        let tally = |requests| RequestCounts { requests, ..RequestCounts::default() };
        CountedRequests { today: tally(requests), last_minute: tally(last_minute), missed: 0 }
    }

    fn look(seconds: u64, metrics: &str, strangers: &[(&str, CountedRequests)]) -> ServerSample {
        let at = Now { wall: Wall::from_seconds(seconds), mono: Mono::from_nanos(seconds * 1_000_000_000) };
        let view = |(address, counted): &(&str, CountedRequests)| StrangerUseView {
            address: (*address).into(),
            requests: *counted,
        };
        let strangers = strangers.iter().map(view).collect();
        let usage = UsageView { since: String::new(), applications: Vec::new(), unauthenticated: strangers };
        ServerSample { at, metrics: ScrapedMetrics::read(metrics), usage }
    }

    #[test]
    fn rates_are_of_the_time_between_two_looks_and_a_counter_that_began_anew_counts_from_nothing() {
        let (before, after) = (look(10, "a{x=\"1\"} 5\nb 100", &[]), look(14, "a{x=\"1\"} 9\nb 8", &[]));
        let figures = UsageRates::of(&before, &after);
        let told = (figures.rate("a", ""), figures.rate("b", ""), figures.share("a", "x=\"1\""));
        assert_eq!(format!("{told:?}"), "(1.0, 2.0, Some(1.0))");
        assert_eq!((figures.share("none", ""), figures.quantile("none", 0.5)), (None, None));
    }

    #[test]
    fn a_quantile_lies_between_two_bounds_and_counts_only_what_is_new() {
        let histogram = |counts: [u32; 3]| {
            let [low, high, all] = counts;
            format!("h_bucket{{le=\"1\"}} {low}\nh_bucket{{le=\"3\"}} {high}\nh_bucket{{le=\"+Inf\"}} {all}")
        };
        let (before, after) = (look(0, &histogram([5, 5, 5]), &[]), look(1, &histogram([7, 9, 10]), &[]));
        let figures = UsageRates::of(&before, &after);
        // New are two up to 1, two up to 3, one above.
        let told: Vec<_> = [0.2, 0.4, 0.6, 0.9].map(|part| figures.quantile("h", part)).to_vec();
        assert_eq!(format!("{told:?}"), "[Some(0.5), Some(1.0), Some(2.0), Some(3.0)]");
    }

    #[test]
    fn whoever_asks_most_at_the_moment_is_first_and_one_unknown_before_is_told_by_the_last_minute() {
        let before = [("much before", counted(1_000, 0)), ("much now", counted(10, 0))];
        let after =
            [("much before", counted(1_001, 0)), ("new", counted(700, 120)), ("much now", counted(50, 0))];
        let (before, after) = (look(0, "", &before), look(2, "", &after));
        let figures = UsageRates::of(&before, &after);
        let told = figures
            .strangers()
            .into_iter()
            .map(|(used, change)| format!("{} {}", used.address, change.rate(|tally| tally.requests)));
        assert_eq!(told.collect::<Vec<_>>(), ["much now 20", "new 2", "much before 0.5"]);
    }
}
