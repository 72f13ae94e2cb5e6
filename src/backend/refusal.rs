//! The reasons not to answer, in the words of the API.
//!
//! The body is that of the gateway's errors, without what only a gateway knows: limits, a request id, a docs page.
//! Not for: deciding.

use bytes::Bytes;

use crate::routes::codes::{CodeRow, ErrorCode};
use crate::routes::{BadParam, ErrorBody};

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BackendRefusal {
    /// The method is none that this service takes.
    Method,
    /// No endpoint lies there.
    Path,
    /// A parameter, or the model's identifier, is malformed.
    Param(BadParam),
    /// There is no such model.
    Model,
}

impl BackendRefusal {
    /// The row of its code.
    pub(super) fn row(&self) -> &'static CodeRow {
        let code = match self {
            Self::Method => ErrorCode::MethodNotAllowed,
            Self::Path => ErrorCode::NotFound,
            Self::Param(bad) => bad.param.code(),
            Self::Model => ErrorCode::ModelNotFound,
        };
        code.row()
    }

    /// What is sent.
    pub(super) fn body(&self) -> Bytes {
        let row = self.row();
        let bad = if let Self::Param(bad) = self { Some(bad) } else { None };
        let message = bad.map_or_else(
            || format!("{} {}", row.condition, row.remedy),
            |bad| bad.message(&bad.param.allowed()),
        );
        let body = ErrorBody::new(row, &message, bad.map(|bad| (bad.param, bad.param.allowed())));
        let mut text = vec![b'{'];
        body.write(&mut text);
        text.push(b'}');
        Bytes::from(text)
    }
}
