//! Stage 7: builds the response that earlier stages decided on. It chooses the status and the headers of the API;
//! `cors` and `deprecation` add their headers. Constant parts were prepared when the document was stored, so only
//! numbers that change are written here. One code path writes the limit headers of all responses.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Response, StatusCode,
    header::{LINK, LOCATION, VARY},
};
use http_body_util::Full;

use crate::{
    cache::Representation,
    gateway::{
        Peer, Refusal,
        refusal::whole_seconds,
        response::{
            error_body,
            header_values::{HeaderValueWriter, NumberField},
            limit_headers::{LIMITS, LimitHeaders},
            page_reply::PageReply,
            preferred_form::prefers_problem,
            remedy_links::RemedyLink,
            reply::{Answered, DocumentReply, Reply},
            response_context::ResponseContext,
            response_head::{HeadStart, HeadWriter, HeaderField, HeaderFieldSet},
        },
    },
};
use scoregate_base::routes::headers::VARY_FOR_ALL;

const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const PRIVATE_NO_STORE: HeaderValue = HeaderValue::from_static("private, no-store");
const VARY_BY_FORM: &str = "Accept-Encoding, Authorization, X-API-Key, Accept";
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");

/// The fields of every response. They follow the content fields and the limit fields.
const COMMON: HeaderFieldSet =
    HeaderFieldSet::of(&[HeaderField::ContentTypeOptions, HeaderField::RequestId]);

const BODY: HeaderFieldSet =
    HeaderFieldSet::of(&[HeaderField::ContentType, HeaderField::ContentLength]);
const CACHE_CONTROL: HeaderFieldSet = HeaderFieldSet::of(&[HeaderField::CacheControl]);

pub fn respond(answered: Answered<'_>, at: &ResponseContext<'_>) -> Response<Full<Bytes>> {
    let values = &mut HeaderValueWriter::default();
    let limits = LimitHeaders::new(at, answered);
    let is_shared = is_for_shared_caches(answered);
    let mut response = Response::new(Full::default());
    let headers = response.headers_mut();
    let start = HeadStart::new(headers, last_fields(is_shared, at.peer));
    let (status, body, mut head) = match answered {
        Ok(reply) => content(reply, start, values),
        Err(refusal) => error(refusal, &limits, at, start),
    };
    let links = &at.gateway.notice.links;
    let refusal = answered.err();
    let link = refusal.and_then(|refusal| links.of(refusal, &limits.reported));
    if !is_shared {
        limits.write(&mut head, values);
    }
    finish(head, is_shared, at);
    add_rare_fields(answered, link, at, headers);
    *response.status_mut() = status;
    // HEAD gets the headers of a GET, with the length of the omitted body.
    if at.head.method != Method::HEAD {
        *response.body_mut() = Full::new(body);
    }
    response
}

/// Whether shared caches may store the response. Such a response contains nothing about a client and does not depend on
/// a key.
fn is_for_shared_caches(answered: Answered<'_>) -> bool {
    match answered {
        Ok(Reply::Page(reply)) => reply.page.is_public(),
        Ok(
            Reply::Moved(_) | Reply::Health | Reply::Options | Reply::Me(_) | Reply::Document(_),
        )
        | Err(_) => false,
    }
}

/// The fields that follow the content fields. `Vary` is omitted for tool calls: they are POST requests, whose
/// responses are not stored.
fn last_fields(is_shared: bool, peer: Peer) -> HeaderFieldSet {
    let limits = if is_shared {
        HeaderFieldSet::default()
    } else {
        LIMITS
    };
    COMMON
        .and(limits)
        .and_if(peer.is_encrypted, HeaderField::StrictTransportSecurity)
        .and_if(!peer.is_tool_call, HeaderField::Vary)
}

/// Sets the fields after the limits.
fn finish(mut head: HeadWriter<'_>, is_shared: bool, at: &ResponseContext<'_>) {
    if !at.peer.is_tool_call {
        if is_shared {
            head.put(HeaderField::Vary, HeaderValue::from_static(VARY_FOR_ALL));
        } else {
            head.keep(HeaderField::Vary);
        }
    }
    head.keep(HeaderField::ContentTypeOptions);
    head.put(HeaderField::RequestId, at.id.value());
    if at.peer.is_encrypted {
        head.keep(HeaderField::StrictTransportSecurity);
    }
    head.finish();
}

/// Adds the fields that only some services or responses have.
fn add_rare_fields(
    answered: Answered<'_>,
    link: Option<&RemedyLink>,
    at: &ResponseContext<'_>,
    headers: &mut HeaderMap,
) {
    match answered {
        Ok(Reply::Moved(to)) => {
            headers.insert(LOCATION, HeaderValue::from_static(to));
        }
        Ok(Reply::Page(reply)) => {
            if let Some(link) = reply.page.link {
                headers.insert(LINK, HeaderValue::from_static(link));
            }
            if reply.page.has_forms() {
                headers.insert(VARY, HeaderValue::from_static(VARY_BY_FORM));
            }
        }
        Ok(Reply::Health) => {}
        Ok(Reply::Options | Reply::Document(_) | Reply::Me(_)) => {
            at.gateway.deprecation.write(headers);
        }
        Err(_) => {
            at.gateway.deprecation.write(headers);
            if let Some(link) = link {
                headers.insert(LINK, link.header.clone());
            }
        }
    }
    if let Some(cors) = &at.gateway.cors
        && !at.peer.is_tool_call
    {
        let is_options = matches!(answered, Ok(Reply::Options));
        cors.write(&at.head.headers, is_options, headers);
    }
}

/// The status and the body of a response, and the part of the head that depends on the content.
type Content<'m> = (StatusCode, Bytes, HeadWriter<'m>);

fn content<'m>(reply: &Reply, start: HeadStart<'m>, values: &mut HeaderValueWriter) -> Content<'m> {
    match reply {
        Reply::Document(reply) if reply.is_tool_result() => tool_result(reply, start, values),
        Reply::Document(reply) => document(reply, start, values),
        Reply::Me(body) => me(body, start, values),
        Reply::Page(page) => public_page(page, start),
        Reply::Moved(_) => moved(start),
        Reply::Health => health(start),
        Reply::Options => options(start),
    }
}

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
    let representation = reply.representation();
    let sent = (!reply.document.is_unchanged).then_some(representation);
    let (status, body, mut head) = body_of(sent, None, FIELDS, start);
    head.put(HeaderField::Etag, representation.etag.clone());
    head.put(
        HeaderField::LastModified,
        representation.last_modified.clone(),
    );
    head.put(HeaderField::CacheControl, reply.cache_control());
    head.put(HeaderField::CacheStatus, reply.cache_status(values));
    (status, body, head)
}

/// The result of a tool call, without `Content-Length`, because `mcp` sends a longer response.
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

/// A 200 with this body and its headers, or a 304 without a body. The header fields in `fields` follow. The body is
/// JSON unless a type is given.
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
    let as_problem = !at.peer.is_tool_call && prefers_problem(&at.head.headers);
    let id = at.id.as_str();
    let body = error_body::render(
        refusal,
        &limits.reported,
        id,
        as_problem,
        &at.gateway.notice,
    );
    let status = refusal.code().row().status;
    let is_method_wrong = status == StatusCode::METHOD_NOT_ALLOWED;
    let needs_a_key = status == StatusCode::UNAUTHORIZED;
    let wait = retry_after(refusal, limits);
    let fields = BODY
        .and(CACHE_CONTROL)
        .and_if(is_method_wrong, HeaderField::Allow)
        .and_if(needs_a_key, HeaderField::WwwAuthenticate)
        .and_if(wait.is_some(), HeaderField::RetryAfter)
        .and_if(refusal.closes(), HeaderField::Connection);
    let mut head = start.with(fields);
    if as_problem {
        head.put(HeaderField::ContentType, PROBLEM);
    } else {
        head.keep(HeaderField::ContentType);
    }
    let length = NumberField::Plain.value(body.len() as u64);
    head.put(HeaderField::ContentLength, length);
    head.put(HeaderField::CacheControl, NO_STORE);
    if is_method_wrong {
        head.put(HeaderField::Allow, METHODS);
    }
    if needs_a_key {
        head.put(
            HeaderField::WwwAuthenticate,
            at.gateway.notice.challenge.clone(),
        );
    }
    if let Some(wait) = wait {
        head.put(HeaderField::RetryAfter, wait);
    }
    // On HTTP/2 the server closes the connection instead of sending this header.
    if refusal.closes() {
        head.put(HeaderField::Connection, HeaderValue::from_static("close"));
    }
    (status, body, head)
}

/// `Retry-After`, from the rule that refused the request, or from the refusal itself.
fn retry_after(refusal: &Refusal, limits: &LimitHeaders) -> Option<HeaderValue> {
    let wait = match refusal.rule() {
        Some(_) => limits.reported.wait,
        None => refusal.retry_after(limits.next_token)?,
    };
    Some(NumberField::Plain.value(whole_seconds(wait)))
}
