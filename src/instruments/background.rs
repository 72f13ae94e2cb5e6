//! What the background counts, in words: how calls of the backend and of the store ended, what became of units.
//!
//! Not for: requests (`observe`), nor for where a document came from (`outcome`).

use crate::telemetry::metrics::Label;
use crate::upstream::Failure;

/// How a call of the backend ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FetchEnd {
    Good,
    NoSuchModel,
    Unreachable,
    Refused,
    Late,
    Invalid,
    Resting,
    Crowded,
}

/// What became of units of a day's quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Units {
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
pub(crate) enum WhileAway {
    Grace,
    Refused,
}

impl FetchEnd {
    /// The words, in the order of the variants.
    pub(super) const WORDS: [&str; 8] =
        ["good", "no_such_model", "unreachable", "refused", "late", "invalid", "resting", "crowded"];

    /// Whether the backend was asked at all.
    pub(super) fn was_asked(self) -> bool {
        !matches!(self, Self::Resting | Self::Crowded)
    }

    /// A failure's word.
    pub(crate) fn of(failure: &Failure) -> Self {
        match failure {
            Failure::Unreachable(_) => Self::Unreachable,
            Failure::Refused { .. } => Self::Refused,
            Failure::Late(_) => Self::Late,
            Failure::Invalid(_) => Self::Invalid,
            Failure::Resting(_) => Self::Resting,
            Failure::Crowded => Self::Crowded,
        }
    }
}

impl Units {
    /// The words, in the order of the variants.
    pub(super) const WORDS: [&str; 4] = ["leased", "delivered", "returned", "lost"];
}

impl StoreWork {
    /// The words, in the order of the variants.
    pub(super) const WORDS: [&str; 4] = ["lease", "give_back", "change", "uses"];
}

impl WhileAway {
    /// The words, in the order of the variants.
    pub(super) const WORDS: [&str; 2] = ["grace", "refused"];
}

impl Label for FetchEnd {
    const NAME: &'static str = "fetched";
    fn index(self) -> usize {
        self as usize
    }
}

impl Label for StoreWork {
    const NAME: &'static str = "work";
    fn index(self) -> usize {
        self as usize
    }
}

impl Label for WhileAway {
    const NAME: &'static str = "decided";
    fn index(self) -> usize {
        self as usize
    }
}

impl Label for Units {
    const NAME: &'static str = "use";
    fn index(self) -> usize {
        self as usize
    }
}
