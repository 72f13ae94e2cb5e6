//! The built-in backend as a separate HTTP service, for gateways on other machines.
//!
//! It implements what a gateway expects of any backend: the paths of the API except `/me`, without keys, with
//! validators and the time of its next refresh. It does not distinguish callers, so the default period is `latest`,
//! as for paid callers; a gateway always sends the period. A background task makes the next snapshot; no request
//! computes one or waits for it. For a loopback or private port: no TLS, no limits per caller.

mod answer;
mod refusal;
mod serve;
mod snapshot_response;

pub use answer::BackendServer;
pub use serve::serve;
