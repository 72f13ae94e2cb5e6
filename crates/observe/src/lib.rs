//! Metrics and logs of a running scoregate ([`telemetry`]), its spans for a collector ([`traces`]), and a limit of all
//! HTTP clients ([`interim`]).
//!
//! Metrics are declared in one table and counted in memory of the counting thread; a separate thread writes log lines,
//! so that no caller waits for a pipe. This crate decides nothing and stores nothing.

pub mod interim;
pub mod telemetry;
pub mod traces;
