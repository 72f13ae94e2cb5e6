//! The recorders of finished requests.

use std::sync::Arc;

use crate::{
    instruments::RequestInstruments,
    statistics::{RequestCounter, UsageTracker},
};
use scoregate_base::clock::Clock;
use scoregate_observe::traces::Tracer;

use super::access_log::AccessLog;

/// The recorders of finished requests.
pub struct RequestRecorders {
    /// The clock, which is read when a client disconnects.
    pub clock: Clock,
    /// Metrics.
    pub instruments: Arc<RequestInstruments>,
    /// Access log.
    pub request_log: Arc<AccessLog>,
    /// Refused requests per address.
    pub usage: Arc<UsageTracker>,
    /// Requests per application.
    pub requests: Arc<RequestCounter>,
    /// Records spans, if they are exported.
    pub tracer: Option<Arc<Tracer>>,
}
