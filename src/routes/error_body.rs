//! The part of an error's body that everybody who answers by these tables says in the same words: flat, because a real
//! client prints `body.code`. Not for: what only a gateway knows (limits, a request's identifier).

use serde::Serialize;

use super::codes::Row;
use super::{API_VERSION, Param};

/// What every error says.
#[derive(Debug, Serialize)]
pub struct ErrorBody<'a> {
    success: bool,
    version: &'static str,
    status: u16,
    code: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<Vec<&'static str>>,
}

impl<'a> ErrorBody<'a> {
    /// An error of this code, with the parameter that it is about and what would do for it.
    pub fn new(row: &'static Row, message: &'a str, param: Option<(Param, Vec<&'static str>)>) -> Self {
        let (param, allowed) = param.map(|(param, allowed)| (param.name(), allowed)).unzip();
        Self {
            success: false,
            version: API_VERSION,
            status: row.status.as_u16(),
            code: row.word,
            message,
            param,
            allowed,
        }
    }
}
