//! Advice for the owner of an application, to be given before any limit or revocation.

use super::super::day::DayEvidence;
use super::day_figures::median;

/// Requests from which there is enough evidence.
const ENOUGH_REQUESTS: u32 = 1_000;
/// The share of repeated documents, of refused requests, and of hours that begin in the same minute, from which they are named.
const REPEATED: f64 = 0.5;
const REFUSED: f64 = 0.05;
const SAME_MINUTE: f64 = 0.8;

/// A piece of advice, with the figure that supports it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Advice {
    /// The share of documents that were delivered before in the same hour, from 0 to 1.
    SendIfNoneMatch(f64),
    /// Requests that a limit refused, and days on which that happened.
    HeedLimits(u32, usize),
    /// The share of hours in which the requests began in the same minute, from 0 to 1.
    SpreadRequests(f64),
}

impl Advice {
    /// The advice in plain English.
    pub fn sentence(self) -> String {
        match self {
            Self::SendIfNoneMatch(share) => format!(
                "{:.0} % of the documents that you requested were ones that you already had. Send If-None-Match.",
                (share * 100.0).floor()
            ),
            Self::HeedLimits(times, days) => format!(
                "Requests were refused by a limit {times} times on {days} days. Wait as long as Retry-After states, and request \
                 a document once after each refresh."
            ),
            Self::SpreadRequests(share) => format!(
                "In {:.0} % of the hours your requests began in the same minute, and a limit refused some. Spread them over some \
                 minutes after the refresh.",
                (share * 100.0).floor()
            ),
        }
    }
}

/// Advice about these days: at most three pieces, none without enough requests.
pub fn advice(days: &[DayEvidence]) -> Vec<Advice> {
    let total =
        |count: fn(&DayEvidence) -> u32| days.iter().fold(0, |sum: u32, day| sum.saturating_add(count(day)));
    let (delivered, limited) = (total(|day| day.counts.delivered), total(|day| day.counts.limited));
    let requests = delivered.saturating_add(limited).saturating_add(total(|day| day.counts.unchanged));
    let share = |part: u32, whole: u32| f64::from(part) / f64::from(whole.max(1));
    let (repeated, refused) = (share(total(|day| day.repeated), delivered), share(limited, requests));
    let minutes: Vec<f64> = days
        .iter()
        .flat_map(|day| &day.hours)
        .filter_map(super::super::day::HourSummary::first_minute)
        .map(f64::from)
        .collect();
    let usual = median(minutes.iter().copied());
    let same = minutes.iter().filter(|minute| (**minute - usual).abs() <= 1.0).count();
    let same =
        share(u32::try_from(same).unwrap_or(u32::MAX), u32::try_from(minutes.len()).unwrap_or(u32::MAX));
    let limited_days = days.iter().filter(|day| day.counts.limited > 0).count();
    let pieces = [
        (delivered >= ENOUGH_REQUESTS && repeated >= REPEATED).then_some(Advice::SendIfNoneMatch(repeated)),
        (refused >= REFUSED).then_some(Advice::HeedLimits(limited, limited_days)),
        (refused >= REFUSED && same >= SAME_MINUTE).then_some(Advice::SpreadRequests(same)),
    ];
    if requests >= ENOUGH_REQUESTS { pieces.into_iter().flatten().collect() } else { Vec::new() }
}
