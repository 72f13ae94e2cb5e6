//! What became of the requests: histograms of latency and counts of outcomes, for each phase and each second.
//!
//! A latency is counted from the instant a request was due, waiting for a free connection included. What the client
//! itself was late is kept apart, so that nobody blames the server for it. Not for: what it means (`profiles`).

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::schedule::Schedule;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// By a whole answer: its status, and the word of its `Cache-Status`.
    Answered(u16, &'static str),
    /// There was no connection to be had.
    NoConnection,
    /// The connection ended before the whole answer was there.
    CutOff,
    /// There was no answer in time.
    TooLate,
}

/// What became of one request, and when, all counted from the begin of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    pub(crate) phase: usize,
    pub(crate) due: Duration,
    pub(crate) sent: Duration,
    pub(crate) ended: Duration,
    pub(crate) outcome: Outcome,
    /// Whether a connection stood idle for it: what it was sent late then is the client's own fault.
    pub(crate) was_awaited: bool,
}

/// Requests that are told together.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    pub(crate) all: Histogram<u64>,
    /// Of those that were answered from what is stored.
    pub(crate) hits: Histogram<u64>,
    /// From when it was sent: what a client would see that waits for the server before it asks again.
    pub(crate) from_sent: Histogram<u64>,
    pub(crate) outcomes: BTreeMap<Outcome, u64>,
}

/// A run.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) schedule: Schedule,
    pub(crate) phases: Vec<Tally>,
    pub(crate) seconds: Vec<Tally>,
    /// How late the client itself let requests go.
    released: Histogram<u64>,
    /// How late it had sent those for which a connection stood idle.
    sent: Histogram<u64>,
    /// How many found no free connection.
    pub(crate) queued: u64,
}

/// The client's own lateness may be so large in one request of a hundred; beyond that its figures are of itself.
const LATE: Duration = Duration::from_millis(2);

impl Outcome {
    /// Its word in the report.
    pub(crate) fn word(self) -> String {
        match self {
            Self::Answered(status, "") => status.to_string(),
            Self::Answered(status, word) => format!("{status} {word}"),
            Self::NoConnection => "no connection".into(),
            Self::CutOff => "cut off".into(),
            Self::TooLate => "too late".into(),
        }
    }

    /// Whether the caller has what was asked for.
    pub(crate) fn is_delivered(self) -> bool {
        matches!(self, Self::Answered(200 | 304, _))
    }

    /// Whether it was answered from what is stored.
    fn is_hit(self) -> bool {
        matches!(self, Self::Answered(200 | 304, "hit" | "stale"))
    }
}

impl Tally {
    /// With so many digits of a latency that can be relied on.
    fn new(digits: u8) -> Self {
        let empty = Histogram::new(digits).expect("up to five digits can be had");
        Self { all: empty.clone(), hits: empty.clone(), from_sent: empty, outcomes: BTreeMap::new() }
    }

    fn take(&mut self, heard: &Heard) {
        let latency = micros(heard.ended.saturating_sub(heard.due));
        put(&mut self.all, latency);
        if heard.outcome.is_hit() {
            put(&mut self.hits, latency);
        }
        put(&mut self.from_sent, micros(heard.ended.saturating_sub(heard.sent)));
        *self.outcomes.entry(heard.outcome).or_default() += 1;
    }

    pub(crate) fn count(&self, which: impl Fn(Outcome) -> bool) -> u64 {
        self.outcomes.iter().filter(|(outcome, _)| which(**outcome)).map(|(_, count)| count).sum()
    }

    pub(crate) fn total(&self) -> u64 {
        self.count(|_| true)
    }

    /// The share of those that were not delivered, though their keys had not spent their limits.
    pub(crate) fn failed(&self) -> f64 {
        let is_refused = |outcome| matches!(outcome, Outcome::Answered(429, _));
        let failed = self.count(|outcome| !outcome.is_delivered() && !is_refused(outcome));
        failed as f64 / self.total().max(1) as f64
    }
}

impl Record {
    pub(crate) fn new(schedule: Schedule) -> Self {
        let phases = schedule.phases().map(|_| Tally::new(3)).collect();
        let empty = Histogram::new(3).expect("up to five digits can be had");
        Self { schedule, phases, seconds: Vec::new(), released: empty.clone(), sent: empty, queued: 0 }
    }

    pub(crate) fn take(&mut self, heard: &Heard) {
        self.phases[heard.phase].take(heard);
        let second = usize::try_from(heard.due.as_secs()).expect("a run is shorter than that");
        if self.seconds.len() <= second {
            // Coarser, since a long run has many of them.
            self.seconds.resize_with(second + 1, || Tally::new(2));
        }
        self.seconds[second].take(heard);
        if heard.was_awaited {
            put(&mut self.sent, micros(heard.sent.saturating_sub(heard.due)));
        } else {
            self.queued += 1;
        }
    }

    /// The client let a request go so late.
    pub(crate) fn released_late(&mut self, by: Duration) {
        put(&mut self.released, micros(by));
    }

    /// How late the client itself was, at this share of the requests, in microseconds.
    pub(crate) fn lateness(&self, share: f64) -> u64 {
        self.released.value_at_quantile(share).max(self.sent.value_at_quantile(share))
    }

    /// The phase of this name.
    pub(crate) fn of(&self, name: &str) -> &Tally {
        let at = self.schedule.phases().position(|phase| phase.name == name);
        &self.phases[at.expect("the profile that asks has made the phase")]
    }

    /// What has to be said before anything else, if the client could not keep up.
    pub(crate) fn complaint(&self) -> Option<String> {
        let late = self.lateness(0.99);
        (late > micros(LATE)).then(|| {
            format!(
                "THE CLIENT COULD NOT KEEP UP: it was itself {} late in one request of a hundred. Its latencies say \
                 nothing of the server; ask less, or from a quieter machine.",
                shown(late)
            )
        })
    }
}

fn put(histogram: &mut Histogram<u64>, micros: u64) {
    histogram.record(micros).expect("it grows with what comes");
}

/// Whole microseconds, rounded up.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// Microseconds for people.
pub(crate) fn shown(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} us"),
        1_000..1_000_000 => format!("{:.2} ms", micros as f64 / 1e3),
        _ => format!("{:.2} s", micros as f64 / 1e6),
    }
}
