//! Everything a response depends on besides the reply.

use http::request::Parts;
use http::{HeaderMap, Method};

use scoregate_base::clock::Now;
use scoregate_base::limits::LimitStatus;

use super::super::authenticate::Caller;
use super::super::exchange::{Exchange, Peer};
use super::super::guard::AddressGuard;
use super::super::request_id::RequestId;
use super::super::request_services::Gateway;
use super::super::service_notice::ServiceNotice;
use super::cors::CorsPolicy;
use super::deprecation::Deprecation;

/// Everything a response depends on besides the reply.
#[derive(Clone, Copy)]
pub(in super::super) struct ResponseContext<'r> {
    pub(in super::super) method: &'r Method,
    pub(in super::super) headers: &'r HeaderMap,
    /// When the request was received.
    pub(in super::super) started: Now,
    pub(in super::super) id: &'r RequestId,
    pub(in super::super) peer: Peer,
    pub(in super::super) caller: Option<&'r Caller>,
    /// Status of the minute and the day, if `charge` has set it.
    pub(in super::super) limit_statuses: Option<&'r [LimitStatus; 2]>,
    pub(in super::super) guard: &'r AddressGuard,
    pub(in super::super) notice: &'r ServiceNotice,
    pub(in super::super) cors: Option<&'r CorsPolicy>,
    pub(in super::super) deprecation: &'r Deprecation,
    /// The moment of sending.
    pub(in super::super) now: Now,
}

impl<'r> ResponseContext<'r> {
    pub(in super::super) fn of(
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
