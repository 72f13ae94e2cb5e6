//! A request and its connection: the parts of the head, and the state that is recorded.

pub mod connection_trust;
pub mod credentials;
pub mod exchange;
pub mod host;
pub mod peer;
pub mod progress;
pub mod request_headers;
pub mod request_id;
pub mod target_memo;
