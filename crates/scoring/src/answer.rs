//! The data of one document.

use std::sync::Arc;

use bytes::Bytes;

use scoregate_base::clock::Wall;

/// The data of a document. Clones share the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The items as a JSON array, including paid-only fields.
    pub data: Bytes,
    /// Number of items.
    pub count: usize,
    /// The snapshot's time: the full hour for which it was computed, or the last import after that.
    pub generated_at: Wall,
    /// When the next snapshot is due.
    pub next_refresh: Wall,
    /// A strong entity tag of the data, including the quotes. It changes exactly when the data does.
    pub etag: Arc<str>,
}
