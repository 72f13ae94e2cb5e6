//! The records of a request: log line, metrics, usage and span.

pub mod access_log;
pub mod recorders;
pub mod request_span;
