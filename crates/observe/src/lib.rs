//! Metrics and logs of a running scoregate ([`telemetry`]), spans for a collector ([`traces`]), and a limit on the interim
//! responses that HTTP clients accept ([`interim`]).
//!
//! Metrics are declared in one table and counted in per-thread memory. A separate thread writes log lines, so that no
//! caller waits for a pipe. This crate makes no decisions and stores no data.

pub mod interim;
pub mod telemetry;
pub mod traces;
