//! A stored document as a request finds it.

use std::sync::Arc;

use crate::cache::{Freshness, StoredDocument};
use scoregate_base::clock::Mono;

/// A stored document and the verdict for a request.
#[derive(Clone, Debug)]
pub(crate) struct FoundDocument {
    /// The document with its dates.
    pub(crate) stored: Arc<StoredDocument>,
    /// When its refresh is due, as far as known.
    pub(crate) due: Mono,
    /// Whether it may be served.
    pub(crate) verdict: Freshness,
}

impl FoundDocument {
    /// Whether no refresh is due.
    pub(crate) fn is_fresh(&self) -> bool {
        self.verdict == Freshness::Fresh
    }

    /// Whether a request can be answered from it without waiting for the backend.
    pub(crate) fn is_servable(&self) -> bool {
        match self.verdict {
            Freshness::Fresh | Freshness::StaleWhileRevalidate => true,
            Freshness::StaleIfError | Freshness::Expired => false,
        }
    }
}
