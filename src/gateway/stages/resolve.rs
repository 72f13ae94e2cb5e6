//! Stage 3: finds the requested document and checks the route, the values in the path and query, and the caller's
//! rights, in this order.

use http::header::{ACCEPT_ENCODING, IF_NONE_MATCH};

use crate::{
    cache::{ContentCoding, negotiate},
    documents::FoundDocument,
    gateway::{
        Gateway, Refusal, TargetMemo, plan_gap::PlanGap, request::request_headers::RequestHeaders,
    },
};
use scoregate_base::{
    clock::Mono,
    evidence::DocumentMark,
    keys::KeyForm,
    plans::{Rights, Tier},
    routes::{DocumentKey, ModelId, Route, RouteMatch, decode_query},
};

use super::parse::ParsedRequest;

/// The requested document and how to send it.
#[derive(Clone, Debug)]
pub struct ResolvedTarget {
    pub(crate) key: DocumentKey,
    pub(crate) mark: DocumentMark,
    pub(crate) encoding: ContentCoding,
    /// Whether the request is conditional.
    pub(crate) conditional: bool,
    /// Whether the model's name contains a key, for example by mistake. Such a name is neither sent to the backend nor
    /// logged.
    pub(crate) names_a_key: bool,
}

/// The object of a request.
#[derive(Debug)]
pub enum Wanted {
    /// `/me`.
    Me,
    /// A document, with the stored document if there is one.
    Document(ResolvedTarget, Option<FoundDocument>),
}

/// How documents are looked up.
#[derive(Clone, Copy, Debug)]
pub enum Lookup<'m> {
    /// In the memo, then in the cache. Counts as a use.
    Use(&'m TargetMemo),
    /// In the cache only. Does not affect eviction.
    Peek,
}

impl ResolvedTarget {
    /// Creates the target for a document that the caller may request, in the encoding that the request selects.
    #[inline]
    fn new(
        request: &ParsedRequest<'_>,
        key: DocumentKey,
        mark: DocumentMark,
        form: &KeyForm,
    ) -> Self {
        let names_a_key = match &key.id {
            Some(id) => request.credentials.appear_in(id.as_str(), form),
            None => false,
        };
        let encoding = if request.is_tool_call {
            ContentCoding::ToolResult
        } else {
            encoding(request.headers)
        };
        Self {
            key,
            mark,
            encoding,
            conditional: !request.is_tool_call && request.headers.has(&IF_NONE_MATCH),
            names_a_key,
        }
    }

    /// The document, unless its name must not be logged.
    pub(crate) fn named(&self) -> Option<&DocumentKey> {
        (!self.names_a_key).then_some(&self.key)
    }
}

/// Resolves the target of a request with these rights. Inlined, so that a hit moves the result only once.
#[inline]
pub fn resolve(
    gateway: &Gateway,
    request: &ParsedRequest<'_>,
    rights: Rights,
    now: Mono,
    lookup: Lookup<'_>,
) -> Result<Wanted, Refusal> {
    if let Lookup::Use(memo) = lookup
        && let Some(entry) = memo.recall(request.target, rights, now)
    {
        let target = ResolvedTarget::new(request, entry.key, entry.mark, &gateway.form);
        let found = match entry.document {
            Some(stored) => Some(gateway.engine.documents.judge(&target.key, stored, now)),
            None => find(gateway, request, rights, &target, now, lookup),
        };
        return Ok(Wanted::Document(target, found));
    }
    let route = gateway.endpoints.find(request.path);
    let route = route.ok_or(Refusal::NotFound)?;
    if route.endpoint.route == Route::Me {
        return Ok(Wanted::Me);
    }
    let target = target(
        request,
        &route,
        rights,
        &gateway.notice.tiers,
        &gateway.form,
    )?;
    let found = find(gateway, request, rights, &target, now, lookup);
    Ok(Wanted::Document(target, found))
}

/// The document of a request to an endpoint.
pub fn target(
    request: &ParsedRequest<'_>,
    route: &RouteMatch<'_>,
    rights: Rights,
    tiers: &[Tier],
    form: &KeyForm,
) -> Result<ResolvedTarget, Refusal> {
    let endpoint = route.endpoint;
    let periods = rights.periods_of(endpoint.route);
    let id = route.raw_id.map(ModelId::from_path).transpose();
    let id = id.map_err(|bad| Refusal::BadParam(bad, periods))?;
    let query = decode_query(request.query, endpoint.takes);
    let query = query.map_err(|bad| Refusal::BadParam(bad, periods))?;
    let period = rights.default_period(endpoint.route);
    let key = DocumentKey::new(endpoint.route, id, query, period);
    entitle(&key, rights, tiers)?;
    let mark = DocumentMark::of(&key);
    Ok(ResolvedTarget::new(request, key, mark, form))
}

/// Checks whether these rights cover a document. A refusal names a tier whose rights cover it.
pub fn entitle(key: &DocumentKey, rights: Rights, tiers: &[Tier]) -> Result<(), Refusal> {
    match PlanGap::of(key, rights, tiers) {
        None => Ok(()),
        Some(gap) => Err(Refusal::PlanRequired(gap)),
    }
}

/// Finds the stored document, and keeps it in the memo.
fn find(
    gateway: &Gateway,
    request: &ParsedRequest<'_>,
    rights: Rights,
    target: &ResolvedTarget,
    now: Mono,
    lookup: Lookup<'_>,
) -> Option<FoundDocument> {
    let documents = &gateway.engine.documents;
    let Lookup::Use(memo) = lookup else {
        return documents.peek(&target.key, now);
    };
    let found = documents.find(&target.key, now)?;
    // The memo must not keep a target whose text contains a key.
    if !target.names_a_key {
        memo.remember(request, rights, &target.key, &found.stored, now);
    }
    Some(found)
}

fn encoding(headers: RequestHeaders<'_>) -> ContentCoding {
    if !headers.may_have(&ACCEPT_ENCODING) {
        return ContentCoding::Identity;
    }
    negotiate(headers.map().get_all(ACCEPT_ENCODING).iter())
}
