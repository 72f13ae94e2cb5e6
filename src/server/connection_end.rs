//! The reasons for the end of a connection, as metric labels.

use scoregate_observe::telemetry::metrics::metric_label;

use super::{deadline_timer::ConnectionSignal, deadlines::MissedDeadline};

metric_label! {
    /// The reason why a connection ended.
    pub(super) enum ConnectionEnd: "reason" {
        /// Closed gracefully.
        Done = "done",
        /// Reset by the peer, or closed because of invalid HTTP.
        Failed = "failed",
        /// No complete request head arrived in time.
        Head = "head_timeout",
        /// Idle timeout.
        Idle = "idle_timeout",
        /// Request timeout, including the time to send the response.
        Request = "request_timeout",
        /// The client did not read the response, or read it too slowly.
        Unread = "write_timeout",
        /// The slot was needed, and the client was idle, did not read, or had sent no key.
        Displaced = "displaced",
        /// The network had too many connections, waiting TLS handshakes, or HTTP/2 connections without a response.
        Refused = "address_limit",
        /// The application had too many connections.
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
