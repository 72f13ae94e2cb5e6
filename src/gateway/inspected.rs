//! Doors for the fuzz targets below `tests/fuzz/`: what reads strangers' bytes, each by itself.
//!
//! Not for: the program, nor for anybody who uses the crate; what stands here may change with the stages behind it.

use http::request::Parts;
use http::{HeaderMap, HeaderValue};

use crate::cache;
use crate::keys::{KeyForm, Rights};
use crate::routes::DocumentKey;

use super::authenticate::presented;
use super::parse::parse;
use super::refusal::Refusal;
use super::resolve::{endpoint, resolve};

/// The document that a caller asks for.
pub fn document(head: &Parts, rights: Rights) -> Result<DocumentKey, Refusal> {
    let ask = parse(head, false)?;
    let (endpoint, raw_id) = endpoint(&ask)?;
    resolve(&ask, endpoint, raw_id, rights, &KeyForm::new("sg_live", false)).map(|target| target.key)
}

/// The key that was sent.
pub fn key(headers: &HeaderMap) -> Result<&str, Refusal> {
    presented(headers)
}

/// Whether a copy with this tag would be a 304.
pub fn is_current(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    cache::is_current(headers, etag)
}
