//! A prepared page: the body in all encodings, and the headers.

use bytes::Bytes;
use http::HeaderValue;

use crate::cache::{ContentCoding, EncodedBodies, Representation};
use scoregate_base::clock::Wall;

use super::content_policy::{AllowedContent, FILE_POLICY};

pub const HTML: &str = "text/html; charset=utf-8";
pub const JSON: &str = "application/json";
pub const TEXT: &str = "text/plain; charset=utf-8";
pub const MARKDOWN: &str = "text/markdown; charset=utf-8";
pub const ICON: &str = "image/x-icon";

/// `Cache-Control` of a page that is revalidated before each use. Shared caches may not store it, because it has the
/// limit headers of one client.
pub const REVALIDATED: &str = "private, no-cache";
/// `Cache-Control` of the icon, which is reused for a day.
pub const REUSED: &str = "private, max-age=86400";

/// A prepared page.
#[derive(Clone, Debug)]
pub struct Page {
    /// The media type.
    pub content_type: &'static str,
    /// The header `Cache-Control`.
    pub cache_control: &'static str,
    /// The header `Link`.
    pub link: Option<&'static str>,
    /// The header `Content-Security-Policy`.
    pub content_policy: HeaderValue,
    /// The body in all encodings. Equal bodies have equal tags on every machine.
    pub(super) encoded: EncodedBodies,
}

impl Page {
    /// Creates a page and encodes the body, for pages that are stored.
    pub(super) fn new(
        content_type: &'static str,
        cache_control: &'static str,
        body: &[u8],
    ) -> Self {
        Self::of(
            content_type,
            cache_control,
            EncodedBodies::new(body, Wall::default()),
        )
    }

    pub(super) fn of(
        content_type: &'static str,
        cache_control: &'static str,
        encoded: EncodedBodies,
    ) -> Self {
        let content_policy = HeaderValue::from_static(FILE_POLICY);
        Self {
            content_type,
            cache_control,
            encoded,
            link: None,
            content_policy,
        }
    }

    /// The body without an encoding.
    pub fn body(&self) -> &Bytes {
        self.encoded.plain()
    }

    /// The representation for a client that prefers `encoding`.
    pub fn choose(&self, encoding: ContentCoding) -> &Representation {
        self.encoded.choose(encoding)
    }

    /// Whether `Accept` selects between this page and another form at the same path.
    pub fn has_forms(&self) -> bool {
        [HTML, MARKDOWN].contains(&self.content_type) && !self.is_public()
    }

    /// Whether shared caches may store the page.
    pub fn is_public(&self) -> bool {
        self.cache_control.starts_with("public")
    }

    pub(super) fn html(
        cache_control: &'static str,
        allowed: AllowedContent<'_>,
        body: &str,
    ) -> Self {
        let policy = HeaderValue::try_from(allowed.policy()).expect("the policy is visible ASCII");
        Self {
            content_policy: policy,
            ..Self::new(HTML, cache_control, body.as_bytes())
        }
    }
}
