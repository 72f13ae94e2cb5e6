//! The source of a delivered document.

use scoregate_base::words;
use scoregate_observe::telemetry::metrics::metric_label;

words! {
    /// The source of a document. `Cache-Status`, metrics and logs use the same word.
    #[derive(Hash)]
    pub enum CacheOutcome: as_str {
        /// Stored and fresh.
        Hit = "hit",
        /// Fetched for this request.
        Miss = "miss",
        /// Fetched by another request at the same time.
        Shared = "shared",
        /// Stored, refresh overdue, being refreshed.
        Stale = "stale",
        /// Stored, and confirmed or replaced by the backend for this request.
        Refreshed = "refreshed",
        /// Stored, refresh overdue, and the backend failed.
        StaleOnError = "stale_on_error",
    }
}

metric_label!(CacheOutcome: "outcome", CacheOutcome::ALL, CacheOutcome::as_str);

impl CacheOutcome {
    /// Whether the request waited for the backend.
    pub fn waited(self) -> bool {
        match self {
            Self::Miss | Self::Shared | Self::Refreshed => true,
            Self::Hit | Self::Stale | Self::StaleOnError => false,
        }
    }
}
