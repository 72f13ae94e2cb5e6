//! Everything that a response depends on in addition to the reply.

use http::request::Parts;

use crate::gateway::{
    AddressGuard, Gateway, Peer,
    request::{exchange::Exchange, request_id::RequestId},
    stages::authenticate::Caller,
};
use scoregate_base::clock::Now;

/// Everything that a response depends on in addition to the reply.
#[derive(Clone, Copy)]
pub struct ResponseContext<'r> {
    pub(crate) gateway: &'r Gateway,
    pub(crate) head: &'r Parts,
    /// When the request was received.
    pub(crate) started: Now,
    pub(crate) id: &'r RequestId,
    pub(crate) peer: Peer,
    pub(crate) caller: Option<&'r Caller>,
    /// The guard of the gateway, or a copy.
    pub(crate) guard: &'r AddressGuard,
    /// The time of sending.
    pub(crate) now: Now,
}

impl<'r> ResponseContext<'r> {
    pub(crate) fn new(
        gateway: &'r Gateway,
        head: &'r Parts,
        exchange: &'r Exchange<'_>,
        now: Now,
    ) -> Self {
        Self {
            gateway,
            head,
            started: exchange.started,
            id: &exchange.id,
            peer: exchange.peer,
            caller: exchange.caller.as_ref(),
            guard: &gateway.guard,
            now,
        }
    }
}
