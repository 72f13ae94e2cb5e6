//! Results of requests: latency histograms and counts of outcomes, for each phase.
//!
//! A latency counts from the time a request was due, the wait for a free connection included. The client's own delay
//! is recorded separately, so that it is not attributed to the server.

use std::{collections::BTreeMap, time::Duration};

use hdrhistogram::Histogram;

use super::schedule::Schedule;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// A complete response: its status, and the source in `Cache-Status`.
    Answered(u16, &'static str),
    /// No connection could be opened.
    NoConnection,
    /// The connection ended before the response was complete.
    CutOff,
    /// No response in time.
    TooLate,
}

/// The result of one request; times count from the start of the run.
#[derive(Clone, Copy, Debug)]
pub struct RequestResult {
    pub phase: usize,
    pub due: Duration,
    pub sent: Duration,
    pub ended: Duration,
    pub outcome: Outcome,
    /// Whether an idle connection was waiting for it: then a late start is the client's own delay.
    pub was_awaited: bool,
}

/// Requests that are reported together.
#[derive(Clone, Debug)]
pub struct LatencyStats {
    pub all: Histogram<u64>,
    /// Of responses served from the cache.
    pub hits: Histogram<u64>,
    pub outcomes: BTreeMap<Outcome, u64>,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Record {
    pub schedule: Schedule,
    pub phases: Vec<LatencyStats>,
    /// The client's own delay: of requests for which a connection was idle.
    sent: Histogram<u64>,
}

/// Acceptable p99 of the client's own delay; beyond it the figures describe the client.
const LATE: Duration = Duration::from_millis(2);

impl Outcome {
    /// Its name in the report.
    pub fn word(self) -> String {
        match self {
            Self::Answered(status, "") => status.to_string(),
            Self::Answered(status, word) => format!("{status} {word}"),
            Self::NoConnection => "no connection".into(),
            Self::CutOff => "cut off".into(),
            Self::TooLate => "too late".into(),
        }
    }

    /// Whether the caller has the document.
    pub fn is_delivered(self) -> bool {
        matches!(self, Self::Answered(200 | 304, _))
    }

    /// Whether it was served from the cache.
    fn is_hit(self) -> bool {
        matches!(self, Self::Answered(200 | 304, "hit" | "stale"))
    }
}

impl LatencyStats {
    fn new() -> Self {
        let empty = Histogram::new(3).expect("up to five digits can be had");
        Self {
            all: empty.clone(),
            hits: empty,
            outcomes: BTreeMap::new(),
        }
    }

    fn take(&mut self, result: &RequestResult) {
        let latency = micros(result.ended.saturating_sub(result.due));
        put(&mut self.all, latency);
        if result.outcome.is_hit() {
            put(&mut self.hits, latency);
        }
        *self.outcomes.entry(result.outcome).or_default() += 1;
    }

    pub fn count(&self, which: impl Fn(Outcome) -> bool) -> u64 {
        self.outcomes
            .iter()
            .filter(|(outcome, _)| which(**outcome))
            .map(|(_, count)| count)
            .sum()
    }

    pub fn total(&self) -> u64 {
        self.count(|_| true)
    }

    /// Share of requests that failed although their keys were within their limits.
    pub fn failed(&self) -> f64 {
        let is_refused = |outcome| matches!(outcome, Outcome::Answered(429, _));
        let failed = self.count(|outcome| !outcome.is_delivered() && !is_refused(outcome));
        failed as f64 / self.total().max(1) as f64
    }
}

impl Record {
    pub fn new(schedule: Schedule) -> Self {
        let phases = schedule.phases().map(|_| LatencyStats::new()).collect();
        Self {
            schedule,
            phases,
            sent: Histogram::new(3).expect("up to five digits can be had"),
        }
    }

    pub fn take(&mut self, result: &RequestResult) {
        self.phases[result.phase].take(result);
        if result.was_awaited {
            put(
                &mut self.sent,
                micros(result.sent.saturating_sub(result.due)),
            );
        }
    }

    /// The client's own delay at this percentile, in microseconds.
    pub fn lateness(&self, share: f64) -> u64 {
        self.sent.value_at_quantile(share)
    }

    /// The phase with this name.
    pub fn of(&self, name: &str) -> &LatencyStats {
        let at = self.schedule.phases().position(|phase| phase.name == name);
        &self.phases[at.expect("the profile has defined the phase")]
    }

    /// A warning if the client could not keep up.
    pub fn warning(&self) -> Option<String> {
        let late = self.lateness(0.99);
        (late > micros(LATE)).then(|| {
            format!(
                "THE CLIENT COULD NOT KEEP UP: it sent one request of a hundred {} late. Its latencies show \
                 nothing about the server; lower the rate or use a less busy machine.",
                shown(late)
            )
        })
    }
}

fn put(histogram: &mut Histogram<u64>, micros: u64) {
    histogram.record(micros).expect("it grows with what comes");
}

/// Whole microseconds, rounded up.
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// Microseconds for people.
pub fn shown(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} us"),
        1_000..1_000_000 => format!("{:.2} ms", micros as f64 / 1e3),
        _ => format!("{:.2} s", micros as f64 / 1e6),
    }
}
