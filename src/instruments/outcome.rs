//! Where a document came from, in one small vocabulary. Not for: why there is none (`refusal`).

use crate::telemetry::metrics::MetricLabel;

/// Where a document came from. The same word is in `Cache-Status`, the metrics and the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheOutcome {
    /// It was stored and fresh.
    Hit,
    /// It was fetched for this request.
    Miss,
    /// It was fetched for another request meanwhile.
    Shared,
    /// It was stored, its refresh is overdue, and it is being refreshed.
    Stale,
    /// It was stored, and the backend confirmed or replaced it for this request.
    Refreshed,
    /// It was stored, its refresh is overdue, and the backend failed.
    StaleOnError,
}

impl CacheOutcome {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Hit, Self::Miss, Self::Shared, Self::Stale, Self::Refreshed, Self::StaleOnError];

    /// Its word in metrics and logs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Shared => "shared",
            Self::Stale => "stale",
            Self::Refreshed => "refreshed",
            Self::StaleOnError => "stale_on_error",
        }
    }
}

impl MetricLabel for CacheOutcome {
    const NAME: &'static str = "outcome";
    fn index(self) -> usize {
        self as usize
    }
}
