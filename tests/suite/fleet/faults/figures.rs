//! The figures of a run: printed, and after a full run written to a dated page.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    early_refusals::EarlyRefusals,
    trace::{SeenOutcome, Trace},
};
use crate::full_runs::{BUILD, CARGO_TEST, cores, write_page};

const CAUSES: &str = "Raised | Raised, units left | Outdated | Held | Without the database";

/// Writes the page to `tests/results/`.
pub fn write(trace: &Trace, checked: u32, seed: u64) {
    let cores = cores();
    let page = format!(
        "`{CARGO_TEST} --test suite fleet::faults` with `SCOREGATE_SEED={seed}`: the {BUILD} build of \
         three gateways, a primary and its synchronous standby, on {cores} cores shared with all clients. No quota or \
         minute limit was exceeded, and no revoked key was accepted.\n\n{}",
        figures(trace, checked)
    );
    write_page("fleet-faults", "Gateways and database under faults", &page);
}

/// Writes the tables of ten schedules: one row per schedule, and one row per limit.
pub fn write_early_refusals(rows: &str, all: &EarlyRefusals) {
    let page = format!(
        "`{CARGO_TEST} --test suite fleet::faults::ten_schedules`: `quota_exceeded` responses to paid callers under \
         ten schedules of faults and quota changes, by seed. A refusal is early if a request more than 10 s later got a 200 on the \
         same day. The refusal states the day and the limit.\n\n\
         - *Raised*: the current limit was used up, and was raised later.\n\
         - *Raised, units left*: the same, but some units were unspent: at most one lease of each other gateway, and the units \
         lost by processes that ended.\n\
         - *Outdated*: the limit had been raised at most 5 s earlier, or a fault of the gateway had lasted since the raise.\n\
         - *Held*: such units were unspent, and were spent later without a raise.\n\
         - *Without the database*: a gateway that could not reach the database at that time or within the last 8 s later \
         delivered units that it held, or grace.\n\n\
         | Seed | Refused | Early | {CAUSES} | Unexplained |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n{rows}\n\
         Early refusals by the stated limit:\n\n\
         | Limit | {CAUSES} |\n|---:|---:|---:|---:|---:|---:|\n{}",
        all.rows_by_limit()
    );
    write_page("early-refusals", "Early refusals by the daily quota", &page);
}

/// The figures, and each fault with its start and end.
pub fn described(trace: &Trace, checked: u32) -> String {
    let mut text = figures(trace, checked);
    for fault in &trace.faults {
        writeln!(
            text,
            "{:9.3} to {:9.3} {}",
            fault.from, fault.until, fault.what
        )
        .unwrap();
    }
    text
}

fn figures(trace: &Trace, checked: u32) -> String {
    let mut outcomes: BTreeMap<String, u32> = BTreeMap::new();
    for request in &trace.requests {
        let outcome = match &request.outcome {
            SeenOutcome::Served => "200".to_owned(),
            SeenOutcome::Refused(status, code) => format!("{status} `{code}`"),
            SeenOutcome::Unanswered => "none".to_owned(),
        };
        *outcomes.entry(outcome).or_insert(0) += 1;
    }
    let mut faults: BTreeMap<&str, (u32, f64)> = BTreeMap::new();
    for fault in &trace.faults {
        let kind = fault.what.split('(').next().unwrap_or_default();
        let sum = faults.entry(kind).or_insert((0, 0.0));
        *sum = (sum.0 + 1, sum.1.max(fault.until - fault.from));
    }
    let (charged, unknown) = trace.charged();
    let mut page = format!(
        "There were {} revocations, followed by {checked} requests with revoked keys. {unknown} responses around midnight are in \
         no access log and are not counted for any day.\n\n| Response | Requests |\n|---|---:|\n",
        trace.revocations.len()
    );
    for (outcome, count) in outcomes {
        writeln!(page, "| {outcome} | {count} |").unwrap();
    }
    let early = EarlyRefusals::of(trace);
    writeln!(
        page,
        "\n| Paid requests refused by the daily quota | Early | {CAUSES} | Unexplained |\n|---:|---:|---:|---:|---:|---:|---:|---:|\n{}",
        early.row()
    )
    .unwrap();
    page.push_str("\n| Fault | Times | Longest |\n|---|---:|---:|\n");
    for (kind, (times, longest)) in faults {
        writeln!(page, "| {kind} | {times} | {longest:.1} s |").unwrap();
    }
    page.push_str("\nDaily quotas that were used up after the last fault:\n\n| Quota | Day before | Last day | Unconfirmed |\n|---:|---:|---:|---:|\n");
    for end in &trace.used_up {
        let of_application = charged
            .iter()
            .filter(|((application, _), _)| *application == end.application);
        let mut before = 0;
        let mut last = 0;
        for ((_, day), units) in of_application {
            *(if *day == trace.today {
                &mut last
            } else {
                &mut before
            }) += units;
        }
        let unconfirmed = trace.unconfirmed(end.application);
        writeln!(
            page,
            "| {} | {before} | {last} | {unconfirmed} |",
            end.quota
        )
        .unwrap();
    }
    page
}
