//! The built-in backend alone: what it knows, over HTTP, for a gateway that runs elsewhere.
//!
//! It speaks what a gateway expects of any backend: the paths of the API but for `/me`, without keys, with validators and
//! the instant of its next refresh. It keeps no callers apart, so where no period is said it is the one of those who may
//! see everything, `latest`; a gateway always says it. A task of its own makes the next snapshot; no request computes
//! one or waits for it. For a loopback or private port: no TLS, no limits by caller. Not for: callers of the API
//! (`server`), nor for what is answered (`scoring`).

mod answer;
mod refusal;
mod serve;
mod snapshot_response;

pub use answer::BackendServer;
pub use serve::serve;
