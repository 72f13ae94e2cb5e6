//! Gives the fuzz targets in `tests/fuzz/` access to the stages that parse untrusted bytes.
//!
//! This is not a stable interface: it changes with the stages.

use http::{HeaderMap, HeaderValue, request::Parts};

use crate::cache;
use scoregate_base::{
    keys::KeyForm,
    plans::Rights,
    routes::{DocumentKey, EndpointTable},
};

use super::{
    refusal::{MisplacedKey, Refusal},
    request::{credentials::Credentials, request_headers::RequestHeaders},
    stages::{
        parse::{ReceivedRequest, parse},
        resolve,
    },
};

/// Resolves the requested document.
pub fn document(head: &Parts, rights: Rights) -> Result<DocumentKey, Refusal> {
    let request = parse(ReceivedRequest::new(head, false))?;
    let endpoints = EndpointTable::default();
    let route = endpoints.find(request.path).ok_or(Refusal::NotFound)?;
    let form = KeyForm::new("sg_live", false);
    resolve::target(&request, &route, rights, &[], &form).map(|target| target.key)
}

/// The key in the headers.
pub fn key(headers: &HeaderMap) -> Result<&str, Refusal> {
    Credentials::new(RequestHeaders::new(headers))
        .key()?
        .ok_or(Refusal::KeyMissing(MisplacedKey::Nowhere))
}

/// Whether a copy with this tag would get a 304.
pub fn is_current(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    cache::is_current(headers, etag)
}
