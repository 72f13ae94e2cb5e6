//! Advice for the owner of an application, given before any limit or revocation.

use crate::evidence::day::{DayEvidence, HourSummary};

use super::figures::median;

/// Minimum number of requests for advice.
const ENOUGH_REQUESTS: u32 = 1_000;
/// Minimum shares for advice: of repeated documents, of refused requests, and of hours with the same first minute.
const REPEATED: f64 = 0.5;
const REFUSED: f64 = 0.05;
const SAME_MINUTE: f64 = 0.8;

/// A piece of advice and the figures that support it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Advice {
    /// The share of documents that were delivered again within an hour, from 0 to 1.
    SendIfNoneMatch(f64),
    /// The number of requests refused because of a limit, and the number of days with such refusals.
    HeedLimits(u32, usize),
    /// The share of hours in which requests began in the same minute, from 0 to 1. Given only if enough requests were refused
    /// because of a limit.
    SpreadRequests(f64),
}

impl Advice {
    /// The advice in plain English.
    pub fn sentence(self) -> String {
        match self {
            Self::SendIfNoneMatch(share) => format!(
                "You already had {} of the documents that you requested. Send If-None-Match.",
                percent(share)
            ),
            Self::HeedLimits(times, days) => format!(
                "{times} requests on {days} days were refused because of a limit. Wait as long as Retry-After states."
            ),
            Self::SpreadRequests(share) => format!(
                "In {} of the hours, your requests began in the same minute. Spread them over a few minutes after the \
                 refresh.",
                percent(share)
            ),
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", (share * 100.0).floor())
}

/// Advice about these days. There are at most three pieces, and none if there are too few requests.
pub fn advice(days: &[DayEvidence]) -> Vec<Advice> {
    let sum = |count: fn(&DayEvidence) -> u32| days.iter().map(count).fold(0, u32::saturating_add);
    let delivered = sum(|day| day.counts.delivered);
    let limited = sum(|day| day.counts.limited);
    let requests = sum(|day| day.counts.unchanged)
        .saturating_add(delivered)
        .saturating_add(limited);
    if requests < ENOUGH_REQUESTS {
        return Vec::new();
    }
    let repeated = f64::from(sum(|day| day.repeated)) / f64::from(delivered.max(1));
    let is_refused = f64::from(limited) >= REFUSED * f64::from(requests);
    let limited_days = days.iter().filter(|day| day.counts.limited > 0).count();
    let same = share_of_usual_minute(days);
    let is_repeated = repeated >= REPEATED;
    let pieces = [
        is_repeated.then_some(Advice::SendIfNoneMatch(repeated)),
        is_refused.then_some(Advice::HeedLimits(limited, limited_days)),
        // In every hour, the first request of a continuously active client comes in the first minute.
        (is_refused && !is_repeated && same >= SAME_MINUTE).then_some(Advice::SpreadRequests(same)),
    ];
    pieces.into_iter().flatten().collect()
}

/// The share of hours in which requests began in the usual minute or in an adjacent minute.
fn share_of_usual_minute(days: &[DayEvidence]) -> f64 {
    let minutes: Vec<f64> = days
        .iter()
        .flat_map(|day| &day.hours)
        .filter_map(HourSummary::first_minute)
        .map(f64::from)
        .collect();
    let usual = median(minutes.iter().copied());
    let same = minutes
        .iter()
        .filter(|minute| (*minute - usual).abs() <= 1.0);
    #[expect(clippy::cast_precision_loss, reason = "numbers of hours")]
    let share = same.count() as f64 / minutes.len().max(1) as f64;
    share
}
