//! Processes a request, from the parsed head to the response. `request_path` opens the exchange, calls the `stages` in
//! order, renders the response and records it, even after a panic. The other files contain types that the stages use.

mod concurrency_limit;
mod explanation;
mod guard;
#[doc(hidden)]
#[cfg(any(test, feature = "lab"))]
pub mod lab;
mod observation;
mod plan_gap;
mod refusal;
mod request;
mod request_path;
mod request_services;
mod request_steps;
mod response;
#[cfg(test)]
mod schedules;
mod service_notice;
#[cfg(test)]
mod simulated_fleet;
mod stages;

pub use concurrency_limit::{ConcurrencyConfig, ConcurrencyLimit};
pub use explanation::explained::{
    ExplainedKey, ExplainedStage, Explanation, PossibleOutcome, RuleAmounts,
};
pub use guard::AddressGuard;
pub use observation::access_log::{AccessLog, LogSampling};
pub use observation::recorders::RequestRecorders;
pub use refusal::{HttpViolation, MisplacedKey, Refusal, Responsibility};
pub use request::connection_trust::{ConnectionApplication, ConnectionTrust, TrustLevel};
pub use request::peer::Peer;
pub use request::target_memo::TargetMemo;
pub use request_services::Gateway;
pub use response::cors::{CorsGrant, CorsPolicy};
pub use response::deprecation::Deprecation;
pub use response::remedy_links::RemedyLinks;
pub use service_notice::ServiceNotice;
