//! One reader for each part of the settings, which returns the component's type.

pub mod admin;
pub mod cors;
pub mod deprecation;
mod endpoint_fields;
pub mod endpoints;
pub mod freshness;
pub mod leaks;
pub mod mail;
pub mod mapping;
pub mod mapping_fields;
pub mod operator;
pub mod overload;
mod own_params;
pub mod proxies;
pub mod server;
pub mod site;
pub mod store;
pub mod suspects;
pub mod tiers;
pub mod tls;
pub mod traces;
pub mod upstream;
mod upstream_headers;
