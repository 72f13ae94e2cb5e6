//! Stage 3: which document is it, and may this caller ask for it? Route, then path and query values, then entitlement.

use http::header::{ACCEPT_ENCODING, IF_NONE_MATCH};

use crate::cache::{ContentCoding, negotiate};
use crate::keys::{KeyForm, Rights};
use crate::routes::{DocumentKey, Endpoint, ModelId, Period, decode_query, find};

use super::parse::ParsedRequest;
use super::refusal::Refusal;
use super::request_headers::RequestHeaders;

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct ResolvedTarget {
    /// The document.
    pub(super) key: DocumentKey,
    /// Its encoding.
    pub(super) encoding: ContentCoding,
    /// Whether the caller has a copy and asks if it is still current.
    pub(super) conditional: bool,
    /// Whether a key stands in the model's name. It may have slipped in there: that is no model, and goes nowhere, not to
    /// the backend, not into a log.
    pub(super) names_a_key: bool,
}

impl ResolvedTarget {
    /// The document, as far as it may be told.
    pub(super) fn named(&self) -> Option<&DocumentKey> {
        (!self.names_a_key).then_some(&self.key)
    }
}

/// Finds the endpoint of a path.
pub(super) fn endpoint<'r>(ask: &ParsedRequest<'r>) -> Result<(&'static Endpoint, Option<&'r str>), Refusal> {
    find(ask.path).map(|found| (found.endpoint, found.raw_id)).ok_or(Refusal::NotFound)
}

/// Finds the document that answers a request to an endpoint.
pub(super) fn resolve(
    ask: &ParsedRequest<'_>,
    endpoint: &Endpoint,
    raw_id: Option<&str>,
    rights: Rights,
    form: &KeyForm,
) -> Result<ResolvedTarget, Refusal> {
    let bad = |bad| Refusal::BadParam(bad, rights);
    let id = raw_id.map(ModelId::from_path).transpose().map_err(bad)?;
    let query = decode_query(ask.query, endpoint.takes).map_err(bad)?;
    let default_period = match rights {
        Rights::Free => Period::Day,
        Rights::Paid(_) => Period::Latest,
    };
    let key = DocumentKey::new(endpoint.route, id, query, default_period);
    entitle(&key, rights)?;
    let names_a_key = key.id.as_ref().is_some_and(|id| ask.credentials.appear_in(id.as_str(), form));
    let conditional = ask.headers.has(&IF_NONE_MATCH);
    Ok(ResolvedTarget { key, encoding: encoding(ask.headers), conditional, names_a_key })
}

/// Whether these rights may ask for a document.
pub(super) fn entitle(key: &DocumentKey, rights: Rights) -> Result<(), Refusal> {
    if key.period == Some(Period::Latest) && !rights.is_paid() {
        return Err(Refusal::LatestRequiresPlan);
    }
    Ok(())
}

fn encoding(headers: RequestHeaders<'_>) -> ContentCoding {
    if !headers.may_have(&ACCEPT_ENCODING) {
        return ContentCoding::Identity;
    }
    negotiate(headers.map().get_all(ACCEPT_ENCODING).iter())
}
