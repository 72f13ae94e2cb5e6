//! How a connection ended, as the metrics count it.

use crate::telemetry::metrics::MetricLabel;

use super::deadline_timer::ConnectionSignal;
use super::deadlines::MissedDeadline;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    /// In order.
    Done,
    /// The other side broke it off, or sent what is no HTTP.
    Failed,
    /// No request came in time, or no whole one.
    Head,
    /// Nothing was asked for a while.
    Idle,
    /// A request took too long, its answer's way included.
    Request,
    /// The client took nothing of its answer, or too little.
    Unread,
    /// Its place was needed, and it was idle, or read nothing, or had no key.
    Displaced,
    /// Its address had as many as it may.
    Refused,
    /// No TLS came about.
    Tls,
}

impl From<ConnectionSignal> for ConnectionEnd {
    fn from(told: ConnectionSignal) -> Self {
        match told {
            ConnectionSignal::Retire => Self::Done,
            ConnectionSignal::Cut => Self::Displaced,
            ConnectionSignal::Overdue(MissedDeadline::Head) => Self::Head,
            ConnectionSignal::Overdue(MissedDeadline::Idle) => Self::Idle,
            ConnectionSignal::Overdue(MissedDeadline::Request) => Self::Request,
            ConnectionSignal::Overdue(MissedDeadline::Write) => Self::Unread,
        }
    }
}

impl ConnectionEnd {
    pub(super) fn words() -> [String; 9] {
        [
            "done",
            "failed",
            "head_timeout",
            "idle_timeout",
            "request_timeout",
            "write_timeout",
            "displaced",
            "address_limit",
            "tls_handshake",
        ]
        .map(String::from)
    }
}

impl MetricLabel for ConnectionEnd {
    const NAME: &'static str = "reason";
    fn index(self) -> usize {
        self as usize
    }
}
