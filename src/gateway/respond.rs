//! Stage 7: builds the response. Only this file writes a status or a header.
//!
//! Everything constant was prepared when the document was stored; only numbers that change are written here. One code
//! path writes the limit headers of every response. What to answer is decided by earlier stages.

use bytes::Bytes;
use http::header::{HeaderName, LINK, LOCATION};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;

use crate::cache::{DocumentForm, Representation, freshness, is_current};
use crate::instruments::CacheOutcome;
use scoregate_base::clock::Now;
use scoregate_base::limits::{LimitRule, LimitStatus};

use super::authenticate::Caller;
use super::exchange::Exchange;
use super::fetch::Served;
use super::guard::AddressGuard;
use super::refusal::{Refusal, whole_seconds};
use super::resolve::ResolvedTarget;
use super::response::cors::CorsPolicy;
use super::response::deprecation::Deprecation;
use super::response::error_format::prefers_problem;
use super::response::header_values::{HeaderValueWriter, NumberField};
use super::response::page_reply::PageReply;
use super::response::response_head::{HeaderField, ResponseHead};

/// The content of a response.
#[derive(Debug)]
pub(super) enum Reply {
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
pub(super) struct DocumentReply {
    representation: Representation,
    pub(super) not_modified: bool,
    max_age: u64,
    ttl: i64,
    outcome: CacheOutcome,
    is_cached: bool,
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");
const VARIES: HeaderValue = HeaderValue::from_static("Accept-Encoding, Authorization, X-API-Key");
const VARIES_FOR_ALL: HeaderValue = HeaderValue::from_static("Accept-Encoding");
/// One year, as HSTS recommends.
const NEVER_IN_THE_CLEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

impl DocumentReply {
    /// Chooses the form by the caller's rights and the encoding, and decides on a 304.
    pub(super) fn of(
        served: &Served,
        target: &ResolvedTarget,
        caller: &Caller,
        headers: &HeaderMap,
        now: Now,
    ) -> Self {
        let form: &DocumentForm = served.stored.document.form(caller.rights);
        let representation = form.choose(target.encoding).clone();
        let not_modified = target.conditional && is_current(headers, &representation.etag);
        Self {
            not_modified,
            max_age: freshness::max_age(served.due, caller.spread, now.mono),
            ttl: freshness::ttl(served.due, now.mono),
            outcome: served.outcome,
            is_cached: served.stored.is_cached,
            representation,
        }
    }

    fn cache_status(&self, values: &mut HeaderValueWriter) -> HeaderValue {
        let lifetime = NumberField::TimeToLive;
        match self.outcome {
            CacheOutcome::Hit => match u64::try_from(self.ttl) {
                Ok(ttl) => lifetime.value(ttl),
                Err(_) => values.text(lifetime.prefix()).number(self.ttl).value(),
            },
            CacheOutcome::Miss if !self.is_cached => {
                HeaderValue::from_static("scoregate; fwd=miss; detail=miss")
            }
            CacheOutcome::Miss => HeaderValue::from_static("scoregate; fwd=miss; stored; detail=miss"),
            CacheOutcome::Shared => HeaderValue::from_static("scoregate; fwd=miss; collapsed; detail=shared"),
            CacheOutcome::Refreshed => {
                HeaderValue::from_static("scoregate; fwd=stale; stored; detail=refreshed")
            }
            // Clients see both as stale; metrics distinguish them.
            CacheOutcome::Stale | CacheOutcome::StaleOnError => {
                values.text(lifetime.prefix()).number(self.ttl).text("; detail=stale").value()
            }
        }
    }
}

/// Everything a response depends on besides the reply.
pub(super) struct ResponseContext<'r> {
    pub(super) method: &'r Method,
    pub(super) headers: &'r HeaderMap,
    pub(super) guard: &'r AddressGuard,
    /// The authentication realm.
    pub(super) realm: &'r str,
    pub(super) cors: Option<&'r CorsPolicy>,
    pub(super) deprecation: &'r Deprecation,
    /// The moment of sending.
    pub(super) now: Now,
}

pub(super) fn respond(
    answered: Result<Reply, Refusal>,
    exchange: &Exchange<'_>,
    at: &ResponseContext<'_>,
) -> Response<Full<Bytes>> {
    let values = &mut HeaderValueWriter::new();
    let limits = LimitHeaders::of(exchange, answered.as_ref().err(), at);
    let is_options = matches!(answered, Ok(Reply::Options));
    let is_page = matches!(answered, Ok(Reply::Page(_) | Reply::Moved(_) | Reply::Health));
    let is_shared = is_for_shared_caches(answered.as_ref().ok());
    let of_the_page = header_of_the_page(answered.as_ref().ok());
    let head = &mut ResponseHead::default();
    let (status, body) = match answered {
        Ok(Reply::Document(delivery)) => document(delivery, head, values),
        Ok(Reply::Me(body)) => me(body, head, values),
        Ok(Reply::Page(page)) => public_page(page, head),
        Ok(Reply::Moved(_)) => moved(head),
        Ok(Reply::Health) => health(head),
        Ok(Reply::Options) => options(head),
        Err(refusal) => error(&refusal, exchange, &limits, at, head, values),
    };
    if !is_shared {
        limits.write(head, values);
    }
    head.put(HeaderField::Vary, if is_shared { VARIES_FOR_ALL } else { VARIES });
    head.put(HeaderField::ContentTypeOptions, NOSNIFF);
    head.put(HeaderField::RequestId, exchange.id.value(values));
    if exchange.peer.is_encrypted {
        head.put(HeaderField::StrictTransportSecurity, NEVER_IN_THE_CLEAR);
    }
    let mut headers = head.take_map();
    if let Some((name, value)) = of_the_page {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !is_page {
        at.deprecation.write(&mut headers);
    }
    if let Some(cors) = at.cors {
        cors.write(at.headers, is_options, &mut headers);
    }
    let body = if *at.method == Method::HEAD { Bytes::new() } else { body };
    let mut response = Response::new(Full::new(body));
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    response
}

/// Whether shared caches may store the response. It then states nothing about one client and does not depend on a key.
fn is_for_shared_caches(reply: Option<&Reply>) -> bool {
    match reply {
        Some(Reply::Page(reply)) => reply.page.is_public(),
        Some(Reply::Moved(_) | Reply::Health | Reply::Options | Reply::Me(_) | Reply::Document(_)) | None => {
            false
        }
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

fn document(
    delivery: DocumentReply,
    head: &mut ResponseHead,
    values: &mut HeaderValueWriter,
) -> (StatusCode, Bytes) {
    head.put(HeaderField::CacheStatus, delivery.cache_status(values));
    let DocumentReply { representation, not_modified, max_age, .. } = delivery;
    head.put(HeaderField::Etag, representation.etag);
    head.put(HeaderField::LastModified, representation.last_modified);
    head.put(HeaderField::CacheControl, NumberField::MaxAge.value(max_age));
    if not_modified {
        return (StatusCode::NOT_MODIFIED, Bytes::new());
    }
    head.put(HeaderField::ContentType, JSON);
    head.put(HeaderField::ContentLength, representation.length);
    if let Some(encoding) = representation.encoding {
        head.put(HeaderField::ContentEncoding, encoding);
    }
    (StatusCode::OK, representation.body)
}

fn me(body: Bytes, head: &mut ResponseHead, values: &mut HeaderValueWriter) -> (StatusCode, Bytes) {
    head.put(HeaderField::ContentType, JSON);
    head.put(HeaderField::ContentLength, values.number(body.len()).value());
    head.put(HeaderField::CacheControl, HeaderValue::from_static("private, no-store"));
    (StatusCode::OK, body)
}

fn public_page(reply: PageReply, head: &mut ResponseHead) -> (StatusCode, Bytes) {
    let PageReply { page, representation, not_modified } = reply;
    head.put(HeaderField::Etag, representation.etag);
    head.put(HeaderField::CacheControl, HeaderValue::from_static(page.cache_control));
    head.put(HeaderField::ContentSecurityPolicy, page.content_policy.clone());
    head.put(HeaderField::ReferrerPolicy, HeaderValue::from_static("no-referrer"));
    if not_modified {
        return (StatusCode::NOT_MODIFIED, Bytes::new());
    }
    head.put(HeaderField::ContentType, HeaderValue::from_static(page.content_type));
    head.put(HeaderField::ContentLength, representation.length);
    if let Some(encoding) = representation.encoding {
        head.put(HeaderField::ContentEncoding, encoding);
    }
    (StatusCode::OK, representation.body)
}

fn moved(head: &mut ResponseHead) -> (StatusCode, Bytes) {
    head.put(HeaderField::ContentLength, HeaderValue::from_static("0"));
    head.put(HeaderField::CacheControl, NO_STORE);
    (StatusCode::PERMANENT_REDIRECT, Bytes::new())
}

fn health(head: &mut ResponseHead) -> (StatusCode, Bytes) {
    let body = Bytes::from_static(b"alive\n");
    head.put(HeaderField::ContentType, HeaderValue::from_static("text/plain; charset=utf-8"));
    head.put(HeaderField::ContentLength, HeaderValue::from(body.len()));
    head.put(HeaderField::CacheControl, NO_STORE);
    (StatusCode::OK, body)
}

fn options(head: &mut ResponseHead) -> (StatusCode, Bytes) {
    head.put(HeaderField::Allow, METHODS);
    head.put(HeaderField::CacheControl, NO_STORE);
    (StatusCode::NO_CONTENT, Bytes::new())
}

fn error(
    refusal: &Refusal,
    exchange: &Exchange<'_>,
    limits: &LimitHeaders,
    at: &ResponseContext<'_>,
    head: &mut ResponseHead,
    values: &mut HeaderValueWriter,
) -> (StatusCode, Bytes) {
    let as_problem = prefers_problem(at.headers);
    let body =
        super::response::error_body::render(refusal, &limits.reported, exchange.id.as_str(), as_problem);
    head.put(HeaderField::ContentType, if as_problem { PROBLEM } else { JSON });
    head.put(HeaderField::ContentLength, values.number(body.len()).value());
    head.put(HeaderField::CacheControl, NO_STORE);
    let status = refusal.code().row().status;
    match status {
        StatusCode::METHOD_NOT_ALLOWED => head.put(HeaderField::Allow, METHODS),
        StatusCode::UNAUTHORIZED => {
            let realm = values.text("Bearer realm=\"").text(at.realm).text("\"").value();
            head.put(HeaderField::WwwAuthenticate, realm);
        }
        _ => {}
    }
    let limited = refusal.rule().map(|_| limits.reported.wait);
    if let Some(wait) = limited.or_else(|| refusal.retry_after(limits.next_token)) {
        head.put(HeaderField::RetryAfter, values.number(whole_seconds(wait)).value());
    }
    // On HTTP/2 the server replaces this header by closing the connection.
    if refusal.closes() {
        head.put(HeaderField::Connection, HeaderValue::from_static("close"));
    }
    (status, body)
}

/// The limit headers of a response.
struct LimitHeaders {
    /// The rule named in `X-RateLimit-Resource`.
    reported: LimitStatus,
    /// Time until the next minute token of the caller.
    next_token: std::time::Duration,
    scope: LimitScope,
}

/// The owner of the limits.
enum LimitScope {
    /// An application: status of its minute and its day, and its policy header.
    Application([LimitStatus; 2], HeaderValue),
    /// An address: status of its guard.
    Address,
}

impl LimitHeaders {
    /// By the rule that refused the request, if any; else the day of a known application; else the guard of the
    /// address.
    fn of(exchange: &Exchange<'_>, refusal: Option<&Refusal>, at: &ResponseContext<'_>) -> Self {
        let hit = refusal.and_then(Refusal::rule);
        let Some(caller) = &exchange.caller else {
            let limit_status = at.guard.limit_status(exchange.peer.address, at.now);
            let reported =
                if hit.is_some() { limit_status.as_hit(exchange.started, at.now) } else { limit_status };
            return Self { reported, next_token: std::time::Duration::ZERO, scope: LimitScope::Address };
        };
        let rule = hit.unwrap_or(LimitRule::Day);
        let terms = caller.account.terms();
        let statuses = caller.account.limit_statuses(rule, &terms.limits, at.now);
        let as_reported = |status: LimitStatus| {
            if Some(status.rule) == hit { status.as_hit(exchange.started, at.now) } else { status }
        };
        let [minute, day, reported] = if hit.is_some() { statuses.map(as_reported) } else { statuses };
        Self {
            reported,
            next_token: minute.wait,
            scope: LimitScope::Application([minute, day], terms.policy.clone()),
        }
    }

    fn write(self, head: &mut ResponseHead, values: &mut HeaderValueWriter) {
        head.put(HeaderField::Limit, NumberField::Plain.value(self.reported.limit.into()));
        head.put(HeaderField::Remaining, values.number(self.reported.remaining).value());
        head.put(HeaderField::Reset, NumberField::Plain.value(self.reported.reset.seconds()));
        head.put(HeaderField::Resource, HeaderValue::from_static(self.reported.rule.name()));
        let policy = match self.scope {
            LimitScope::Application([minute, day], policy) => {
                part(values, &minute);
                part(values.text(", "), &day);
                head.put(HeaderField::Standing, values.value());
                policy
            }
            LimitScope::Address => {
                part(values, &self.reported);
                head.put(HeaderField::Standing, values.value());
                values.text("\"guard\";q=").number(self.reported.limit).text(";w=60").value()
            }
        };
        head.put(HeaderField::Policy, policy);
    }
}

/// `"minute";r=59;t=1`: remaining allowance, and seconds until it is full again.
fn part(values: &mut HeaderValueWriter, limit_status: &LimitStatus) {
    let seconds = limit_status.full_in.as_secs() + u64::from(limit_status.full_in.subsec_nanos() > 0);
    values.text("\"").text(limit_status.rule.name()).text("\";r=").number(limit_status.remaining);
    values.text(";t=").number(seconds);
}
