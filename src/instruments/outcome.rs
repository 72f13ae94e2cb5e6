//! The source of a delivered document.

use scoregate_observe::telemetry::metrics::metric_label;

/// The source of a document. `Cache-Status`, metrics and logs use the same word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheOutcome {
    /// Stored and fresh.
    Hit,
    /// Fetched for this request.
    Miss,
    /// Fetched by another request at the same time.
    Shared,
    /// Stored, refresh overdue, being refreshed.
    Stale,
    /// Stored, and confirmed or replaced by the backend for this request.
    Refreshed,
    /// Stored, refresh overdue, and the backend failed.
    StaleOnError,
}

impl CacheOutcome {
    /// All variants.
    pub const ALL: [Self; 6] =
        [Self::Hit, Self::Miss, Self::Shared, Self::Stale, Self::Refreshed, Self::StaleOnError];

    /// The word in metrics and logs.
    pub const fn as_str(self) -> &'static str {
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

metric_label!(CacheOutcome: "outcome", CacheOutcome::ALL, CacheOutcome::as_str);
