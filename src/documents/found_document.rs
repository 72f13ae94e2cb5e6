//! A stored document that was found for a request.

use std::sync::Arc;

use crate::cache::{Freshness, StoredDocument};
use scoregate_base::clock::Mono;

/// A stored document, and whether a request may use it.
#[derive(Clone, Debug)]
pub struct FoundDocument {
    /// The document with its dates.
    pub stored: Arc<StoredDocument>,
    /// When the document's refresh is due, as far as is known.
    pub due: Mono,
    /// Whether the document may be served.
    pub verdict: Freshness,
}

impl FoundDocument {
    /// Whether the document is not due for a refresh.
    pub fn is_fresh(&self) -> bool {
        self.verdict == Freshness::Fresh
    }

    /// Whether the document can be served without waiting for the backend.
    pub fn is_servable(&self) -> bool {
        match self.verdict {
            Freshness::Fresh | Freshness::StaleWhileRevalidate => true,
            Freshness::StaleIfError | Freshness::Expired => false,
        }
    }
}
