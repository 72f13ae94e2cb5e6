//! State of the server that connections use.

use std::sync::Arc;

use arc_swap::ArcSwap;
use http::request::Parts;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::gateway::Gateway;
use crate::site::Site;
use scoregate_base::clock::Clock;

/// State shared by all connections.
#[derive(Clone)]
pub(super) struct ConnectionContext {
    /// Replaced by a reload.
    pub(super) gateway: Arc<ArcSwap<Gateway>>,
    /// The pages of accounts, if people can sign up.
    pub(super) site: Option<Arc<Site>>,
    pub(super) clock: Clock,
    /// Permits to read heads that are larger than the gateway accepts: they bound the memory for all of them.
    pub(super) large_heads: Arc<Semaphore>,
    /// Owns the tasks beside connections.
    pub(super) tasks: TaskTracker,
}

impl ConnectionContext {
    /// The site, if it answers this request.
    pub(super) fn site_for(&self, head: &Parts, has_body: bool) -> Option<&Arc<Site>> {
        self.site.as_ref().filter(|_| Site::serves(head.uri.path()) && Gateway::accepts_head(head, has_body))
    }
}
