//! A page for one request: its representation, and whether the client's copy is current. The headers are written by
//! `respond`.

use std::sync::Arc;

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

use crate::cache::{Representation, is_current, negotiate};
use crate::pages::Page;

/// A page that needs no key, in the encoding for one client.
#[derive(Debug)]
pub(in super::super) struct PageReply {
    pub(in super::super) page: Arc<Page>,
    pub(in super::super) representation: Representation,
    pub(in super::super) not_modified: bool,
}

impl PageReply {
    pub(in super::super) fn of(page: Arc<Page>, headers: &HeaderMap) -> Self {
        let representation = page.choose(negotiate(headers.get_all(ACCEPT_ENCODING).iter())).clone();
        Self { not_modified: is_current(headers, &representation.etag), representation, page }
    }

    /// The bytes that a GET sends.
    pub(in super::super) fn bytes(&self) -> usize {
        if self.not_modified { 0 } else { self.representation.body.len() }
    }
}
