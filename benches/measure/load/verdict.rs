//! The result of a profile: its figures in words, and outcomes that are failures on any machine. A slow figure is no
//! failure.

use hdrhistogram::Histogram;

use super::options::{Options, Profile};
use super::record::{Outcome, Record, shown};

/// The result of a profile.
pub(crate) struct ProfileReport {
    pub(crate) name: String,
    pub(crate) destination_name: String,
    /// Records of normal traffic, one per run.
    pub(crate) runs: Vec<Record>,
    /// Record of the other traffic.
    pub(crate) beside: Option<(&'static str, Record)>,
    /// The relevant figures, in words.
    pub(crate) verdict: Vec<String>,
    /// Outcomes that are failures on any machine.
    pub(crate) wrong: Vec<String>,
}

impl ProfileReport {
    /// The warning about the client's own delay, of the run with the largest.
    pub(crate) fn warning(&self) -> Option<String> {
        let beside = self.beside.iter().map(|(_, record)| record);
        let worst = self
            .runs
            .iter()
            .chain(beside)
            .max_by_key(|record| record.lateness(0.99));
        worst.and_then(Record::warning)
    }
}

/// Outcomes that are failures on any machine.
pub(crate) fn wrong(
    profile: Profile,
    options: &Options,
    runs: &[Record],
    beside: Option<&(&'static str, Record)>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let is_ours = options.address.is_none();
    for run in runs {
        wrong.extend(unexpected(run, |outcome| {
            is_expected(profile, is_ours, outcome)
        }));
    }
    if let Some((_, run)) = beside {
        wrong.extend(unexpected(run, |outcome| {
            is_expected_beside(profile, options.h2, outcome)
        }));
    }
    wrong
}

fn is_expected_beside(profile: Profile, is_http2: bool, outcome: Outcome) -> bool {
    match outcome {
        // A client with unknown keys is disconnected; over HTTP/2 another request may just have been sent.
        Outcome::CutOff => profile == Profile::KeyFlood && is_http2,
        Outcome::Answered(200 | 304, _) => profile == Profile::AbusiveKey,
        Outcome::Answered(401, _) => profile == Profile::KeyFlood,
        Outcome::Answered(429, _) | Outcome::TooLate => true,
        Outcome::Answered(..) | Outcome::NoConnection => false,
    }
}

/// Outcomes of normal traffic that are no failures.
fn is_expected(profile: Profile, is_ours: bool, outcome: Outcome) -> bool {
    match outcome {
        Outcome::Answered(200 | 304, _) => true,
        // The keys of an external gateway have limits.
        Outcome::Answered(429, _) => !is_ours,
        // `stepped` exceeds the capacity on purpose.
        Outcome::Answered(503, _) => profile == Profile::Stepped,
        Outcome::TooLate => profile != Profile::Deploy,
        Outcome::Answered(..) | Outcome::CutOff | Outcome::NoConnection => false,
    }
}

fn unexpected(run: &Record, is_expected: impl Fn(Outcome) -> bool) -> Vec<String> {
    let named = run.schedule.phases().zip(&run.phases);
    let outcomes = named.flat_map(|(phase, stats)| {
        stats
            .outcomes
            .iter()
            .map(move |(outcome, count)| (phase, outcome, count))
    });
    let wrong = outcomes.filter(|(_, outcome, _)| !is_expected(**outcome));
    wrong
        .map(|(phase, outcome, count)| {
            format!("{}: {} ({count} times)", phase.name, outcome.word())
        })
        .collect()
}

/// A percentile of the latency.
pub(crate) fn at(latencies: &Histogram<u64>, share: f64) -> String {
    shown(latencies.value_at_quantile(share))
}

/// The p99 of a phase as a multiple of the baseline's.
pub(crate) fn ratio(
    destination_name: &str,
    baseline: &Histogram<u64>,
    name: &str,
    now: &Histogram<u64>,
    goal: Option<f64>,
) -> String {
    let before = baseline.value_at_quantile(0.99);
    let after = now.value_at_quantile(0.99);
    let goal = goal.map_or_else(String::new, |goal| format!(" (target {goal})"));
    let times = after as f64 / before.max(1) as f64;
    format!(
        "p99 of {destination_name}: {} in phase {name}, {} in the baseline: ratio {times:.2}{goal}",
        shown(after),
        shown(before)
    )
}
