//! What every connection needs from the server.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::gateway::Gateway;

/// What every connection needs.
#[derive(Clone)]
pub(super) struct ConnectionContext {
    /// Replaced by a reload.
    pub(super) gateway: Arc<ArcSwap<Gateway>>,
    pub(super) clock: Clock,
    /// Owns the tasks beside connections.
    pub(super) tasks: TaskTracker,
}
