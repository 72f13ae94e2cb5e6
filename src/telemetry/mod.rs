//! What can be seen from outside while it runs: the table of metrics, the logs, and traces.
//!
//! Lowest layer: it knows words and numbers, not requests. What is counted when is `instruments`'s business and
//! that of the background tasks.

pub mod access_log_writer;
mod event_limits;
mod line_writer;
pub mod log;
mod memory_limit;
pub mod metrics;
pub mod per_thread;
mod process;
pub mod space_saving;
pub mod trace;
