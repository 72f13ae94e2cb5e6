//! Which requests the log tells of, and what.
//!
//! All that is our fault or the backend's, all slow ones, and one in so many of the rest. A line names the request by what
//! was made of it: never its target, its headers or its key, so that no secret can stand there. Not for: writing lines
//! (`telemetry::requests`).

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use serde_json::json;

use crate::clock::Wall;
use crate::keys::ApplicationId;
use crate::routes::DocumentKey;
use crate::routes::codes::Code;
use crate::telemetry::requests::{Fields, Lines};

use super::outcome::Outcome;
use super::refusal::Fault;

/// Which requests are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// From this on a request is slow.
    pub slow: Duration,
    /// Of all that are well and quick, one in so many; none if it is 0.
    pub one_in: u64,
}

/// Where requests are told.
#[derive(Debug, Default)]
pub struct RequestLog {
    /// Where lines go, and which requests; nobody hears of any without.
    heard: Option<(Arc<Lines>, Sampling)>,
    count: Arc<AtomicU64>,
}

/// What a line says.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) started: Wall,
    pub(super) id: http::HeaderValue,
    pub(super) trace: Option<Trace>,
    pub(super) client: IpAddr,
    pub(super) application: Option<ApplicationId>,
    pub(super) endpoint: &'static str,
    pub(super) document: Option<DocumentKey>,
    pub(super) status: StatusCode,
    pub(super) code: Option<Code>,
    pub(super) outcome: Option<Outcome>,
    pub(super) age: Option<Duration>,
    pub(super) took: Duration,
}

/// The trace that a request is a part of, by W3C's `traceparent`: 16 bytes as hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trace([u8; 32]);

impl Sampling {
    /// Whether a request is told: the how-manieth it is decides about those that are well and quick.
    fn tells(self, fault: Option<Fault>, took: Duration, number: u64) -> bool {
        let is_ours = match fault {
            Some(Fault::Us | Fault::Upstream) => true,
            Some(Fault::Caller) | None => false,
        };
        is_ours || took >= self.slow || (self.one_in > 0 && number.is_multiple_of(self.one_in))
    }
}

impl RequestLog {
    /// Tells to `lines`.
    pub fn new(lines: Arc<Lines>, sampling: Sampling) -> Self {
        Self { heard: Some((lines, sampling)), count: Arc::default() }
    }

    /// The same with other sampling.
    pub fn resampled(&self, sampling: Sampling) -> Self {
        let heard = self.heard.as_ref().map(|(lines, _)| (Arc::clone(lines), sampling));
        Self { heard, count: Arc::clone(&self.count) }
    }

    /// What was told is written, or so long has passed. Blocks.
    pub fn finish(&self, patience: Duration) {
        if let Some((lines, _)) = &self.heard {
            lines.finish(patience);
        }
    }

    /// A request is over. What is told of it is made only if it is told.
    pub(super) fn over(&self, fault: Option<Fault>, took: Duration, told: impl FnOnce() -> Told) {
        let Some((lines, sampling)) = &self.heard else { return };
        // The first that is counted is 1: a server that was asked once has not told of a sample of one.
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if sampling.tells(fault, took, number) {
            let told = told();
            lines.tell(Box::new(move || told.fields()));
        }
    }
}

impl Told {
    fn fields(&self) -> Fields {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        vec![
            ("at", json!(self.started.rfc3339())),
            ("status", json!(self.status.as_u16())),
            ("endpoint", json!(self.endpoint)),
            ("document", json!(self.document.as_ref().map(DocumentKey::address))),
            ("outcome", json!(self.outcome.map(Outcome::word))),
            ("code", json!(self.code.map(|code| code.row().word))),
            ("took_us", json!(u64::try_from(self.took.as_micros()).unwrap_or(u64::MAX))),
            ("age_ms", json!(self.age.map(milliseconds))),
            ("application", json!(self.application.map(|id| id.to_string()))),
            ("client", json!(self.client.to_string())),
            ("request_id", json!(self.id.to_str().unwrap_or_default())),
            ("trace_id", json!(self.trace.map(|trace| trace.text()))),
        ]
    }
}

impl Trace {
    /// The trace that a request says it is a part of, if it says so once and well.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut given = headers.get_all("traceparent").iter();
        let (Some(one), None) = (given.next(), given.next()) else { return None };
        let mut parts = one.to_str().ok()?.split('-');
        let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let digits = |part: &str, count: usize| {
            part.len() == count && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        let is_some = |part: &str| part.bytes().any(|b| b != b'0');
        // Later versions may bring more parts; the first has exactly four.
        let is_known = digits(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
        let is_good = digits(trace, 32) && is_some(trace) && digits(parent, 16) && is_some(parent);
        (is_known && is_good && digits(flags, 2)).then(|| trace.as_bytes().try_into().ok().map(Self))?
    }

    /// Its digits.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_our_fault_or_slow_is_told_and_one_in_so_many_of_the_rest() {
        let sampling = Sampling { slow: Duration::from_secs(1), one_in: 100 };
        let quick = Duration::from_millis(3);
        for fault in [Fault::Us, Fault::Upstream] {
            assert!(sampling.tells(Some(fault), quick, 7));
        }
        assert!(sampling.tells(None, Duration::from_secs(1), 7));
        for fault in [None, Some(Fault::Caller)] {
            let told = (1..=1_000).filter(|number| sampling.tells(fault, quick, *number)).count();
            assert_eq!(told, 10);
        }
        let none = Sampling { one_in: 0, ..sampling };
        assert!((1..=1_000).all(|number| !none.tells(None, quick, number)));
    }

    #[test]
    fn a_trace_is_taken_from_a_header_that_is_well_formed_and_from_no_other() {
        let of = |text: &str| {
            let headers: HeaderMap =
                [(http::HeaderName::from_static("traceparent"), text.parse().unwrap())].into_iter().collect();
            Trace::of(&headers).map(|trace| trace.text())
        };
        let trace = "0af7651916cd43dd8448eb211c80319c";
        let good = format!("00-{trace}-b7ad6b7169203331-01");
        assert_eq!(of(&good).as_deref(), Some(trace));
        assert_eq!(of(&format!("cc-{trace}-b7ad6b7169203331-01-later")).as_deref(), Some(trace));
        for bad in [
            String::new(),
            good.to_uppercase(),
            format!("{good}-more"),
            good.replace("0af7", "0ag7"),
            good.replace(trace, &"0".repeat(32)),
            good.replace("b7ad6b7169203331", &"0".repeat(16)),
            good.replacen("00", "ff", 1),
            trace.to_owned(),
        ] {
            assert_eq!(of(&bad), None, "{bad}");
        }
    }
}
