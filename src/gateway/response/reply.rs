//! The content of a response. `respond` writes the headers.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

use crate::{
    accounts::DocumentUse,
    cache::{ContentCoding, Representation, StoredDocument, freshness, is_current},
    gateway::{
        Refusal,
        stages::{authenticate::Caller, fetch::Served, resolve::ResolvedTarget},
    },
    instruments::CacheOutcome,
};
use scoregate_base::{
    clock::{Day, Mono, Now},
    limits::LimitStatus,
    plans::Rights,
};

use super::{
    header_values::{HeaderValueWriter, NumberField},
    page_reply::PageReply,
};

/// The content of a response.
#[derive(Debug)]
pub enum Reply {
    /// A page that needs no key.
    Page(PageReply),
    /// A redirect to the canonical address of a page.
    Moved(&'static str),
    /// The answer to a liveness probe.
    Health,
    /// The allowed methods.
    Options,
    /// A document or a 304.
    Document(DocumentReply),
    /// `/me`.
    Me(Bytes),
}

/// The end of a request: an answer or a refusal.
pub type Answered<'r> = Result<&'r Reply, &'r Refusal>;

/// A document in the form that one caller may see.
#[derive(Debug)]
pub struct DocumentReply {
    served: Served,
    rights: Rights,
    encoding: ContentCoding,
    /// The document and request as evidence of use.
    pub(crate) document: DocumentUse,
    /// When the document was served.
    at: Mono,
    max_age: u64,
    /// The UTC day to which a unit was charged. Set by `charge` or `settle`.
    pub(crate) charged: Option<Day>,
    /// Status of the minute and the day. Set by `charge`.
    pub(crate) limit_statuses: Option<[LimitStatus; 2]>,
}

/// The evidence of use for a request for a stored document. It also states whether the answer is a 304.
pub fn document_use(
    stored: &StoredDocument,
    target: &ResolvedTarget,
    rights: Rights,
    headers: &HeaderMap,
) -> DocumentUse {
    let representation = stored.document.form(rights).choose(target.encoding);
    DocumentUse {
        mark: target.mark,
        bytes: u32::try_from(representation.body.len()).unwrap_or(u32::MAX),
        is_conditional: target.conditional,
        is_unchanged: target.conditional && is_current(headers, &representation.etag),
    }
}

impl Reply {
    /// The document, if the reply is a document.
    pub(crate) fn document(&self) -> Option<&DocumentReply> {
        match self {
            Self::Document(reply) => Some(reply),
            Self::Page(_) | Self::Moved(_) | Self::Health | Self::Options | Self::Me(_) => None,
        }
    }
}

impl DocumentReply {
    /// Creates a reply in the form for the caller's rights and in the requested encoding.
    pub(crate) fn new(
        served: Served,
        target: &ResolvedTarget,
        caller: &Caller,
        document: DocumentUse,
        now: Now,
    ) -> Self {
        Self {
            rights: caller.rights,
            encoding: target.encoding,
            document,
            at: now.mono,
            max_age: freshness::max_age(served.due, caller.spread, now.mono),
            charged: None,
            limit_statuses: None,
            served,
        }
    }

    /// The source of the document.
    pub(crate) fn outcome(&self) -> CacheOutcome {
        self.served.outcome
    }

    /// Time since the backend confirmed the document.
    pub(crate) fn age(&self) -> Duration {
        self.at.since(self.served.stored.confirmed)
    }

    /// Whether the reply is the result of a tool call.
    pub(crate) fn is_tool_result(&self) -> bool {
        self.encoding == ContentCoding::ToolResult
    }

    /// The bytes of the document and their headers.
    pub(crate) fn representation(&self) -> &Representation {
        let document = &self.served.stored.document;
        document.form(self.rights).choose(self.encoding)
    }

    /// `Cache-Control`.
    pub(crate) fn cache_control(&self) -> HeaderValue {
        NumberField::MaxAge.value(self.max_age)
    }

    /// `Cache-Status`.
    pub(crate) fn cache_status(&self, values: &mut HeaderValueWriter) -> HeaderValue {
        let lifetime = NumberField::TimeToLive;
        let ttl = freshness::ttl(self.served.due, self.at);
        match self.served.outcome {
            CacheOutcome::Hit => match u64::try_from(ttl) {
                Ok(seconds) => lifetime.value(seconds),
                Err(_) => values.text(lifetime.prefix()).number(ttl).value(),
            },
            CacheOutcome::Miss if !self.served.stored.is_cached => {
                HeaderValue::from_static("scoregate; fwd=miss; detail=miss")
            }
            CacheOutcome::Miss => {
                HeaderValue::from_static("scoregate; fwd=miss; stored; detail=miss")
            }
            CacheOutcome::Shared => {
                HeaderValue::from_static("scoregate; fwd=miss; collapsed; detail=shared")
            }
            CacheOutcome::Refreshed => {
                HeaderValue::from_static("scoregate; fwd=stale; stored; detail=refreshed")
            }
            // Clients see both outcomes as stale; metrics distinguish them.
            CacheOutcome::Stale | CacheOutcome::StaleOnError => values
                .text(lifetime.prefix())
                .number(ttl)
                .text("; detail=stale")
                .value(),
        }
    }
}
