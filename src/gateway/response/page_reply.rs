//! A page for one request: its representation, and whether the client's copy is current. `respond` writes the headers.

use std::sync::Arc;

use http::{HeaderMap, header::ACCEPT_ENCODING};

use crate::{
    cache::{ContentCoding, Representation, is_current, negotiate},
    pages::Page,
};

/// A page that needs no key, in the encoding that one client prefers.
#[derive(Debug)]
pub struct PageReply {
    pub(crate) page: Arc<Page>,
    encoding: ContentCoding,
    pub(crate) not_modified: bool,
}

impl PageReply {
    pub(crate) fn new(page: Arc<Page>, headers: &HeaderMap) -> Self {
        let encoding = negotiate(headers.get_all(ACCEPT_ENCODING).iter());
        let not_modified = is_current(headers, &page.choose(encoding).etag);
        Self {
            page,
            encoding,
            not_modified,
        }
    }

    /// The bytes of the page and their headers.
    pub(crate) fn representation(&self) -> &Representation {
        self.page.choose(self.encoding)
    }

    /// The bytes that a GET sends.
    pub(crate) fn bytes(&self) -> usize {
        if self.not_modified {
            0
        } else {
            self.representation().body.len()
        }
    }
}
