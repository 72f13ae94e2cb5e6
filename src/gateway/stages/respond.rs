//! Stage 7: builds the response. Only this file writes a status or a header.
//!
//! Everything constant was prepared when the document was stored; only numbers that change are written here. One code
//! path writes the limit headers of every response. What to answer is decided by earlier stages.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderName, LINK, LOCATION};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;

use crate::accounts::DocumentUse;
use crate::cache::{ContentCoding, Representation, StoredDocument, freshness, is_current};
use crate::gateway::refusal::{Refusal, whole_seconds};
use crate::gateway::response::error_body;
use crate::gateway::response::error_format::prefers_problem;
use crate::gateway::response::header_values::{HeaderValueWriter, NumberField};
use crate::gateway::response::limit_headers::{LIMITS, LimitHeaders};
use crate::gateway::response::page_reply::PageReply;
use crate::gateway::response::response_context::ResponseContext;
use crate::gateway::response::response_head::{HeadStart, HeadWriter, HeaderField, HeaderFieldSet};
use crate::instruments::CacheOutcome;
use scoregate_base::clock::Now;
use scoregate_base::plans::Rights;

use super::authenticate::Caller;
use super::fetch::Served;
use super::resolve::ResolvedTarget;

/// The content of a response.
#[derive(Debug)]
pub(crate) enum Reply {
    /// A page that needs no key.
    Page(PageReply),
    /// A redirect to the canonical address of a page.
    Moved(&'static str),
    /// The process is alive.
    Health,
    /// The allowed methods.
    Options,
    /// A document or a 304.
    Document(DocumentReply),
    /// `/me`.
    Me(Bytes),
}

/// A document in the form for one caller.
#[derive(Debug)]
pub(crate) struct DocumentReply {
    stored: Arc<StoredDocument>,
    rights: Rights,
    encoding: ContentCoding,
    pub(crate) not_modified: bool,
    max_age: u64,
    ttl: i64,
    pub(crate) outcome: CacheOutcome,
}

const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const PRIVATE_NO_STORE: HeaderValue = HeaderValue::from_static("private, no-store");
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");
const VARIES_FOR_ALL: HeaderValue = HeaderValue::from_static("Accept-Encoding");

impl DocumentReply {
    /// Chooses the form by the caller's rights and the encoding, and decides on a 304.
    pub(crate) fn of(
        served: Served,
        target: &ResolvedTarget,
        caller: &Caller,
        headers: &HeaderMap,
        now: Now,
    ) -> Self {
        let rights = caller.rights;
        let encoding = target.encoding;
        let representation = served.stored.document.form(rights).choose(encoding);
        Self {
            not_modified: target.conditional && is_current(headers, &representation.etag),
            rights,
            encoding,
            max_age: freshness::max_age(served.due, caller.spread, now.mono),
            ttl: freshness::ttl(served.due, now.mono),
            outcome: served.outcome,
            stored: served.stored,
        }
    }

    /// The document.
    pub(crate) fn into_stored(self) -> Arc<StoredDocument> {
        self.stored
    }

    /// The request, as evidence of use.
    pub(crate) fn as_use(&self, target: &ResolvedTarget) -> DocumentUse {
        let bytes = u32::try_from(self.representation().body.len()).unwrap_or(u32::MAX);
        let mark = target.mark;
        let is_conditional = target.conditional;
        let is_unchanged = self.not_modified;
        DocumentUse {
            mark,
            bytes,
            is_conditional,
            is_unchanged,
        }
    }

    /// Counts a use of the document.
    pub(crate) fn count_use(&self) {
        self.stored.used();
    }

    /// Its bytes and their headers.
    fn representation(&self) -> &Representation {
        self.stored.document.form(self.rights).choose(self.encoding)
    }

    fn cache_status(&self, values: &mut HeaderValueWriter) -> HeaderValue {
        let lifetime = NumberField::TimeToLive;
        match self.outcome {
            CacheOutcome::Hit => match u64::try_from(self.ttl) {
                Ok(ttl) => lifetime.value(ttl),
                Err(_) => values.text(lifetime.prefix()).number(self.ttl).value(),
            },
            CacheOutcome::Miss if !self.stored.is_cached => {
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
            // Clients see both as stale; metrics distinguish them.
            CacheOutcome::Stale | CacheOutcome::StaleOnError => values
                .text(lifetime.prefix())
                .number(self.ttl)
                .text("; detail=stale")
                .value(),
        }
    }
}

/// The fields of every response, after those of its content and the limits.
const COMMON: HeaderFieldSet =
    HeaderFieldSet::of(&[HeaderField::ContentTypeOptions, HeaderField::RequestId]);

const BODY: HeaderFieldSet =
    HeaderFieldSet::of(&[HeaderField::ContentType, HeaderField::ContentLength]);
const CACHE_CONTROL: HeaderFieldSet = HeaderFieldSet::of(&[HeaderField::CacheControl]);

pub(crate) fn respond(
    answered: &Result<Reply, Refusal>,
    at: &ResponseContext<'_>,
) -> Response<Full<Bytes>> {
    let values = &mut HeaderValueWriter::default();
    let limits = LimitHeaders::of(at, answered.as_ref().err());
    let is_page = matches!(
        answered,
        Ok(Reply::Page(_) | Reply::Moved(_) | Reply::Health)
    );
    let is_shared = is_for_shared_caches(answered.as_ref().ok());
    let others = COMMON.and(if is_shared {
        HeaderFieldSet::default()
    } else {
        LIMITS
    });
    let others = others.and_if(at.peer.is_encrypted, HeaderField::StrictTransportSecurity);
    // Responses to POST are not stored.
    let varies = !at.peer.is_tool_call;
    let others = others.and_if(varies, HeaderField::Vary);
    let mut response = Response::new(Full::default());
    let headers = response.headers_mut();
    let start = HeadStart::new(headers, others);
    let (status, body, mut head) = match answered {
        Ok(Reply::Document(reply)) if reply.encoding == ContentCoding::ToolResult => {
            tool_result(reply, start, values)
        }
        Ok(Reply::Document(reply)) => document(reply, start, values),
        Ok(Reply::Me(body)) => me(body, start, values),
        Ok(Reply::Page(page)) => public_page(page, start),
        Ok(Reply::Moved(_)) => moved(start),
        Ok(Reply::Health) => health(start),
        Ok(Reply::Options) => options(start),
        Err(refusal) => error(refusal, &limits, at, start),
    };
    if !is_shared {
        limits.write(&mut head, values);
    }
    match (varies, is_shared) {
        (false, _) => {}
        (true, false) => head.keep(HeaderField::Vary),
        (true, true) => head.put(HeaderField::Vary, VARIES_FOR_ALL),
    }
    head.keep(HeaderField::ContentTypeOptions);
    head.put(HeaderField::RequestId, at.id.value());
    if at.peer.is_encrypted {
        head.keep(HeaderField::StrictTransportSecurity);
    }
    head.finish();
    if let Some((name, value)) = header_of_the_page(answered.as_ref().ok()) {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !is_page {
        at.deprecation.write(headers);
    }
    if let Some(link) = answered
        .as_ref()
        .err()
        .and_then(|refusal| at.notice.links.of(refusal))
    {
        headers.insert(LINK, link.header.clone());
    }
    if let Some(cors) = at.cors.filter(|_| !at.peer.is_tool_call) {
        cors.write(at.headers, matches!(answered, Ok(Reply::Options)), headers);
    }
    *response.status_mut() = status;
    if *at.method != Method::HEAD {
        *response.body_mut() = Full::new(body);
    }
    response
}

/// Whether shared caches may store the response. It then states nothing about one client and does not depend on a key.
fn is_for_shared_caches(reply: Option<&Reply>) -> bool {
    match reply {
        Some(Reply::Page(reply)) => reply.page.is_public(),
        Some(
            Reply::Moved(_) | Reply::Health | Reply::Options | Reply::Me(_) | Reply::Document(_),
        )
        | None => false,
    }
}

/// The header that only a certain page or redirect has.
fn header_of_the_page(reply: Option<&Reply>) -> Option<(HeaderName, &'static str)> {
    match reply? {
        Reply::Moved(to) => Some((LOCATION, to)),
        Reply::Page(reply) => reply.page.link.map(|link| (LINK, link)),
        Reply::Health | Reply::Options | Reply::Me(_) | Reply::Document(_) => None,
    }
}

/// Status, body and head of a response, the head as far as its content determines it.
type Content<'m> = (StatusCode, Bytes, HeadWriter<'m>);

fn document<'m>(
    reply: &DocumentReply,
    start: HeadStart<'m>,
    values: &mut HeaderValueWriter,
) -> Content<'m> {
    const FIELDS: HeaderFieldSet = HeaderFieldSet::of(&[
        HeaderField::Etag,
        HeaderField::LastModified,
        HeaderField::CacheControl,
        HeaderField::CacheStatus,
    ]);
    let representation = (!reply.not_modified).then(|| reply.representation());
    let (status, body, mut head) = body_of(representation, None, FIELDS, start);
    let representation = reply.representation();
    head.put(HeaderField::Etag, representation.etag.clone());
    head.put(
        HeaderField::LastModified,
        representation.last_modified.clone(),
    );
    head.put(
        HeaderField::CacheControl,
        NumberField::MaxAge.value(reply.max_age),
    );
    head.put(HeaderField::CacheStatus, reply.cache_status(values));
    (status, body, head)
}

/// The result of a call, without its length: what `mcp` sends is longer.
fn tool_result<'m>(
    reply: &DocumentReply,
    start: HeadStart<'m>,
    values: &mut HeaderValueWriter,
) -> Content<'m> {
    const FIELDS: HeaderFieldSet = HeaderFieldSet::of(&[
        HeaderField::ContentType,
        HeaderField::CacheControl,
        HeaderField::CacheStatus,
    ]);
    let mut head = start.with(FIELDS);
    head.keep(HeaderField::ContentType);
    head.put(HeaderField::CacheControl, PRIVATE_NO_STORE);
    head.put(HeaderField::CacheStatus, reply.cache_status(values));
    (StatusCode::OK, reply.representation().body.clone(), head)
}

/// A 200 with this body and its headers, or a 304 without one. `fields` follow. Without a type, the body is JSON.
fn body_of<'m>(
    representation: Option<&Representation>,
    content_type: Option<HeaderValue>,
    fields: HeaderFieldSet,
    start: HeadStart<'m>,
) -> Content<'m> {
    let Some(Representation {
        body,
        length,
        encoding,
        ..
    }) = representation
    else {
        return (StatusCode::NOT_MODIFIED, Bytes::new(), start.with(fields));
    };
    let mut head = start.with(
        fields
            .and(BODY)
            .and_if(encoding.is_some(), HeaderField::ContentEncoding),
    );
    match content_type {
        None => head.keep(HeaderField::ContentType),
        Some(content_type) => head.put(HeaderField::ContentType, content_type),
    }
    head.put(HeaderField::ContentLength, length.clone());
    if let Some(encoding) = encoding {
        head.put(HeaderField::ContentEncoding, encoding.clone());
    }
    (StatusCode::OK, body.clone(), head)
}

fn me<'m>(body: &Bytes, start: HeadStart<'m>, values: &mut HeaderValueWriter) -> Content<'m> {
    let mut head = start.with(BODY.and(CACHE_CONTROL));
    head.keep(HeaderField::ContentType);
    head.put(
        HeaderField::ContentLength,
        values.number(body.len()).value(),
    );
    head.put(HeaderField::CacheControl, PRIVATE_NO_STORE);
    (StatusCode::OK, body.clone(), head)
}

fn public_page<'m>(reply: &PageReply, start: HeadStart<'m>) -> Content<'m> {
    const FIELDS: HeaderFieldSet = HeaderFieldSet::of(&[
        HeaderField::Etag,
        HeaderField::CacheControl,
        HeaderField::ContentSecurityPolicy,
        HeaderField::ReferrerPolicy,
    ]);
    let page = &reply.page;
    let representation = (!reply.not_modified).then(|| reply.representation());
    let content_type = HeaderValue::from_static(page.content_type);
    let (status, body, mut head) = body_of(representation, Some(content_type), FIELDS, start);
    head.put(HeaderField::Etag, reply.representation().etag.clone());
    head.put(
        HeaderField::CacheControl,
        HeaderValue::from_static(page.cache_control),
    );
    head.put(
        HeaderField::ContentSecurityPolicy,
        page.content_policy.clone(),
    );
    head.put(
        HeaderField::ReferrerPolicy,
        HeaderValue::from_static("no-referrer"),
    );
    (status, body, head)
}

fn moved(start: HeadStart<'_>) -> Content<'_> {
    let mut head = start.with(CACHE_CONTROL.and_if(true, HeaderField::ContentLength));
    head.put(HeaderField::ContentLength, HeaderValue::from_static("0"));
    head.put(HeaderField::CacheControl, NO_STORE);
    (StatusCode::PERMANENT_REDIRECT, Bytes::new(), head)
}

fn health(start: HeadStart<'_>) -> Content<'_> {
    let body = Bytes::from_static(b"alive\n");
    let mut head = start.with(BODY.and(CACHE_CONTROL));
    head.put(
        HeaderField::ContentType,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    head.put(HeaderField::ContentLength, HeaderValue::from(body.len()));
    head.put(HeaderField::CacheControl, NO_STORE);
    (StatusCode::OK, body, head)
}

fn options(start: HeadStart<'_>) -> Content<'_> {
    let mut head = start.with(CACHE_CONTROL.and_if(true, HeaderField::Allow));
    head.put(HeaderField::CacheControl, NO_STORE);
    head.put(HeaderField::Allow, METHODS);
    (StatusCode::NO_CONTENT, Bytes::new(), head)
}

fn error<'m>(
    refusal: &Refusal,
    limits: &LimitHeaders,
    at: &ResponseContext<'_>,
    start: HeadStart<'m>,
) -> Content<'m> {
    let as_problem = !at.peer.is_tool_call && prefers_problem(at.headers);
    let body = error_body::render(
        refusal,
        &limits.reported,
        at.id.as_str(),
        as_problem,
        at.notice,
    );
    let status = refusal.code().row().status;
    let allow = (status == StatusCode::METHOD_NOT_ALLOWED).then_some(METHODS);
    let challenge = (status == StatusCode::UNAUTHORIZED).then(|| at.notice.challenge.clone());
    let limited = refusal.rule().map(|_| limits.reported.wait);
    let wait = limited.or_else(|| refusal.retry_after(limits.next_token));
    let fields = BODY
        .and(CACHE_CONTROL)
        .and_if(allow.is_some(), HeaderField::Allow)
        .and_if(challenge.is_some(), HeaderField::WwwAuthenticate)
        .and_if(wait.is_some(), HeaderField::RetryAfter)
        .and_if(refusal.closes(), HeaderField::Connection);
    let mut head = start.with(fields);
    if as_problem {
        head.put(HeaderField::ContentType, PROBLEM);
    } else {
        head.keep(HeaderField::ContentType);
    }
    head.put(
        HeaderField::ContentLength,
        NumberField::Plain.value(body.len() as u64),
    );
    head.put(HeaderField::CacheControl, NO_STORE);
    if let Some(methods) = allow {
        head.put(HeaderField::Allow, methods);
    }
    if let Some(challenge) = challenge {
        head.put(HeaderField::WwwAuthenticate, challenge);
    }
    if let Some(wait) = wait {
        head.put(
            HeaderField::RetryAfter,
            NumberField::Plain.value(whole_seconds(wait)),
        );
    }
    // On HTTP/2 the server replaces this header by closing the connection.
    if refusal.closes() {
        head.put(HeaderField::Connection, HeaderValue::from_static("close"));
    }
    (status, body, head)
}
