//! Observability: the table of metrics, the logs, and trace context.
//!
//! This is the lowest layer. It handles names and numbers, not requests. `instruments` and background tasks decide what
//! to count.

pub mod access_log_writer;
mod event_limits;
#[cfg(test)]
mod kept_bytes;
mod line_writer;
pub mod log;
mod memory_limit;
pub mod metrics;
pub mod per_thread;
mod process;
pub mod space_saving;
pub mod trace;
