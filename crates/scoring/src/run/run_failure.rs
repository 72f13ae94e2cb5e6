//! Why a run failed, and what that means for its score.

/// Why a run, or one of its trials, failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunFailure {
    /// The model did not respond in time. Counts as zero on every axis.
    Timeout,
    /// The provider limited the rate. Has no score.
    Throttled,
    /// The provider failed or was unreachable. Has no score.
    Unreachable,
    /// The response of the model was unusable. Counts as zero on every axis.
    Unusable,
    /// The benchmark harness itself failed. Not counted at all: it proves nothing about the model or its provider.
    Harness,
}

impl RunFailure {
    /// All reasons. The archive stores their index: new ones are appended.
    pub const ALL: [Self; 5] =
        [Self::Timeout, Self::Throttled, Self::Unreachable, Self::Unusable, Self::Harness];

    /// Its name in a run's JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Throttled => "throttled",
            Self::Unreachable => "unreachable",
            Self::Unusable => "unusable",
            Self::Harness => "harness",
        }
    }

    /// Whether the model failed, so that its trial counts as zero on every axis.
    pub const fn counts_as_zero(self) -> bool {
        match self {
            Self::Timeout | Self::Unusable => true,
            Self::Throttled | Self::Unreachable | Self::Harness => false,
        }
    }

    /// Whether it is a failed trial at all.
    pub const fn is_counted(self) -> bool {
        match self {
            Self::Timeout | Self::Throttled | Self::Unreachable | Self::Unusable => true,
            Self::Harness => false,
        }
    }
}
