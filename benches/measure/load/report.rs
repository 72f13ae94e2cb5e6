//! The report of a run, as text and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::record::{LatencyStats, Record, shown};
use super::verdict::ProfileReport;

const SHARES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("max", 1.0),
];

pub(crate) fn text(report: &ProfileReport) -> String {
    let mut text = format!("\n{}: {}\n", report.name, report.destination_name);
    write!(text, "  {:<14} {:>8} {:>8}", "", "requests", "per s").unwrap();
    for (name, _) in SHARES {
        write!(text, " {name:>9}").unwrap();
    }
    text.push_str("   outcomes\n");
    for record in &report.runs {
        text.push_str(&rows(record, ""));
    }
    if let Some((_, record)) = &report.beside {
        text.push_str(&rows(record, "by "));
    }
    let lateness = |share: f64| {
        report
            .runs
            .iter()
            .map(|run| run.lateness(share))
            .max()
            .unwrap_or(0)
    };
    let queued: u64 = report.runs.iter().map(|run| run.queued).sum();
    writeln!(
        text,
        "  client send delay: p50 {}, p99 {}; {queued} requests waited for a free connection",
        shown(lateness(0.5)),
        shown(lateness(0.99))
    )
    .unwrap();
    if let Some(warning) = report.warning() {
        writeln!(text, "  !! {warning}").unwrap();
    }
    for line in &report.verdict {
        writeln!(text, "  {}: {line}", report.name).unwrap();
    }
    for line in &report.wrong {
        writeln!(text, "  {}: FAILED: {line}", report.name).unwrap();
    }
    text
}

fn rows(record: &Record, whose: &str) -> String {
    let mut rows = String::new();
    for (phase, stats) in record.schedule.phases().zip(&record.phases) {
        if stats.total() == 0 {
            continue;
        }
        let rate = stats.total() as f64 / phase.lasts.as_secs_f64();
        let name = format!("{whose}{}", phase.name);
        write!(rows, "  {name:<14} {:>8} {rate:>8.0}", stats.total()).unwrap();
        for (_, share) in SHARES {
            write!(rows, " {:>9}", shown(stats.all.value_at_quantile(share))).unwrap();
        }
        let outcomes = stats
            .outcomes
            .iter()
            .map(|(outcome, count)| format!("{count} {}", outcome.word()));
        writeln!(rows, "   {}", outcomes.collect::<Vec<_>>().join(", ")).unwrap();
    }
    rows
}

pub(crate) fn json(report: &ProfileReport) -> Value {
    json!({
        "profile": report.name,
        "of": report.destination_name,
        "runs": report.runs.iter().map(run).collect::<Vec<_>>(),
        "beside": report.beside.as_ref().map(|(name, record)| json!({ "name": name, "run": run(record) })),
        "client_could_not_keep_up": report.warning(),
        "verdict": report.verdict,
        "wrong": report.wrong,
    })
}

fn run(record: &Record) -> Value {
    let phase = |(phase, stats): (&super::schedule::Phase, &LatencyStats)| {
        json!({
            "name": phase.name,
            "rate": phase.rate,
            "seconds": phase.lasts.as_secs_f64(),
            "latency_us": latencies(&stats.all),
            "latency_of_hits_us": latencies(&stats.hits),
            "latency_from_sending_us": latencies(&stats.from_sent),
            "outcomes": outcomes(stats),
        })
    };
    let second = |stats: &LatencyStats| json!({ "latency_us": latencies(&stats.all), "outcomes": outcomes(stats) });
    json!({
        "phases": record.schedule.phases().zip(&record.phases).map(phase).collect::<Vec<_>>(),
        "seconds": record.seconds.iter().map(second).collect::<Vec<_>>(),
        "client_late_us": { "p50": record.lateness(0.5), "p99": record.lateness(0.99) },
        "found_no_free_connection": record.queued,
    })
}

fn latencies(histogram: &hdrhistogram::Histogram<u64>) -> Value {
    let mut shares: serde_json::Map<String, Value> = SHARES
        .iter()
        .map(|(name, share)| {
            (
                (*name).to_owned(),
                histogram.value_at_quantile(*share).into(),
            )
        })
        .collect();
    shares.insert("count".into(), histogram.len().into());
    shares.into()
}

fn outcomes(stats: &LatencyStats) -> Value {
    stats
        .outcomes
        .iter()
        .map(|(outcome, count)| (outcome.word(), Value::from(*count)))
        .collect()
}
