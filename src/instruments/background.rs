//! Label values for background work: results of upstream requests and store calls, and movements of quota units.

use crate::telemetry::metrics::MetricLabel;
use crate::upstream::UpstreamFailure;

/// The result of an upstream request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchEnd {
    Success,
    NotFound,
    Unreachable,
    ErrorStatus,
    Timeout,
    Invalid,
    CircuitOpen,
    QueueFull,
}

/// The result of asking other gateways for a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedFetchEnd {
    Taken,
    Claimed,
    Rejected,
    Failed,
    Alone,
}

/// A movement of daily quota units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitUse {
    Leased,
    Delivered,
    Returned,
    Lost,
}

/// An operation of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreWork {
    Lease,
    GiveBack,
    Change,
    Uses,
    Usage,
    Status,
    Mail,
}

/// The decision about a request that finds no unit while the ledger is unreachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnreachableDecision {
    Grace,
    Refused,
}

impl FetchEnd {
    /// Label values, in the order of the variants.
    pub(super) const WORDS: [&str; 8] = [
        "success",
        "not_found",
        "unreachable",
        "error_status",
        "timeout",
        "invalid",
        "circuit_open",
        "queue_full",
    ];

    /// The label value, also used in spans.
    pub(crate) fn word(self) -> &'static str {
        Self::WORDS.get(self as usize).copied().unwrap_or_default()
    }

    /// Whether a request reached the backend.
    pub(crate) fn was_sent(self) -> bool {
        !matches!(self, Self::CircuitOpen | Self::QueueFull)
    }

    /// The label of a failure.
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

impl UnitUse {
    /// Label values, in the order of the variants.
    pub(super) const WORDS: [&str; 4] = ["leased", "delivered", "returned", "lost"];
}

impl StoreWork {
    /// Label values, in the order of the variants.
    pub(super) const WORDS: [&str; 7] = ["lease", "return", "change", "key_uses", "usage", "status", "mail"];
}

impl SharedFetchEnd {
    /// Label values, in the order of the variants.
    pub(super) const WORDS: [&str; 5] = ["taken", "claimed", "rejected", "failed", "alone"];
}

impl MetricLabel for SharedFetchEnd {
    const NAME: &'static str = "result";
    fn index(self) -> usize {
        self as usize
    }
}

impl UnreachableDecision {
    /// Label values, in the order of the variants.
    pub(super) const WORDS: [&str; 2] = ["grace", "refused"];
}

impl MetricLabel for FetchEnd {
    const NAME: &'static str = "result";
    fn index(self) -> usize {
        self as usize
    }
}

impl MetricLabel for StoreWork {
    const NAME: &'static str = "operation";
    fn index(self) -> usize {
        self as usize
    }
}

impl MetricLabel for UnreachableDecision {
    const NAME: &'static str = "decision";
    fn index(self) -> usize {
        self as usize
    }
}

impl MetricLabel for UnitUse {
    const NAME: &'static str = "use";
    fn index(self) -> usize {
        self as usize
    }
}
