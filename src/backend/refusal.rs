//! The reasons not to answer, in the words of the API.
//!
//! The body is that of the gateway's errors, without what only a gateway knows: limits, a request id, a docs page.
//! Not for: deciding.

use bytes::Bytes;
use serde::Serialize;

use crate::routes::codes::{Code, Row};
use crate::routes::{API_VERSION, BadParam};

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The method is none that this service takes.
    Method,
    /// No endpoint lies there.
    Path,
    /// A parameter, or the model's identifier, is malformed.
    Param(BadParam),
    /// There is no such model.
    Model,
}

#[derive(Serialize)]
struct Body<'a> {
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

impl Refusal {
    /// The row of its code.
    pub(super) fn row(&self) -> &'static Row {
        let code = match self {
            Self::Method => Code::MethodNotAllowed,
            Self::Path => Code::NotFound,
            Self::Param(bad) => bad.param.code(),
            Self::Model => Code::ModelNotFound,
        };
        code.row()
    }

    /// What is sent.
    pub(super) fn body(&self) -> Bytes {
        let row = self.row();
        let bad = if let Self::Param(bad) = self { Some(bad) } else { None };
        let message = bad.map_or_else(|| format!("{} {}", row.condition, row.remedy), BadParam::message);
        let body = Body {
            success: false,
            version: API_VERSION,
            status: row.status.as_u16(),
            code: row.word,
            message: &message,
            param: bad.map(|bad| bad.param.name()),
            allowed: bad.map(|bad| bad.param.allowed()),
        };
        Bytes::from(serde_json::to_vec(&body).expect("texts and numbers always make JSON"))
    }
}
