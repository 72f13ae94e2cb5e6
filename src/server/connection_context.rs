//! State of the server that connections use.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::gateway::Gateway;

/// State shared by all connections.
#[derive(Clone)]
pub(super) struct ConnectionContext {
    /// Replaced by a reload.
    pub(super) gateway: Arc<ArcSwap<Gateway>>,
    pub(super) clock: Clock,
    /// Owns the tasks beside connections.
    pub(super) tasks: TaskTracker,
}
