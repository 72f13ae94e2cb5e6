//! The status page of a running gateway: records its minutes in the store, and publishes the page whenever its content
//! changes. Messages are posted here, also without a gateway. A request only loads a pointer. `pages::status` renders
//! the page; the rules of minutes and messages are in `store::status`.

mod pending_minutes;
mod read_history;
mod status_messages;
mod status_publisher;

pub use status_messages::{StatusMessageError, StatusMessages};
pub use status_publisher::{Observation, StatusPublisher};
