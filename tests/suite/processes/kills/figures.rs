//! Writes the checked figures of a full run to a dated page.

use std::{fmt::Write as _, time::Duration};

use super::{CRASH_POINTS, End, KillRecord, Size};
use crate::full_runs::{BUILD, CARGO_TEST, cores, write_page};

/// Writes the page to `tests/results/`.
pub fn record(record: &KillRecord, lost: &[Vec<u32>], size: &Size) {
    write_page("kill-loops", "Kill loops", &page(record, lost, size));
}

fn page(record: &KillRecord, lost: &[Vec<u32>], size: &Size) -> String {
    let cores = cores();
    let before = record.runs.iter().filter(|run| run.left.is_empty()).count();
    let mut page = format!(
        "`{CARGO_TEST} --test suite kills::`: the {BUILD} build of the program on one data \
         directory with {} keys, on {cores} cores shared with its callers. {} runs were ended by SIGKILL after 1 to {} \
         responses (seed {}), and {} at a given disk write, {before} of these before they served requests. A last run \
         used the remaining quota and was shut down gracefully.\n\n",
        size.idle_keys as usize + record.load_clients.len(),
        size.kills,
        size.latest,
        record.seed,
        CRASH_POINTS.len(),
    );
    starts(&mut page, record);
    load_clients(&mut page, record, lost);
    runs(&mut page, record, lost);
    page
}

fn starts(page: &mut String, record: &KillRecord) {
    let mut starts: Vec<Duration> = record.runs.iter().filter_map(|run| run.start).collect();
    starts.sort_unstable();
    let millis = |start: Option<&Duration>| start.map_or(0, Duration::as_millis);
    let middle = millis(starts.get(starts.len() / 2));
    let last = millis(starts.last());
    writeln!(
        page,
        "Time from the start of the process until it served: median {middle} ms, maximum {last} ms.\n"
    )
    .unwrap();
}

fn load_clients(page: &mut String, record: &KillRecord, lost: &[Vec<u32>]) {
    page.push_str("| Daily quota | One lease | 200s | Unconfirmed | Lost | Most lost in a run |\n|---:|---:|---:|---:|---:|---:|\n");
    for (at, load_client) in record.load_clients.iter().enumerate() {
        let (delivered, unconfirmed) = record.totals_of_all_runs(at);
        let most = lost.iter().map(|of_each| of_each[at]).max().unwrap_or(0);
        let quota = load_client.quota;
        let lease = load_client.lease(load_client.quota);
        let lost_units = load_client.quota - delivered;
        writeln!(
            page,
            "| {quota} | {lease} | {delivered} | {unconfirmed} | {lost_units} | {most} |"
        )
        .unwrap();
    }
    page.push('\n');
}

fn runs(page: &mut String, record: &KillRecord, lost: &[Vec<u32>]) {
    let quotas: Vec<u32> = record
        .load_clients
        .iter()
        .rev()
        .take(2)
        .map(|load_client| load_client.quota)
        .collect();
    writeln!(
        page,
        "| End | Start | 200s | Unconfirmed | Lost of {} | Lost of {} |",
        quotas[1], quotas[0]
    )
    .unwrap();
    page.push_str("|---|---:|---:|---:|---:|---:|\n");
    let mut lost = lost.iter();
    for run in record
        .runs
        .iter()
        .filter(|run| run.end != End::After(u32::MAX))
    {
        let Some(start) = run.start else {
            writeln!(page, "| {} | | | | | |", describe(run.end)).unwrap();
            continue;
        };
        let of_each = lost.next().unwrap();
        let [small, large] = of_each[of_each.len() - 2..] else {
            continue;
        };
        let delivered: u32 = run.tallies.iter().map(|tally| tally.delivered).sum();
        let unconfirmed: u32 = run.tallies.iter().map(|tally| tally.unconfirmed()).sum();
        let end = describe(run.end);
        let start = start.as_millis();
        writeln!(
            page,
            "| {end} | {start} ms | {delivered} | {unconfirmed} | {small} | {large} |"
        )
        .unwrap();
    }
}

fn describe(end: End) -> String {
    match end {
        End::After(moment) => format!("SIGKILL after {moment} responses"),
        End::Starting(order) => format!("{order:?} during the start"),
        End::Serving(order) => format!("{order:?} while serving"),
    }
}
