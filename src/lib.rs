//! scoregate: a read-through caching API gateway for AI-model benchmark data.
//!
//! Each stage of a request takes values, returns a value and sets one field of one `Exchange`; one function in
//! `gateway` calls the stages in order. Decisions are pure functions that take `now`; everything that waits is behind a
//! narrow trait. The lower layers are the libraries in `crates/`: `base`, `observe`, `store` and `scoring`. Modules are
//! declared in layer order, lowest first, and import only lower modules; `tests/tidy.rs` checks this. `ARCHITECTURE.md`
//! gives an overview.

pub mod bodies;
pub mod cache;

pub mod pages;
pub mod upstream;

pub mod instruments;

pub mod accounts;
pub mod documents;
pub mod mail;
pub mod status;

pub mod quota;

pub mod statistics;

pub mod gateway;
pub mod registry;

pub mod leaks;
pub mod mcp;
pub mod site;

pub mod admin;
pub mod backend;
pub mod server;

pub mod config;

pub mod app;

pub mod cli;
