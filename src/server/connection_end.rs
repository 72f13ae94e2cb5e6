//! The reasons for the end of a connection, as metric labels.

use crate::telemetry::metrics::MetricLabel;

use super::deadline_timer::ConnectionSignal;
use super::deadlines::MissedDeadline;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    /// Closed in order.
    Done,
    /// Reset by the other side, or invalid HTTP.
    Failed,
    /// No complete request head in time.
    Head,
    /// Idle timeout.
    Idle,
    /// Request timeout, sending of the response included.
    Request,
    /// The client read nothing of a response, or too slowly.
    Unread,
    /// Its slot was needed, and it was idle, did not read, or had no key.
    Displaced,
    /// Its address had too many connections, or TLS handshakes that wait.
    Refused,
    /// Its application had too many connections.
    Surplus,
    /// The TLS handshake failed.
    Tls,
}

impl From<ConnectionSignal> for ConnectionEnd {
    fn from(signal: ConnectionSignal) -> Self {
        match signal {
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
    pub(super) fn labels() -> [String; 10] {
        [
            "done",
            "failed",
            "head_timeout",
            "idle_timeout",
            "request_timeout",
            "write_timeout",
            "displaced",
            "address_limit",
            "application_limit",
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
