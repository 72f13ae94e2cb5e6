//! The life of a request, from a parsed head to a response.
//!
//! [`Gateway::handle`] opens the exchange, has it answered, renders and records, whatever happens inside. `request_path` calls
//! the stages in order. A file named by a verb is a stage; a file named by a noun is a type that stages use. A stage never
//! calls another stage.

mod admit;
mod authenticate;
#[doc(hidden)]
#[cfg(any(test, feature = "lab"))]
pub mod cache_hit;
mod charge;
mod concurrency_limit;
mod connection_trust;
mod credentials;
mod exchange;
mod explanation;
mod fetch;
mod guard;
mod me;
mod observation;
mod parse;
mod plan_gap;
mod refusal;
mod request_headers;
mod request_id;
mod request_path;
mod request_services;
mod resolve;
mod respond;
mod response;
#[cfg(test)]
mod schedules;
mod service_notice;
mod settle;
mod target_memo;

pub use concurrency_limit::{ConcurrencyConfig, ConcurrencyLimit};
pub use connection_trust::{ConnectionApplication, ConnectionTrust, TrustLevel};
pub use exchange::Peer;
pub use explanation::explained::{
    ExplainedKey, ExplainedStage, Explanation, PossibleOutcome, RuleAmounts,
};
pub use guard::AddressGuard;
pub use observation::access_log::{AccessLog, LogSampling};
pub use observation::recorders::RequestRecorders;
pub use observation::usage::{UnauthenticatedUse, UsageTracker};
pub use refusal::{HttpViolation, MisplacedKey, Refusal, Responsibility};
pub use request_services::Gateway;
pub use response::cors::{CorsGrant, CorsPolicy};
pub use response::deprecation::Deprecation;
pub use response::remedy_links::RemedyLinks;
pub use service_notice::ServiceNotice;
pub use target_memo::TargetMemo;
