//! The source of a delivered document.

use scoregate_base::words;
use scoregate_observe::telemetry::metrics::metric_label;

words! {
    /// The source of a document. `Cache-Status`, metrics and logs use the same word.
    #[derive(Hash)]
    pub enum CacheOutcome: as_str {
        /// The document was stored and fresh.
        Hit = "hit",
        /// The document was fetched for this request.
        Miss = "miss",
        /// The document was fetched by a concurrent request.
        Shared = "shared",
        /// The document was stored, its refresh was overdue, and it is being refreshed.
        Stale = "stale",
        /// The document was stored, and the backend confirmed or replaced it for this request.
        Refreshed = "refreshed",
        /// The document was stored, its refresh was overdue, and the backend failed.
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
