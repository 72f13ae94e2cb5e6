//! The status page of a running gateway. Records the gateway's minutes in the store, and publishes the page whenever
//! its content changes. A request only loads a pointer. Messages are also posted here, even if no gateway is running.
//! `pages::status` renders the page. The rules for minutes and messages are in `store::status`.

mod pending_minutes;
mod read_history;
mod status_messages;
mod status_publisher;

pub use status_messages::{StatusMessageError, StatusMessages};
pub use status_publisher::{Observation, StatusPublisher};
