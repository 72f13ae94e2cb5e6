//! State of the server that connections use.

use std::{pin::pin, sync::Arc};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{
    Method, Request, Response,
    header::{CONNECTION, HeaderValue},
    request::Parts,
};
use http_body::Body;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::{
    bodies::{BodyBudget, RequestBody},
    gateway::{ConnectionTrust, Gateway, Peer},
    leaks::LeakReceiver,
    mcp::McpService,
    site::Site,
};
use scoregate_base::clock::Clock;

/// State shared by all connections.
#[derive(Clone)]
pub struct ConnectionContext {
    /// The gateway, which a reload replaces.
    pub gateway: Arc<ArcSwap<Gateway>>,
    /// The account pages, if people can sign up.
    pub site: Option<Arc<Site>>,
    /// The receiver of leaked keys, if it is enabled.
    pub leaks: Option<Arc<LeakReceiver>>,
    /// The service for language models, if it is enabled.
    pub mcp: Option<Arc<McpService>>,
    pub clock: Clock,
    /// The memory for awaited bodies.
    pub bodies: Arc<BodyBudget>,
    /// Permits to read heads that are larger than the gateway accepts. They limit the total memory for such heads.
    pub large_heads: Arc<Semaphore>,
    /// Permits to discard the bytes that a refused client still sends.
    pub drains: Arc<Semaphore>,
    /// Tracks the connection and stream tasks that a shutdown waits for.
    pub tasks: TaskTracker,
}

/// The connection of a request to a service other than the API.
#[derive(Clone, Copy)]
pub struct BodyConnection<'c> {
    pub peer: Peer,
    pub trust: &'c ConnectionTrust,
    /// HTTP/1.1: whether another request may follow the body.
    pub may_continue: bool,
}

/// A service other than the API, which accepts bodies.
#[derive(Clone, Copy)]
pub enum BesideApi<'c> {
    Site(&'c Arc<Site>),
    Leaks(&'c Arc<LeakReceiver>),
    Mcp(&'c McpService),
}

impl ConnectionContext {
    /// The size of the body, if another request may follow it on an HTTP/1.1 connection. `None` except for MCP messages
    /// with a stated size.
    pub fn size_before_next(&self, request: &Request<impl Body>) -> Option<u64> {
        let is_mcp = self.mcp.is_some()
            && request.method() == Method::POST
            && McpService::serves(request.uri().path());
        request
            .body()
            .size_hint()
            .exact()
            .filter(|size| is_mcp && *size <= McpService::MAX_BODY as u64)
    }

    /// The service other than the API that answers this request, if any.
    pub fn beside_api(&self, head: &Parts, has_body: bool) -> Option<BesideApi<'_>> {
        let path = head.uri.path();
        let site = self
            .site
            .as_ref()
            .filter(|_| Site::serves(path))
            .map(BesideApi::Site);
        site.or_else(|| {
            self.leaks
                .as_ref()
                .filter(|_| LeakReceiver::serves(path))
                .map(BesideApi::Leaks)
        })
        .or_else(|| {
            self.mcp
                .as_deref()
                .filter(|_| McpService::serves(path))
                .map(BesideApi::Mcp)
        })
        .filter(|_| Gateway::accepts_head(head, has_body))
    }
}

impl BesideApi<'_> {
    /// Answers a request. The connection is closed if the response has a `Connection` header. Calls `before_waiting`
    /// with the maximum size of the body before waiting for it.
    pub async fn answer(
        self,
        context: &ConnectionContext,
        head: &Parts,
        body: Incoming,
        connection: BodyConnection<'_>,
        before_waiting: &mut (dyn FnMut(usize) + Send),
    ) -> Response<Full<Bytes>> {
        let BodyConnection {
            peer,
            trust,
            may_continue,
        } = connection;
        let gateway = &context.gateway;
        let body = pin!(body.map_err(drop));
        let body =
            &mut RequestBody::new(body, head, &context.bodies, &context.clock, before_waiting);
        let mut response = match self {
            Self::Site(site) => site.handle(head, body, peer).await,
            Self::Leaks(leaks) => leaks.handle(gateway, head, body, peer).await,
            Self::Mcp(mcp) => {
                mcp.handle(gateway, head, body, peer, trust, may_continue)
                    .await
            }
        };
        if body.is_over_budget() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        response
    }
}
