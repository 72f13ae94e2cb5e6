//! The life of a request: one function, top to bottom.
//!
//! [`Gateway::handle`] is the shell: it opens the exchange, has it answered, renders and records, whatever happens
//! inside. `answer` lists the stages: one call each, with `?`. A file named by a verb is a stage; a file named by a
//! noun is a type that stages use. A stage never calls another stage.

mod admit;
mod authenticate;
#[doc(hidden)]
#[cfg(any(test, feature = "lab"))]
pub mod cache_hit;
mod concurrency_limit;
mod connection_trust;
mod credentials;
mod exchange;
mod fetch;
mod guard;
mod me;
mod observation;
mod parse;
mod refusal;
mod request_headers;
mod request_id;
mod request_path;
mod resolve;
mod respond;
mod response;
#[cfg(test)]
mod schedules;
mod settle;

pub use concurrency_limit::{ConcurrencyConfig, ConcurrencyLimit};
pub use connection_trust::{ConnectionApplication, ConnectionTrust, TrustLevel};
pub use exchange::Peer;
pub use guard::AddressGuard;
pub use observation::access_log::{AccessLog, LogSampling};
pub use observation::recorders::RequestRecorders;
pub use observation::usage::{
    ApplicationUse, CountedRequests, RequestCounts, UnauthenticatedUse, UsageTracker,
};
pub use refusal::{HttpViolation, MisplacedKey, Refusal, Responsibility};
pub use request_path::{Gateway, ServiceNotice};
pub use response::cors::CorsPolicy;
pub use response::deprecation::Deprecation;
