//! A backend whose documents all have the time of its last refresh and a matching entity tag. It counts the requests
//! by document and refresh. The test decides when it refreshes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use scoregate::clock::Wall;

use crate::backend::{Act, Received, respond};

/// The requested targets. All of them change with each refresh, and none names a model.
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

/// Requests for one document after one refresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    pub bodies: u32,
    pub unchanged: u32,
}

/// The backend. Clones share their state.
#[derive(Clone)]
pub struct SnapshotUpstream(Arc<Mutex<State>>);

struct State {
    now: Wall,
    /// The times of its refreshes, including the initial data.
    refreshes: Vec<Wall>,
    counts: BTreeMap<(String, usize), RequestCounts>,
    /// Number of refreshes of each document that were fetched.
    bodies_fetched: BTreeMap<String, usize>,
    /// Delay of each fetched refresh of each document, in seconds.
    lateness: Vec<u64>,
}

impl SnapshotUpstream {
    /// Creates one whose data are from `now`.
    pub fn new(now: Wall) -> Self {
        let (counts, bodies_fetched, lateness) = Default::default();
        Self(Arc::new(Mutex::new(State { now, refreshes: vec![now], counts, bodies_fetched, lateness })))
    }

    /// Sets its time; it reads no clock.
    pub fn set_time(&self, now: Wall) {
        self.state().now = now;
    }

    /// Changes all data.
    pub fn refresh(&self) {
        let mut state = self.state();
        let now = state.now;
        state.refreshes.push(now);
    }

    pub fn refresh_times(&self) -> Vec<Wall> {
        self.state().refreshes.clone()
    }

    /// Age of the first refresh that data of this time lack; nothing if they are current.
    pub fn lateness_of(&self, generated_at: Wall) -> Option<u64> {
        let state = self.state();
        let first_missing = state.refreshes.iter().find(|at| **at > generated_at)?;
        Some(state.now.since(*first_missing).as_secs())
    }

    /// Request counts by document and refresh.
    pub fn counts(&self) -> Vec<RequestCounts> {
        self.state().counts.values().copied().collect()
    }

    /// Mean delay in seconds from a refresh to the fetch of its body, without the first fetches.
    pub fn mean_lateness(&self) -> f64 {
        let lateness = &self.state().lateness;
        let (sum, count): (u64, usize) = (lateness.iter().sum(), lateness.len());
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let mean = sum as f64 / count.max(1) as f64;
        mean
    }

    /// Responds with a body, or with 304 to a matching tag.
    pub fn respond(&self, received: &Received) -> Act {
        let mut state = self.state();
        let number = state.refreshes.len() - 1;
        let document = received.target().to_owned();
        let tag = format!("\"v{number}\"");
        let counts = state.counts.entry((document.clone(), number)).or_default();
        if received.headers.contains(&("if-none-match".into(), tag.clone())) {
            counts.unchanged += 1;
            return Act::Raw(b"HTTP/1.1 304 Not Modified\r\n\r\n".into());
        }
        counts.bodies += 1;
        state.record_fetch(document);
        let generated_at = state.refreshes[number].rfc3339();
        let score = number % 100;
        let body = format!(
            r#"{{"generated_at":"{generated_at}","data":[{{"id":"atlas","name":"Atlas","currentScore":{score}}}]}}"#
        );
        respond("200 OK", &[("etag", &tag), ("content-type", "application/json")], &body)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl State {
    fn record_fetch(&mut self, document: String) {
        let all = self.refreshes.len();
        // The first fetch is not late.
        let known = self.bodies_fetched.insert(document, all).unwrap_or(all);
        let late = self.refreshes[known..].iter().map(|at| self.now.since(*at).as_secs());
        self.lateness.extend(late);
    }
}
