//! What the background counts, in words: how calls of the backend and of the store ended, what became of units.
//!
//! Not for: requests (`observe`), nor for where a document came from (`outcome`).

use crate::telemetry::metrics::MetricLabel;
use crate::upstream::UpstreamFailure;

/// How a call of the backend ended.
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

/// What became of units of a day's quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitUse {
    Leased,
    Delivered,
    Returned,
    Lost,
}

/// What the store is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreWork {
    Lease,
    GiveBack,
    Change,
    Uses,
}

/// What is decided about a request that finds no unit while the ledger is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnreachableDecision {
    Grace,
    Refused,
}

impl FetchEnd {
    /// The words, in the order of the variants.
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

    /// Whether the backend was asked at all.
    pub(super) fn was_asked(self) -> bool {
        !matches!(self, Self::CircuitOpen | Self::QueueFull)
    }

    /// A failure's word.
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
    /// The words, in the order of the variants.
    pub(super) const WORDS: [&str; 4] = ["leased", "delivered", "returned", "lost"];
}

impl StoreWork {
    /// The words, in the order of the variants.
    pub(super) const WORDS: [&str; 4] = ["lease", "return", "change", "key_uses"];
}

impl UnreachableDecision {
    /// The words, in the order of the variants.
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
