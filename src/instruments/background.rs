//! Label values for background work: results of upstream requests and shared fetches, store operations, and quota
//! units.

use crate::upstream::UpstreamFailure;
use scoregate_observe::telemetry::metrics::metric_label;

metric_label! {
    /// The result of an upstream request.
    pub(crate) enum FetchEnd: "result" {
        Success = "success",
        NotFound = "not_found",
        Unreachable = "unreachable",
        ErrorStatus = "error_status",
        Timeout = "timeout",
        Invalid = "invalid",
        CircuitOpen = "circuit_open",
        QueueFull = "queue_full",
    }
}

metric_label! {
    /// The result of requesting a document from the other gateways.
    pub(crate) enum SharedFetchEnd: "result" {
        Taken = "taken",
        Claimed = "claimed",
        Rejected = "rejected",
        Failed = "failed",
        Alone = "alone",
    }
}

metric_label! {
    /// How daily quota units are used.
    pub(crate) enum UnitUse: "use" {
        Leased = "leased",
        Delivered = "delivered",
        Returned = "returned",
        Lost = "lost",
    }
}

metric_label! {
    /// An operation of the store.
    pub(crate) enum StoreWork: "operation" {
        Lease = "lease",
        GiveBack = "return",
        Change = "change",
        Uses = "key_uses",
        Usage = "usage",
        Status = "status",
        Mail = "mail",
    }
}

metric_label! {
    /// The decision about a request when no unit is left and the ledger is unreachable.
    pub(crate) enum UnreachableDecision: "decision" {
        Grace = "grace",
        Refused = "refused",
    }
}

impl FetchEnd {
    /// The label value, also used in spans.
    pub(crate) fn word(self) -> &'static str {
        Self::WORDS.get(self as usize).copied().unwrap_or_default()
    }

    /// Whether a request reached the backend.
    pub(crate) fn was_sent(self) -> bool {
        !matches!(self, Self::CircuitOpen | Self::QueueFull)
    }

    /// The label value of a failure.
    pub(crate) fn of(failure: &UpstreamFailure) -> Self {
        match failure {
            UpstreamFailure::Unreachable(_) => Self::Unreachable,
            UpstreamFailure::ErrorStatus { .. } => Self::ErrorStatus,
            UpstreamFailure::Timeout(_) => Self::Timeout,
            UpstreamFailure::Invalid(_) => Self::Invalid,
            UpstreamFailure::CircuitOpen(_) => Self::CircuitOpen,
            UpstreamFailure::QueueFull => Self::QueueFull,
        }
    }
}
