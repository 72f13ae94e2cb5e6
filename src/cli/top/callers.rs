//! The tables of callers on a page of `top`, highest rate first.

use crate::statistics::{ApplicationUse, RemainingAllowance};

use super::figures::{RequestDelta, UsageRates};
use super::frame_line::FrameLine;
use super::words::{as_f64, count, rate, short};

pub(super) fn applications(figures: &UsageRates<'_>) -> Vec<FrameLine> {
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
    let row = |(used, change): &(&ApplicationUse, RequestDelta)| {
        let rates = |of| rate(change.rate(of));
        let today = used.requests.map_or(0, |counted| counted.today.requests);
        let is_day = |limit: &&RemainingAllowance| limit.name == "day";
        let remaining = used
            .limits
            .iter()
            .find(is_day)
            .map_or(0, |limit| limit.remaining);
        format!(
            "{:<15}  {:<12} {:>8} {:>8} {:>8} {:>9} {:>8} {:>14} {:>11}  {}",
            used.application,
            short(&used.tier, 12),
            rates(|counts| counts.requests),
            rates(|counts| counts.delivered),
            rates(|counts| counts.unchanged),
            rates(|counts| counts.limited),
            rates(|counts| counts.failed),
            count(as_f64(today)),
            count(f64::from(remaining)),
            short(&used.name, 40),
        )
    };
    table(header, figures.applications().iter().map(row).collect())
}

pub(super) fn unauthenticated(figures: &UsageRates<'_>) -> Vec<FrameLine> {
    let header = format!(
        "{:<40} {:>10} {:>10} {:>14}",
        "UNAUTHENTICATED", "REFUSED/S", "LIMITED/S", "REQUESTS TODAY"
    );
    let rows = figures.unauthenticated().into_iter().map(|(used, change)| {
        let rates = |of| rate(change.rate(of));
        let today = count(as_f64(used.requests.today.requests));
        let refused = rates(|counts| counts.requests);
        let limited = rates(|counts| counts.limited);
        format!(
            "{:<40} {refused:>10} {limited:>10} {today:>14}",
            used.address
        )
    });
    table(header, rows.collect())
}

fn table(header: String, rows: Vec<String>) -> Vec<FrameLine> {
    if rows.is_empty() {
        return Vec::new();
    }
    let rows = rows.into_iter().map(FrameLine::plain);
    [FrameLine::plain(String::new()), FrameLine::header(header)]
        .into_iter()
        .chain(rows)
        .collect()
}
