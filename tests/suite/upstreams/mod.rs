//! Backends: requests to them, their responses and failures, addresses, mapping, and the built-in one.

mod bad_upstream_responses;
mod builtin_backend;
mod configured_endpoints;
mod faults;
mod mapping;
mod oversized_responses;
mod pooled_connections;
pub mod protection;
mod recorded_backend;
mod rights_of_tiers;
mod rights_reloaded;
mod unresponsive_upstream;
mod upstream;
mod upstream_addresses;
mod upstream_status;
mod upstream_tls;
