//! The texts of documents, kept by their entity tags, so that most calls copy one.

use bytes::Bytes;
use http::HeaderValue;
use moka::sync::Cache;

use scoregate_base::routes::{Endpoint, append_string};

use super::brief_text::brief_text;

/// Maximum size of all texts.
const MAX_BYTES: u64 = 8 << 20;

/// Texts as JSON, by endpoint and entity tag. The tag is that of the form of the document that the caller may see.
#[derive(Debug)]
pub(super) struct BriefTexts(Cache<(usize, HeaderValue), Bytes>);

impl BriefTexts {
    pub(super) fn new() -> Self {
        let size = |_: &_, text: &Bytes| u32::try_from(text.len()).unwrap_or(u32::MAX);
        Self(Cache::builder().weigher(size).max_capacity(MAX_BYTES).build())
    }

    /// The text of a response. Without a tag it is written each time. Of another body than the API's it is that body.
    pub(super) fn of(&self, endpoint: &Endpoint, tag: Option<HeaderValue>, body: &[u8]) -> Bytes {
        let write = || {
            let text = brief_text(endpoint, body);
            let text = text.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
            let mut json = Vec::with_capacity(text.len() + 2);
            append_string(&mut json, &text);
            Bytes::from(json)
        };
        let Some(tag) = tag else { return write() };
        self.0.get_with((endpoint.route.index(), tag), write)
    }
}
