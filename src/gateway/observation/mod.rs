//! Records of a request: its log line, metrics, usage and span.

pub(super) mod access_log;
pub(super) mod recorders;
pub(super) mod request_span;
