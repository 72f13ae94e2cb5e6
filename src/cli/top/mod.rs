//! `scoregate top`: a live view of a running server: rates, latency, the backend and the top callers; or of all gateways on
//! its store.
//!
//! Samples the metrics and the usage over the server's Unix socket. Keeps no history; Prometheus does.

mod figures;
mod fleet;
mod frame;
mod polled_server;
mod sample;
mod screen;
mod words;

pub(super) use polled_server::{AFTER_HELP, TopArgs, run};
