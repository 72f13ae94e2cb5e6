//! How it stands with the backend, over the side port: `GET /v1/upstream`.
//!
//! Not for: what is stored of it (`cache`).

use http::Method;
use serde::Serialize;
use serde_json::{Value, json};

use crate::clock::Wall;
use crate::documents::{Failed, Larder, Standing};

use super::command::Problem;
use super::paths::UPSTREAM;

/// How it stands.
#[derive(Clone, Debug, Serialize)]
struct UpstreamView {
    place: String,
    health: &'static str,
    rests_for_seconds: u64,
    failures_in_a_row: u32,
    at_once: usize,
    under_way: usize,
    waiting: usize,
    asked_again: u64,
    last_failure: Option<FailureView>,
    last_good_at: Option<String>,
    next_refresh_at: Option<String>,
    refresh_overdue_seconds: u64,
}

#[derive(Clone, Debug, Serialize)]
struct FailureView {
    at: String,
    document: String,
    why: String,
}

/// Answers a request for it.
pub(super) fn answer(larder: &Larder, method: &Method, path: &str) -> Result<Value, Problem> {
    match (method, path) {
        (&Method::GET, UPSTREAM) => Ok(json!(UpstreamView::from(larder.standing()))),
        _ => Err(Problem::not_found()),
    }
}

impl From<Standing> for UpstreamView {
    fn from(standing: Standing) -> Self {
        let condition = standing.condition;
        Self {
            place: standing.place,
            health: condition.health.word(),
            // Whoever comes back then must not be too early.
            rests_for_seconds: condition.rest.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX),
            failures_in_a_row: condition.failures,
            at_once: condition.at_once,
            under_way: condition.under_way,
            waiting: condition.waiting,
            asked_again: condition.asked_again,
            last_failure: standing.last_failure.map(FailureView::from),
            last_good_at: standing.last_good.map(Wall::rfc3339),
            next_refresh_at: standing.next_refresh.map(Wall::rfc3339),
            refresh_overdue_seconds: standing.overdue.as_secs(),
        }
    }
}

impl From<Failed> for FailureView {
    fn from(Failed { at, document, why }: Failed) -> Self {
        Self { at: at.rfc3339(), document, why }
    }
}
