//! The records of a request: log line, metrics, usage and span.

pub(super) mod access_log;
pub(super) mod recorders;
pub(super) mod request_span;
