//! scoregate: the front door of a public data API for AI-model benchmarks.
//!
//! A request is data that grows: each stage takes values, returns a value and writes one field of one `Exchange`; the
//! stages are called in order by one function in `gateway`. What decides is pure and takes `now`; what waits sits
//! behind a narrow door. Modules stand in layer order, lowest first, and name only lower ones: `tests/tidy.rs` holds
//! that. `ARCHITECTURE.md` is the map.

pub mod clock;
pub mod json;
pub mod secret;
pub mod telemetry;

pub mod address;
pub mod keys;
pub mod limits;
pub mod routes;

pub mod cache;
pub mod scoring;
pub mod store;

pub mod pages;
pub mod upstream;

pub mod instruments;

pub mod accounts;
pub mod documents;

pub mod gateway;

pub mod admin;
pub mod backend;
pub mod server;

pub mod config;

pub mod app;

pub mod cli;
