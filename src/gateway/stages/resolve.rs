//! Stage 3: finds the requested document and checks entitlement: route, then path and query values, then the caller's
//! rights.

use http::header::{ACCEPT_ENCODING, IF_NONE_MATCH};

use crate::cache::{ContentCoding, negotiate};
use crate::documents::FoundDocument;
use crate::gateway::plan_gap::PlanGap;
use crate::gateway::refusal::Refusal;
use crate::gateway::request::request_headers::RequestHeaders;
use scoregate_base::evidence::DocumentMark;
use scoregate_base::keys::KeyForm;
use scoregate_base::plans::{Rights, Tier};
use scoregate_base::routes::{DocumentKey, Endpoint, EndpointTable, ModelId, decode_query};

use super::parse::ParsedRequest;

/// The requested document and how to send it.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedTarget {
    pub(crate) key: DocumentKey,
    pub(crate) mark: DocumentMark,
    pub(crate) encoding: ContentCoding,
    /// Whether the request is conditional.
    pub(crate) conditional: bool,
    /// Whether the model's name contains a key, for example by mistake. Such a name is never sent to the backend nor
    /// logged.
    pub(crate) names_a_key: bool,
}

impl ResolvedTarget {
    /// A document that the caller may request, as this request asks for it.
    pub(crate) fn of(
        request: &ParsedRequest<'_>,
        (key, mark): (DocumentKey, DocumentMark),
        form: &KeyForm,
    ) -> Self {
        let names_a_key = key
            .id
            .as_ref()
            .is_some_and(|id| request.credentials.appear_in(id.as_str(), form));
        let (encoding, conditional) = if request.is_tool_call {
            (ContentCoding::ToolResult, false)
        } else {
            (
                encoding(request.headers),
                request.headers.has(&IF_NONE_MATCH),
            )
        };
        Self {
            key,
            mark,
            encoding,
            conditional,
            names_a_key,
        }
    }

    /// Whether a request for this stored document does not have to wait.
    pub(crate) fn is_ready(&self, found: &FoundDocument) -> bool {
        found.is_fresh() && !self.names_a_key
    }

    /// The document, unless its name must not be logged.
    pub(crate) fn named(&self) -> Option<&DocumentKey> {
        (!self.names_a_key).then_some(&self.key)
    }
}

/// Finds the endpoint of a path.
pub(crate) fn endpoint<'r>(
    request: &ParsedRequest<'r>,
    endpoints: &EndpointTable,
) -> Result<(&'static Endpoint, Option<&'r str>), Refusal> {
    endpoints
        .find(request.path)
        .map(|found| (found.endpoint, found.raw_id))
        .ok_or(Refusal::NotFound)
}

/// Finds the document of a request to an endpoint.
pub(crate) fn resolve(
    request: &ParsedRequest<'_>,
    endpoint: &Endpoint,
    raw_id: Option<&str>,
    (rights, tiers): (Rights, &[Tier]),
    form: &KeyForm,
) -> Result<ResolvedTarget, Refusal> {
    let bad = |bad| Refusal::BadParam(bad, rights.periods_of(endpoint.route));
    let id = raw_id.map(ModelId::from_path).transpose().map_err(bad)?;
    let query = decode_query(request.query, endpoint.takes).map_err(bad)?;
    let key = DocumentKey::new(
        endpoint.route,
        id,
        query,
        rights.default_period(endpoint.route),
    );
    entitle(&key, rights, tiers)?;
    let mark = DocumentMark::of(&key);
    Ok(ResolvedTarget::of(request, (key, mark), form))
}

/// Checks whether these rights cover a document. A refusal names one of the tiers that do.
pub(crate) fn entitle(key: &DocumentKey, rights: Rights, tiers: &[Tier]) -> Result<(), Refusal> {
    PlanGap::of(key, rights, tiers).map_or(Ok(()), |gap| Err(Refusal::PlanRequired(gap)))
}

fn encoding(headers: RequestHeaders<'_>) -> ContentCoding {
    if !headers.may_have(&ACCEPT_ENCODING) {
        return ContentCoding::Identity;
    }
    negotiate(headers.map().get_all(ACCEPT_ENCODING).iter())
}
