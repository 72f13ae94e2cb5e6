//! Everything a response depends on besides the reply.

use http::request::Parts;
use http::{HeaderMap, Method};

use scoregate_base::clock::Now;
use scoregate_base::limits::LimitStatus;

use super::cors::CorsPolicy;
use super::deprecation::Deprecation;
use crate::gateway::authenticate::Caller;
use crate::gateway::exchange::{Exchange, Peer};
use crate::gateway::guard::AddressGuard;
use crate::gateway::request_id::RequestId;
use crate::gateway::request_services::Gateway;
use crate::gateway::service_notice::ServiceNotice;

/// Everything a response depends on besides the reply.
#[derive(Clone, Copy)]
pub(in crate::gateway) struct ResponseContext<'r> {
    pub(in crate::gateway) method: &'r Method,
    pub(in crate::gateway) headers: &'r HeaderMap,
    /// When the request was received.
    pub(in crate::gateway) started: Now,
    pub(in crate::gateway) id: &'r RequestId,
    pub(in crate::gateway) peer: Peer,
    pub(in crate::gateway) caller: Option<&'r Caller>,
    /// Status of the minute and the day, if `charge` has set it.
    pub(in crate::gateway) limit_statuses: Option<&'r [LimitStatus; 2]>,
    pub(in crate::gateway) guard: &'r AddressGuard,
    pub(in crate::gateway) notice: &'r ServiceNotice,
    pub(in crate::gateway) cors: Option<&'r CorsPolicy>,
    pub(in crate::gateway) deprecation: &'r Deprecation,
    /// The moment of sending.
    pub(in crate::gateway) now: Now,
}

impl<'r> ResponseContext<'r> {
    pub(in crate::gateway) fn of(
        gateway: &'r Gateway,
        head: &'r Parts,
        exchange: &'r Exchange<'_>,
        now: Now,
    ) -> Self {
        Self {
            method: &head.method,
            headers: &head.headers,
            started: exchange.started,
            id: &exchange.id,
            peer: exchange.peer,
            caller: exchange.caller.as_ref(),
            limit_statuses: exchange.limit_statuses.as_ref(),
            guard: &gateway.guard,
            notice: &gateway.notice,
            cors: gateway.cors.as_ref(),
            deprecation: &gateway.deprecation,
            now,
        }
    }
}
