//! The activity of a connection: recorded by its parts, read by its timer.

mod activity_state;
mod connection_activity;
mod stream_guard;
#[cfg(test)]
mod tests;

pub(super) use connection_activity::ConnectionActivity;
pub(super) use stream_guard::StreamGuard;
