//! The result of a profile: its figures in words, and outcomes that are failures on any machine. A slow figure is no
//! failure.

use hdrhistogram::Histogram;

use super::{
    options::Profile,
    record::{LatencyStats, Outcome, Record, shown},
};

/// The result of a profile.
pub struct ProfileReport {
    pub name: String,
    /// Records of normal traffic, one per run.
    pub runs: Vec<Record>,
    /// Record of the other traffic.
    pub beside: Option<(&'static str, Record)>,
    /// The relevant figures, in words.
    pub verdict: Vec<String>,
    /// Outcomes that are failures on any machine.
    pub wrong: Vec<String>,
}

impl ProfileReport {
    /// The warning about the client's own delay, of the run with the largest.
    pub fn warning(&self) -> Option<String> {
        let beside = self.beside.iter().map(|(_, record)| record);
        let worst = self
            .runs
            .iter()
            .chain(beside)
            .max_by_key(|record| record.lateness(0.99));
        worst.and_then(Record::warning)
    }
}

const SHARES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("max", 1.0),
];

impl ProfileReport {
    pub fn print(&self) {
        let names = SHARES.map(|(name, _)| format!("{name:>9}")).join(" ");
        println!("\n{:<16} requests    per s {names}   outcomes", self.name);
        for record in &self.runs {
            print_rows(record, "");
        }
        if let Some((_, record)) = &self.beside {
            print_rows(record, "by ");
        }
        let late = self.runs.iter().map(|run| run.lateness(0.99)).max();
        println!("  client send delay: p99 {}", shown(late.unwrap_or(0)));
        if let Some(warning) = self.warning() {
            println!("  !! {warning}");
        }
        for line in &self.verdict {
            println!("  {}: {line}", self.name);
        }
        for line in &self.wrong {
            println!("  {}: FAILED: {line}", self.name);
        }
    }
}

fn print_rows(record: &Record, whose: &str) {
    let phases = record.schedule.phases().zip(&record.phases);
    for (phase, stats) in phases.filter(|(_, stats)| stats.total() > 0) {
        let rate = stats.total() as f64 / phase.lasts.as_secs_f64();
        let latencies = SHARES.map(|(_, share)| format!("{:>9}", at(&stats.all, share)));
        println!(
            "  {:<14} {:>8} {rate:>8.0} {}   {}",
            format!("{whose}{}", phase.name),
            stats.total(),
            latencies.join(" "),
            outcomes(stats)
        );
    }
}

fn outcomes(stats: &LatencyStats) -> String {
    let outcomes = stats.outcomes.iter();
    let words = outcomes.map(|(outcome, count)| format!("{count} {}", outcome.word()));
    words.collect::<Vec<_>>().join(", ")
}

/// Outcomes that are failures on any machine.
pub fn wrong(
    profile: Profile,
    runs: &[Record],
    beside: Option<&(&'static str, Record)>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for run in runs {
        wrong.extend(unexpected(run, |outcome| is_expected(profile, outcome)));
    }
    if let Some((_, run)) = beside {
        wrong.extend(unexpected(run, |outcome| {
            is_expected_beside(profile, outcome)
        }));
    }
    wrong
}

fn is_expected_beside(profile: Profile, outcome: Outcome) -> bool {
    match outcome {
        Outcome::Answered(200 | 304, _) => profile == Profile::AbusiveKey,
        Outcome::Answered(401, _) => profile == Profile::KeyFlood,
        Outcome::Answered(429, _) | Outcome::TooLate => true,
        Outcome::Answered(..) | Outcome::CutOff | Outcome::NoConnection => false,
    }
}

/// Outcomes of normal traffic that are no failures.
fn is_expected(profile: Profile, outcome: Outcome) -> bool {
    match outcome {
        Outcome::Answered(200 | 304, _) => true,
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
pub fn at(latencies: &Histogram<u64>, share: f64) -> String {
    shown(latencies.value_at_quantile(share))
}

/// The p99 of a phase as a multiple of the baseline's.
pub fn ratio(
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
