//! Error responses, in the format of the API.
//!
//! The body is like the body of the gateway's errors, but without the parts that only a gateway has: limits, request
//! id and docs page.

use bytes::Bytes;

use scoregate_base::routes::{
    BadParam, ErrorBody,
    codes::{CodeRow, ErrorCode},
};

/// The reason for an error response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendRefusal {
    /// The method is not supported.
    Method,
    /// No endpoint has this path.
    Path,
    /// A parameter or the model id is malformed.
    Param(BadParam),
    /// The model does not exist.
    Model,
}

impl BackendRefusal {
    /// The row of the error code.
    pub fn row(&self) -> &'static CodeRow {
        let code = match self {
            Self::Method => ErrorCode::MethodNotAllowed,
            Self::Path => ErrorCode::NotFound,
            Self::Param(bad) => bad.param.code(),
            Self::Model => ErrorCode::ModelNotFound,
        };
        code.row()
    }

    pub fn body(&self) -> Bytes {
        let row = self.row();
        let bad = if let Self::Param(bad) = self {
            Some(bad)
        } else {
            None
        };
        let message = bad.map_or_else(
            || format!("{} {}", row.condition, row.remedy),
            |bad| bad.message(&bad.param.allowed()),
        );
        let body = ErrorBody::new(
            row,
            &message,
            bad.map(|bad| (bad.param, bad.param.allowed())),
        );
        let mut text = vec![b'{'];
        body.write(&mut text);
        text.push(b'}');
        Bytes::from(text)
    }
}
