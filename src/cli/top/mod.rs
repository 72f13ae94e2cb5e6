//! `scoregate top`: a live view of a running server with rates, latency, the backend and the top callers.
//!
//! Samples the metrics and the usage over the server's Unix socket. Keeps no history. Use Prometheus for that.

mod callers;
mod figures;
mod page;
mod polled_server;
mod sample;
mod words;

pub use polled_server::{AFTER_HELP, TopArgs, run};
