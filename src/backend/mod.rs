//! The built-in backend as a separate HTTP service, for gateways on other machines.
//!
//! It meets the requirements that a gateway has for any backend: the paths of the API except `/me`, without keys, with
//! validators and the time of the next refresh. It does not distinguish callers, so the default period is `latest`, as
//! for paid callers. A gateway always sends the period. A background task makes the next snapshot. Requests never
//! compute a snapshot or wait for one. The service is meant for a loopback or private port, because it has no TLS and
//! no limits per caller.

mod answer;
mod refusal;
mod serve;
mod snapshot_response;

pub use answer::BackendServer;
pub use serve::serve;
