//! The activity of a connection: its components record it, and its timer reads it.

mod activity_state;
mod connection_activity;
mod stream_guard;
#[cfg(test)]
mod tests;

pub use connection_activity::ConnectionActivity;
pub use stream_guard::StreamGuard;
