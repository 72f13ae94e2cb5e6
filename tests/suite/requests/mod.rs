//! Requests and their responses: keys, syntax, order of checks, headers, pages, isolation.

mod auth;
mod canary;
mod check_order;
pub mod codes;
mod cors;
mod deprecation;
mod discovery;
mod form_isolation;
mod forwarded;
mod framing;
mod framing_sizes;
mod fuzz_seeds;
mod model_ids;
mod pages;
mod params;
mod paths;
mod proxied;
mod queries;
mod raw_bytes;
mod remedies;
mod request_ids;
mod response_isolation;
mod unknown_models;
