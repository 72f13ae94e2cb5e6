//! Texts that are derived from documents, kept by the entity tags of their forms.

use bytes::Bytes;
use http::HeaderValue;
use moka::sync::Cache;

/// Texts by a number and an entity tag, in bounded memory.
#[derive(Debug)]
pub struct DerivedTexts(Cache<(usize, HeaderValue), Bytes>);

impl DerivedTexts {
    /// Keeps at most so many bytes.
    pub fn new(max_bytes: u64) -> Self {
        let size = |_: &_, text: &Bytes| u32::try_from(text.len()).unwrap_or(u32::MAX);
        Self(Cache::builder().weigher(size).max_capacity(max_bytes).build())
    }

    /// The text with this number of the form with this tag.
    pub fn get(&self, number: usize, tag: HeaderValue, derive: impl FnOnce() -> Bytes) -> Bytes {
        self.0.get_with((number, tag), derive)
    }
}
