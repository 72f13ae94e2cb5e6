//! Why a run failed, and what this means for its score.

use scoregate_base::words;

words! {
    /// Why a run, or one of its trials, failed. If several reasons apply, the first in this order counts.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum RunFailure: word {
        /// The model did not respond in time. Counts as zero on every axis.
        Timeout = "timeout",
        /// The provider's rate limit was exceeded. The trial has no score.
        Throttled = "throttled",
        /// The provider failed or was unreachable. The trial has no score.
        Unreachable = "unreachable",
        /// The response of the model was unusable. Counts as zero on every axis.
        Unusable = "unusable",
        /// The benchmark harness itself failed. This is not counted at all, because it says nothing about the model or
        /// its provider.
        Harness = "harness",
    }
}

impl RunFailure {
    /// Whether the model failed, so that the trial counts as zero on every axis.
    pub const fn counts_as_zero(self) -> bool {
        match self {
            Self::Timeout | Self::Unusable => true,
            Self::Throttled | Self::Unreachable | Self::Harness => false,
        }
    }

    /// Whether this counts as a failed trial at all.
    pub const fn is_counted(self) -> bool {
        match self {
            Self::Timeout | Self::Throttled | Self::Unreachable | Self::Unusable => true,
            Self::Harness => false,
        }
    }
}
