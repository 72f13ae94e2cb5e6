//! Everything a response depends on besides the reply.

use http::request::Parts;
use http::{HeaderMap, Method};

use crate::gateway::guard::AddressGuard;
use crate::gateway::request::exchange::{Exchange, Peer};
use crate::gateway::request::request_id::RequestId;
use crate::gateway::request_services::Gateway;
use crate::gateway::service_notice::ServiceNotice;
use crate::gateway::stages::authenticate::Caller;
use scoregate_base::clock::Now;
use scoregate_base::limits::LimitStatus;

use super::cors::CorsPolicy;
use super::deprecation::Deprecation;

/// Everything a response depends on besides the reply.
#[derive(Clone, Copy)]
pub(crate) struct ResponseContext<'r> {
    pub(crate) method: &'r Method,
    pub(crate) headers: &'r HeaderMap,
    /// When the request was received.
    pub(crate) started: Now,
    pub(crate) id: &'r RequestId,
    pub(crate) peer: Peer,
    pub(crate) caller: Option<&'r Caller>,
    /// Status of the minute and the day, if `charge` has set it.
    pub(crate) limit_statuses: Option<&'r [LimitStatus; 2]>,
    pub(crate) guard: &'r AddressGuard,
    pub(crate) notice: &'r ServiceNotice,
    pub(crate) cors: Option<&'r CorsPolicy>,
    pub(crate) deprecation: &'r Deprecation,
    /// The moment of sending.
    pub(crate) now: Now,
}

impl<'r> ResponseContext<'r> {
    pub(crate) fn of(
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
