//! A request and its connection: the parts of the head, and the state that is recorded.

pub(super) mod connection_trust;
pub(super) mod credentials;
pub(super) mod exchange;
pub(super) mod host;
pub(super) mod peer;
pub(super) mod progress;
pub(super) mod request_headers;
pub(super) mod request_id;
pub(super) mod target_memo;
