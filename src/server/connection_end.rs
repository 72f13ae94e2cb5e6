//! The reasons for the end of a connection, as metric labels.

use scoregate_observe::telemetry::metrics::metric_label;

use super::deadline_timer::ConnectionSignal;
use super::deadlines::MissedDeadline;

metric_label! {
    /// The reason why a connection ended.
    pub(super) enum ConnectionEnd: "reason" {
        /// Closed in order.
        Done = "done",
        /// Reset by the peer, or invalid HTTP.
        Failed = "failed",
        /// No complete request head in time.
        Head = "head_timeout",
        /// Idle timeout.
        Idle = "idle_timeout",
        /// Request timeout, sending of the response included.
        Request = "request_timeout",
        /// The client read nothing of a response, or too slowly.
        Unread = "write_timeout",
        /// Its slot was needed, and it was idle, did not read, or had no key.
        Displaced = "displaced",
        /// Its network had too many connections, waiting TLS handshakes, or HTTP/2 connections without a response.
        Refused = "address_limit",
        /// Its application had too many connections.
        Surplus = "application_limit",
        /// The TLS handshake failed.
        Tls = "tls_handshake",
    }
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
