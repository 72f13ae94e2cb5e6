//! Selects the requests that are logged in the access log, and the fields of a line.
//!
//! All failures of the gateway or the backend, all slow requests, and a sample of the other requests are logged. A line
//! never contains the target, headers or key as sent, so no secret can reach the log. `telemetry::access_log_writer`
//! writes the lines.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::StatusCode;
use serde_json::json;

use crate::{
    accounts::KeyFault,
    gateway::{Responsibility, request::request_id::RequestId},
    instruments::CacheOutcome,
};
use scoregate_base::{
    clock::{Day, Wall},
    keys::ApplicationId,
    routes::{DocumentKey, codes::ErrorCode},
};
use scoregate_observe::telemetry::{
    access_log_writer::{AccessLogWriter, LineFields},
    per_thread::PerThread,
    trace::TraceContext,
};

/// The rules that select the logged requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSampling {
    /// Minimum duration of a slow request.
    pub slow: Duration,
    /// Log one in N successful, fast requests. 0 logs none of them.
    pub one_in: u64,
}

/// Access log.
#[derive(Debug, Default)]
pub struct AccessLog {
    /// The writer and the sampling; `None` disables the log.
    output: Option<(Arc<AccessLogWriter>, LogSampling)>,
    /// Requests per thread, for sampling.
    count: Arc<PerThread<AtomicU64>>,
}

/// One line.
#[derive(Clone, Debug)]
pub struct AccessRecord {
    pub(crate) started: Wall,
    pub(crate) id: RequestId,
    pub(crate) trace: Option<TraceContext>,
    pub(crate) client: IpAddr,
    pub(crate) is_tool_call: bool,
    pub(crate) application: Option<ApplicationId>,
    /// Day to which a unit was charged; `None` if the request was not charged.
    pub(crate) day: Option<Day>,
    pub(crate) endpoint: &'static str,
    pub(crate) document: Option<DocumentKey>,
    /// `None` if the client disconnected before the response.
    pub(crate) status: Option<StatusCode>,
    pub(crate) code: Option<ErrorCode>,
    /// The reason why the key was refused.
    pub(crate) key: Option<KeyFault>,
    pub(crate) outcome: Option<CacheOutcome>,
    pub(crate) age: Option<Duration>,
    pub(crate) took: Duration,
}

impl LogSampling {
    /// Whether to log the request with this number.
    fn is_logged(self, fault: Option<Responsibility>, took: Duration, number: u64) -> bool {
        let is_ours = match fault {
            Some(Responsibility::Us | Responsibility::Upstream) => true,
            Some(Responsibility::Caller) | None => false,
        };
        is_ours || took >= self.slow || (self.one_in > 0 && number.is_multiple_of(self.one_in))
    }
}

impl AccessLog {
    /// Writes to `lines`.
    pub fn new(lines: Arc<AccessLogWriter>, sampling: LogSampling) -> Self {
        Self {
            output: Some((lines, sampling)),
            count: Arc::default(),
        }
    }

    /// The same log with different sampling.
    pub fn resampled(&self, sampling: LogSampling) -> Self {
        let output = self
            .output
            .as_ref()
            .map(|(lines, _)| (Arc::clone(lines), sampling));
        Self {
            output,
            count: Arc::clone(&self.count),
        }
    }

    /// Waits until all lines are written, for at most this long. Blocks.
    pub fn finish(&self, timeout: Duration) {
        if let Some((lines, _)) = &self.output {
            lines.finish(timeout);
        }
    }

    /// Logs a finished request if it is selected. The line is built only in that case.
    pub(crate) fn record(
        &self,
        fault: Option<Responsibility>,
        took: Duration,
        build: impl FnOnce() -> AccessRecord,
    ) {
        let Some((lines, sampling)) = &self.output else {
            return;
        };
        // Numbers start at 1, so a sample of one in N does not include the first request.
        let number = self.count.local().fetch_add(1, Ordering::Relaxed) + 1;
        if sampling.is_logged(fault, took, number) {
            let record = build();
            lines.write(move || record.fields());
        }
    }
}

impl AccessRecord {
    fn fields(&self) -> LineFields {
        vec![
            ("at", json!(self.started.rfc3339())),
            ("status", json!(self.status.map(|status| status.as_u16()))),
            (
                "client_disconnected",
                json!(self.status.is_none().then_some(true)),
            ),
            ("endpoint", json!(self.endpoint)),
            (
                "document",
                json!(self.document.as_ref().map(DocumentKey::address)),
            ),
            ("outcome", json!(self.outcome.map(CacheOutcome::as_str))),
            ("code", json!(self.code.map(|code| code.row().word))),
            ("key", json!(self.key)),
            ("duration_us", json!(number(self.took.as_micros()))),
            ("age_ms", json!(self.age.map(|age| number(age.as_millis())))),
            (
                "application",
                json!(self.application.map(|id| id.to_string())),
            ),
            ("day", json!(self.day.map(|day| day.to_string()))),
            ("client", json!(self.client.to_string())),
            ("mcp", json!(self.is_tool_call.then_some(true))),
            ("request_id", json!(self.id.as_str())),
            ("trace_id", json!(self.trace.as_ref().map(TraceContext::id))),
        ]
    }
}

fn number(units: u128) -> u64 {
    u64::try_from(units).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_and_slow_requests_are_logged_and_a_sample_of_the_rest() {
        let sampling = LogSampling {
            slow: Duration::from_secs(1),
            one_in: 100,
        };
        let quick = Duration::from_millis(3);
        for fault in [Responsibility::Us, Responsibility::Upstream] {
            assert!(sampling.is_logged(Some(fault), quick, 7));
        }
        assert!(sampling.is_logged(None, Duration::from_secs(1), 7));
        for fault in [None, Some(Responsibility::Caller)] {
            let logged = (1..=1_000)
                .filter(|number| sampling.is_logged(fault, quick, *number))
                .count();
            assert_eq!(logged, 10);
        }
        let none = LogSampling {
            one_in: 0,
            ..sampling
        };
        assert!((1..=1_000).all(|number| !none.is_logged(None, quick, number)));
    }
}
