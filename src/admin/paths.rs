//! The paths of the side port. Requests for other paths get a 404 with the list of paths.
//!
//! `command` matches the actions below `/v1`.

pub const METRICS: &str = "/metrics";
pub const ALIVE: &str = "/healthz";
pub const READY: &str = "/readyz";

/// All paths, for use in a sentence.
pub const PATHS: &str = "/metrics, /healthz, /readyz, and /v1/GROUP/ACTION with the groups keys, accounts, nodes, suspects, \
    status, cache, requests, usage, upstream, settings, log and scoring";
