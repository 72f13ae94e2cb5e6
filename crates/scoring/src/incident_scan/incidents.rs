//! The incidents of one model. Its series is scanned in order of time, starting at the position of the previous scan.
//!
//! Recorded incidents are not changed. Alerts are separate: they test the last day.

use super::{
    degradation_scan::DegradationScan,
    incident::{IncidentHistory, ScanPosition, ScannedIncidents},
    outage_scan::OutageScan,
};
use crate::{
    hour::{Hour, HourRange},
    levels::ScoreLevels,
    period_scores::runs,
    series::ScoreSeries,
};

/// Scans the part of a window that has not been scanned yet. If there is no history, this is the whole window.
pub fn scan(
    series: &ScoreSeries,
    window: HourRange,
    levels: &ScoreLevels,
    history: &IncidentHistory,
) -> ScannedIncidents {
    let length = series.round_length();
    let rounds = series.rounds(window);
    let mut outages = OutageScan::after(history);
    let start = history.position;
    // More runs of the newest round and hour may have been imported, so both are scanned again.
    let first_round = start
        .round
        .map_or(window.from, |hour| length.round_of(hour).from);
    let first_hour = start
        .hour
        .unwrap_or(window.from)
        .clamp(window.from, window.to);
    let old = rounds.partition_point(|round| round.hour < first_round);
    let mut degradations = DegradationScan::after(history, length, levels, rounds, old);
    let mut newest_hour = None;
    for hour in window.hours() {
        let (runs, failed) = series.at(hour).map(runs).unwrap_or_default();
        if hour < first_hour {
            outages.recall_hour(hour, runs, failed);
            continue;
        }
        // The scan of an hour uses only what was known in that hour.
        degradations.observe_until(hour);
        outages.observe_hour(hour, runs, failed, |since: Hour| {
            degradations.baseline_at(since)
        });
        newest_hour = newest_hour.max(Some(hour).filter(|_| runs > 0));
    }
    degradations.observe_until(window.to);
    let newest = ScanPosition {
        round: rounds.last().map(|round| round.hour),
        hour: newest_hour,
    };
    let found = degradations.found().chain(outages.found()).collect();
    history.after(found, start.newest(newest), window)
}
