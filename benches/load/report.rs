//! The report of a run, as text and as JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::record::{Record, Tally, shown};
use super::verdict::Seen;

const SHARES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)];

pub(crate) fn text(seen: &Seen) -> String {
    let mut text = format!("\n{}: {}\n", seen.name, seen.of_whom);
    write!(text, "  {:<14} {:>8} {:>8}", "", "requests", "per s").unwrap();
    for (name, _) in SHARES {
        write!(text, " {name:>9}").unwrap();
    }
    text.push_str("   outcomes\n");
    for record in &seen.runs {
        text.push_str(&rows(record, ""));
    }
    if let Some((_, record)) = &seen.beside {
        text.push_str(&rows(record, "by "));
    }
    let lateness = |share: f64| seen.runs.iter().map(|run| run.lateness(share)).max().unwrap_or(0);
    let queued: u64 = seen.runs.iter().map(|run| run.queued).sum();
    writeln!(
        text,
        "  client send delay: p50 {}, p99 {}; {queued} requests waited for a free connection",
        shown(lateness(0.5)),
        shown(lateness(0.99))
    )
    .unwrap();
    if let Some(complaint) = seen.complaint() {
        writeln!(text, "  !! {complaint}").unwrap();
    }
    for line in &seen.verdict {
        writeln!(text, "  {}: {line}", seen.name).unwrap();
    }
    for line in &seen.wrong {
        writeln!(text, "  {}: FAILED: {line}", seen.name).unwrap();
    }
    text
}

fn rows(record: &Record, whose: &str) -> String {
    let mut rows = String::new();
    for (phase, tally) in record.schedule.phases().zip(&record.phases) {
        if tally.total() == 0 {
            continue;
        }
        let rate = tally.total() as f64 / phase.lasts.as_secs_f64();
        let name = format!("{whose}{}", phase.name);
        write!(rows, "  {name:<14} {:>8} {rate:>8.0}", tally.total()).unwrap();
        for (_, share) in SHARES {
            write!(rows, " {:>9}", shown(tally.all.value_at_quantile(share))).unwrap();
        }
        let outcomes = tally.outcomes.iter().map(|(outcome, count)| format!("{count} {}", outcome.word()));
        writeln!(rows, "   {}", outcomes.collect::<Vec<_>>().join(", ")).unwrap();
    }
    rows
}

pub(crate) fn json(seen: &Seen) -> Value {
    json!({
        "profile": seen.name,
        "of": seen.of_whom,
        "runs": seen.runs.iter().map(run).collect::<Vec<_>>(),
        "beside": seen.beside.as_ref().map(|(name, record)| json!({ "name": name, "run": run(record) })),
        "client_could_not_keep_up": seen.complaint(),
        "verdict": seen.verdict,
        "wrong": seen.wrong,
    })
}

fn run(record: &Record) -> Value {
    let phase = |(phase, tally): (&super::schedule::Phase, &Tally)| {
        json!({
            "name": phase.name,
            "rate": phase.rate,
            "seconds": phase.lasts.as_secs_f64(),
            "latency_us": latencies(&tally.all),
            "latency_of_hits_us": latencies(&tally.hits),
            "latency_from_sending_us": latencies(&tally.from_sent),
            "outcomes": outcomes(tally),
        })
    };
    let second = |tally: &Tally| json!({ "latency_us": latencies(&tally.all), "outcomes": outcomes(tally) });
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
        .map(|(name, share)| ((*name).to_owned(), histogram.value_at_quantile(*share).into()))
        .collect();
    shares.insert("count".into(), histogram.len().into());
    shares.into()
}

fn outcomes(tally: &Tally) -> Value {
    tally.outcomes.iter().map(|(outcome, count)| (outcome.word(), Value::from(*count))).collect()
}
