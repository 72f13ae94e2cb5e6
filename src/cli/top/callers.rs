//! The tables of callers on a page of `top`, sorted by the requests of the last full minute.

use crate::{
    accounts::CountedRequests,
    statistics::{ApplicationUse, RemainingAllowance, UnauthenticatedUse},
};

use super::words::{as_f64, count, rate, short};

pub fn applications(used: &[ApplicationUse]) -> Vec<String> {
    let header = format!(
        "{:<15}  {:<12} {:>8} {:>8} {:>8} {:>9} {:>8} {:>14} {:>11}  NAME",
        "APPLICATION",
        "TIER",
        "REQ/S",
        "DATA/S",
        "304/S",
        "LIMITED/S",
        "FAILED/S",
        "REQUESTS TODAY",
        "UNITS LEFT"
    );
    let counted = used.iter().filter_map(|used| Some((used, used.requests?)));
    table(header, counted.collect(), application)
}

fn application(used: &ApplicationUse, counted: CountedRequests) -> String {
    let counts = counted.last_minute;
    let day = used
        .limits
        .iter()
        .find(|limit: &&RemainingAllowance| limit.name == "day");
    format!(
        "{:<15}  {:<12} {:>8} {:>8} {:>8} {:>9} {:>8} {:>14} {:>11}  {}",
        used.application,
        short(&used.tier, 12),
        per_second(counts.requests),
        per_second(counts.delivered),
        per_second(counts.unchanged),
        per_second(counts.limited),
        per_second(counts.failed),
        count(as_f64(counted.today.requests)),
        count(day.map_or(0.0, |limit| f64::from(limit.remaining))),
        short(&used.name, 40),
    )
}

pub fn unauthenticated(used: &[UnauthenticatedUse]) -> Vec<String> {
    let header = format!(
        "{:<40} {:>10} {:>10} {:>14}",
        "UNAUTHENTICATED", "REFUSED/S", "LIMITED/S", "REQUESTS TODAY"
    );
    let counted = used.iter().map(|used| (used, used.requests));
    table(header, counted.collect(), |used, counted| {
        format!(
            "{:<40} {:>10} {:>10} {:>14}",
            used.address,
            per_second(counted.last_minute.requests),
            per_second(counted.last_minute.limited),
            count(as_f64(counted.today.requests)),
        )
    })
}

fn per_second(in_a_minute: u64) -> String {
    rate(as_f64(in_a_minute) / 60.0)
}

/// A table with a header. Empty if there are no rows.
fn table<U>(
    header: String,
    mut callers: Vec<(&U, CountedRequests)>,
    row: impl Fn(&U, CountedRequests) -> String,
) -> Vec<String> {
    if callers.is_empty() {
        return Vec::new();
    }
    callers.sort_by_key(|(_, counted)| std::cmp::Reverse(counted.last_minute.requests));
    let rows = callers
        .into_iter()
        .map(|(used, counted)| row(used, counted));
    [String::new(), header].into_iter().chain(rows).collect()
}
