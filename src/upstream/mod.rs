//! The trait for backends: a request returns one response or one reason for failure.
//!
//! Two types implement it: [`HttpUpstream`] for a backend over the network, and [`BuiltInUpstream`]. Upstream requests
//! are built only from the parsed request: the values of its path and query, and its trace, which has 32 hexadecimal
//! digits and two flags. No other part of a client's request, such as its key, can reach the backend.
//! [`ProtectedUpstream`] adds the queue, and the failover between addresses with their circuit breakers. `documents`
//! stores the results.

mod addresses;
mod built_in;
mod circuit_breaker;
mod connections;
mod http;
mod http_config;
mod mapping;
mod protected;
mod public_document;
mod queue;
mod tls;
mod tls_problem;
mod upstream_request;

pub use addresses::AddressStatus;
pub use built_in::BuiltInUpstream;
pub use circuit_breaker::BreakerState;
pub use http::HttpUpstream;
pub use http_config::{BadUpstreamUrl, HttpConfig};
pub use mapping::{
    BadIdPattern, BadItemMapping, BadPointer, BadTemplate, DataShape, EndpointMapping, IdPattern,
    ItemMapping, JsonPointer, MappedField, Mapping, NotFound, PathTemplate, is_value_of,
};
pub use protected::{ProtectedUpstream, ProtectionConfig, ProtectionStatus};
pub use public_document::read_public_document;
pub use queue::{CurrentPriority, PriorityClass};
pub use tls::{
    BackendClientFiles, BackendTls, BackendTlsFile, BackendTlsSettings, BadBackendTls, TlsVersion,
};
pub use upstream_request::{
    Upstream, UpstreamFailure, UpstreamFuture, UpstreamRequest, UpstreamResponse,
};
