//! A backend whose documents all have the instant of its last refresh, and an entity tag that goes with it. It counts
//! what it is asked, by document and refresh.
//!
//! Not for: when it refreshes, which is the test's business.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use scoregate::clock::Wall;

use crate::backend::{Act, Received, answer};

/// What the customers of these tests ask for. All of it changes with each refresh, and none of it names a model.
pub const DOCUMENTS: [&str; 12] = [
    "/api/v1/models",
    "/api/v1/models?period=24h",
    "/api/v1/models?period=7d",
    "/api/v1/models?period=7d&sortBy=speed",
    "/api/v1/index",
    "/api/v1/alerts",
    "/api/v1/incidents?period=7d",
    "/api/v1/providers",
    "/api/v1/analytics/degradations",
    "/api/v1/analytics/recommendations",
    "/api/v1/analytics/provider-reliability",
    "/api/v1/analytics/transparency",
];

/// What was asked about one document after one refresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    /// Answered by a body.
    pub bodies: u32,
    /// Answered by 304.
    pub unchanged: u32,
}

/// The backend. Clones are the same one.
#[derive(Clone)]
pub struct SnapshotUpstream(Arc<Mutex<State>>);

struct State {
    now: Wall,
    /// The instants of its refreshes, the first data being one.
    refreshes: Vec<Wall>,
    /// By document and the number of the refresh.
    asked: BTreeMap<(String, usize), RequestCounts>,
    /// How many refreshes of each document have crossed.
    crossed: BTreeMap<String, usize>,
    /// How long each refresh of each document took to cross, in seconds.
    lateness: Vec<u64>,
}

impl SnapshotUpstream {
    /// One whose data are as of `now`.
    pub fn new(now: Wall) -> Self {
        let (asked, crossed, lateness) = Default::default();
        Self(Arc::new(Mutex::new(State { now, refreshes: vec![now], asked, crossed, lateness })))
    }

    /// What time it is. It reads no clock.
    pub fn is_at(&self, now: Wall) {
        self.state().now = now;
    }

    /// All its data change.
    pub fn refreshes(&self) {
        let mut state = self.state();
        let now = state.now;
        state.refreshes.push(now);
    }

    /// The instants of its refreshes so far.
    pub fn refreshed_at(&self) -> Vec<Wall> {
        self.state().refreshes.clone()
    }

    /// How long ago the first refresh was that data of this instant lack; nothing if they are current.
    pub fn lateness_of(&self, generated_at: Wall) -> Option<u64> {
        let state = self.state();
        let lacks = state.refreshes.iter().find(|at| **at > generated_at)?;
        Some(state.now.since(*lacks).as_secs())
    }

    /// What it was asked, by document and refresh.
    pub fn asked(&self) -> Vec<RequestCounts> {
        self.state().asked.values().copied().collect()
    }

    /// Seconds from a refresh to the crossing of its body, on the average of all that have crossed after the first.
    pub fn mean_lateness(&self) -> f64 {
        let lateness = &self.state().lateness;
        let (sum, count): (u64, usize) = (lateness.iter().sum(), lateness.len());
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let mean = sum as f64 / count.max(1) as f64;
        mean
    }

    /// Answers by a body, or by 304 to whoever has it.
    pub fn answer(&self, received: &Received) -> Act {
        let mut state = self.state();
        let number = state.refreshes.len() - 1;
        let document = received.target().to_owned();
        let tag = format!("\"v{number}\"");
        let asked = state.asked.entry((document.clone(), number)).or_default();
        if received.headers.contains(&("if-none-match".into(), tag.clone())) {
            asked.unchanged += 1;
            return Act::Raw(b"HTTP/1.1 304 Not Modified\r\n\r\n".into());
        }
        asked.bodies += 1;
        state.crosses(document);
        let generated_at = state.refreshes[number].rfc3339();
        let score = number % 100;
        let body = format!(
            r#"{{"generated_at":"{generated_at}","data":[{{"id":"atlas","name":"Atlas","currentScore":{score}}}]}}"#
        );
        answer("200 OK", &[("etag", &tag), ("content-type", "application/json")], &body)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl State {
    fn crosses(&mut self, document: String) {
        let all = self.refreshes.len();
        // What crosses at first is not late.
        let known = self.crossed.insert(document, all).unwrap_or(all);
        let late = self.refreshes[known..].iter().map(|at| self.now.since(*at).as_secs());
        self.lateness.extend(late);
    }
}
