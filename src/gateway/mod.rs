//! The life of a request: one function, top to bottom.
//!
//! [`Gateway::handle`] is the shell: it opens the exchange, has it answered, renders and records, whatever happens
//! inside. `answer` lists the stages: one call each, with `?`. A file named by a verb is a stage; a file named by a
//! noun is a type that stages use. A stage never calls another stage.

mod access_log;
mod admit;
mod authenticate;
#[doc(hidden)]
#[cfg(any(test, feature = "lab"))]
pub mod cache_hit;
mod concurrency_limit;
mod connection_trust;
mod cors;
mod credentials;
mod deprecation;
mod error_body;
mod error_format;
mod exchange;
mod fetch;
mod guard;
mod header_values;
mod me;
mod page_reply;
mod parse;
mod recorders;
mod refusal;
mod request_headers;
mod request_id;
mod request_outcome;
mod request_path;
mod request_span;
mod resolve;
mod respond;
mod response_head;
#[cfg(test)]
mod schedules;
mod settle;
mod usage;

pub use access_log::{AccessLog, LogSampling};
pub use concurrency_limit::{ConcurrencyConfig, ConcurrencyLimit};
pub use connection_trust::{ConnectionApplication, ConnectionTrust, TrustLevel};
pub use cors::CorsPolicy;
pub use deprecation::Deprecation;
pub use exchange::Peer;
pub use guard::AddressGuard;
pub use recorders::RequestRecorders;
pub use refusal::{HttpViolation, MisplacedKey, Refusal, Responsibility};
pub use request_path::{Gateway, ServiceNotice};
pub use usage::{ApplicationUse, CountedRequests, RequestCounts, UnauthenticatedUse, UsageTracker};
