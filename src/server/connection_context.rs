//! State of the server that connections use.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::Response;
use http::request::Parts;
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::gateway::{Gateway, Peer};
use crate::leaks::LeakReceiver;
use crate::site::Site;
use scoregate_base::clock::Clock;

/// State shared by all connections.
#[derive(Clone)]
pub(super) struct ConnectionContext {
    /// Replaced by a reload.
    pub(super) gateway: Arc<ArcSwap<Gateway>>,
    /// The pages of accounts, if people can sign up.
    pub(super) site: Option<Arc<Site>>,
    /// The receiver of leaked keys, if it is on.
    pub(super) leaks: Option<Arc<LeakReceiver>>,
    pub(super) clock: Clock,
    /// Permits to read heads that are larger than the gateway accepts: they bound the memory for all of them.
    pub(super) large_heads: Arc<Semaphore>,
    /// Owns the tasks beside connections.
    pub(super) tasks: TaskTracker,
}

/// A part that answers requests before the API. It may read their bodies.
pub(super) enum BesideApi<'c> {
    Site(&'c Arc<Site>),
    Leaks(&'c Arc<LeakReceiver>),
}

impl ConnectionContext {
    /// The part beside the API that answers this request, if one does.
    pub(super) fn beside_api(&self, head: &Parts, has_body: bool) -> Option<BesideApi<'_>> {
        let path = head.uri.path();
        let site = self.site.as_ref().filter(|_| Site::serves(path)).map(BesideApi::Site);
        let found =
            site.or_else(|| self.leaks.as_ref().filter(|_| LeakReceiver::serves(path)).map(BesideApi::Leaks));
        found.filter(|_| Gateway::accepts_head(head, has_body))
    }

    /// Answers a request beside the API.
    pub(super) async fn handle_beside(
        &self,
        part: &BesideApi<'_>,
        head: &Parts,
        body: Incoming,
        peer: Peer,
    ) -> Response<Full<Bytes>> {
        match part {
            BesideApi::Site(site) => site.handle(head, body, peer).await,
            BesideApi::Leaks(leaks) => leaks.handle(&self.gateway.load_full(), head, body, peer).await,
        }
    }
}

impl BesideApi<'_> {
    /// The maximum size of a body.
    pub(super) const fn max_body(&self) -> usize {
        match self {
            Self::Site(_) => Site::MAX_BODY,
            Self::Leaks(_) => LeakReceiver::MAX_BODY,
        }
    }

    /// Refuses a request whose body cannot be read now.
    pub(super) fn refuse_as_busy(&self, head: &Parts, peer: Peer) -> Response<Full<Bytes>> {
        match self {
            Self::Site(site) => site.refuse_as_busy(head, peer),
            Self::Leaks(_) => LeakReceiver::refuse_as_busy(head),
        }
    }
}
