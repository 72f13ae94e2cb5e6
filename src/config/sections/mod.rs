//! One reader for each part of the settings, which returns the component's type.

pub(super) mod admin;
pub(super) mod cors;
pub(super) mod deprecation;
mod endpoint_fields;
pub(super) mod endpoints;
pub(super) mod freshness;
pub(super) mod leaks;
pub(super) mod mail;
pub(super) mod mapping;
pub(super) mod mapping_fields;
pub(super) mod operator;
pub(super) mod overload;
mod own_params;
pub(super) mod proxies;
pub(super) mod server;
pub(super) mod site;
pub(super) mod store;
pub(super) mod suspects;
pub(super) mod tiers;
pub(super) mod tls;
pub(super) mod traces;
pub(super) mod upstream;
mod upstream_headers;
