//! What a profile has shown: its figures in words, and what must not be on any machine. No figure is wrong by being
//! large. Not for: how profiles are played (`profiles`), nor how all of it is printed (`report`).

use hdrhistogram::Histogram;

use super::options::{Options, Profile};
use super::record::{Outcome, Record, shown};

/// What a profile has shown.
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) of_whom: String,
    /// Of the usual callers, one after the other.
    pub(crate) runs: Vec<Record>,
    /// Of whoever asked beside them.
    pub(crate) beside: Option<(&'static str, Record)>,
    /// The figures that matter, in words.
    pub(crate) verdict: Vec<String>,
    /// What must not be, on any machine.
    pub(crate) wrong: Vec<String>,
}

impl Seen {
    /// What the client has to say of itself, by the run in which it was worst.
    pub(crate) fn complaint(&self) -> Option<String> {
        let beside = self.beside.iter().map(|(_, record)| record);
        let worst = self.runs.iter().chain(beside).max_by_key(|record| record.lateness(0.99));
        worst.and_then(Record::complaint)
    }
}

/// What became of requests that may become of none, however slow the machine is.
pub(crate) fn wrong(
    profile: Profile,
    options: &Options,
    runs: &[Record],
    beside: Option<&(&'static str, Record)>,
) -> Vec<String> {
    let (mut wrong, is_ours) = (Vec::new(), options.address.is_none());
    for run in runs {
        wrong.extend(unexpected(run, |outcome| is_expected(profile, is_ours, outcome)));
    }
    if let Some((_, run)) = beside {
        wrong.extend(unexpected(run, |outcome| is_expected_beside(profile, options.h2, outcome)));
    }
    wrong
}

fn is_expected_beside(profile: Profile, is_http2: bool, outcome: Outcome) -> bool {
    match outcome {
        // Whoever guesses keys loses the connection, and over HTTP/2 another guess may have just been sent on it.
        Outcome::CutOff => profile == Profile::KeyFlood && is_http2,
        Outcome::Answered(200 | 304, _) => profile == Profile::AbusiveKey,
        Outcome::Answered(401, _) => profile == Profile::KeyFlood,
        Outcome::Answered(429, _) | Outcome::TooLate => true,
        Outcome::Answered(..) | Outcome::NoConnection => false,
    }
}

/// What may become of a request of the usual callers, however slow the machine is.
fn is_expected(profile: Profile, is_ours: bool, outcome: Outcome) -> bool {
    match outcome {
        Outcome::Answered(200 | 304, _) => true,
        // The keys of somebody else's gateway have limits.
        Outcome::Answered(429, _) => !is_ours,
        // Where it is asked for more than it can, it may say so.
        Outcome::Answered(503, _) => profile == Profile::Stepped,
        Outcome::TooLate => profile != Profile::Deploy,
        Outcome::Answered(..) | Outcome::CutOff | Outcome::NoConnection => false,
    }
}

fn unexpected(run: &Record, is_expected: impl Fn(Outcome) -> bool) -> Vec<String> {
    let named = run.schedule.stretches().zip(&run.stretches);
    let outcomes = named.flat_map(|(stretch, tally)| {
        tally.outcomes.iter().map(move |(outcome, count)| (stretch, outcome, count))
    });
    let wrong = outcomes.filter(|(_, outcome, _)| !is_expected(**outcome));
    wrong
        .map(|(stretch, outcome, count)| format!("{}: {count} times {}", stretch.name, outcome.word()))
        .collect()
}

/// The latency at this share of the requests.
pub(crate) fn at(latencies: &Histogram<u64>, share: f64) -> String {
    shown(latencies.value_at_quantile(share))
}

/// The p99 of a stretch as a multiple of the calm one's.
pub(crate) fn ratio(
    of_whom: &str,
    calm: &Histogram<u64>,
    name: &str,
    now: &Histogram<u64>,
    goal: Option<f64>,
) -> String {
    let (before, after) = (calm.value_at_quantile(0.99), now.value_at_quantile(0.99));
    let goal = goal.map_or_else(String::new, |goal| format!(" (the goal is {goal})"));
    let times = after as f64 / before.max(1) as f64;
    format!(
        "p99 of {of_whom}: {} in the stretch {name}, {} in the calm one: {times:.2} times{goal}",
        shown(after),
        shown(before)
    )
}
