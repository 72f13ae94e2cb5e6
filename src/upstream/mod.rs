//! The door to the backend: one question, one answer or one reason why there is none.
//!
//! Two engines stand behind it: [`HttpUpstream`] asks a backend over the network, [`BuiltInUpstream`] the one that is built in. What
//! goes upstream is made from the parsed request alone: the values of its path and query, and the trace that it is a part
//! of, which is 32 hexadecimal digits and two flags. Nothing else that a client sent, its key least of all, can reach the
//! backend. Before the door stands its protection, [`ProtectedUpstream`]. Not for: storing, nor deciding whether to ask
//! (`documents`).

mod built_in;
mod circuit_breaker;
mod connections;
mod http;
mod mapping;
mod protected;
mod queue;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::cache::{DocumentContent, Validators};
use crate::clock::Wall;
use crate::routes::DocumentKey;
use crate::telemetry::trace::TraceContext;

pub use built_in::BuiltInUpstream;
pub use circuit_breaker::BreakerState;
pub use http::{BadUpstreamUrl, HttpConfig, HttpUpstream};
pub use mapping::{
    BadPointer, BadTemplate, DataShape, EndpointMapping, JsonPointer, Mapping, NotFound, PathTemplate,
};
pub use protected::{ProtectedUpstream, ProtectionConfig, ProtectionStatus};
pub use queue::{CurrentPriority, PriorityClass};

/// What a call of the door gives: an answer that may take a while.
pub type UpstreamFuture<'a> =
    Pin<Box<dyn Future<Output = Result<UpstreamResponse, UpstreamFailure>> + Send + 'a>>;

/// What the backend said.
#[derive(Clone, Debug)]
pub enum UpstreamResponse {
    /// A good, complete answer.
    Content {
        /// The data.
        content: DocumentContent,
        /// When it will next change, if the backend says so.
        next_refresh: Option<Wall>,
    },
    /// What is known already is still current.
    Unchanged {
        /// When it will next change, if the backend says so.
        next_refresh: Option<Wall>,
    },
    /// There is no such model.
    NoSuchModel,
    /// An empty list, which is also how this backend says that there is no such model.
    Nothing {
        /// The empty list.
        content: DocumentContent,
        /// When it will next change, if the backend says so.
        next_refresh: Option<Wall>,
    },
}

/// Why there is no usable response of the backend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamFailure {
    /// The connection failed, or ended before a response began.
    #[error("backend unreachable: {0}")]
    Unreachable(String),
    /// A response with an error status.
    #[error("backend returned status {status}")]
    ErrorStatus {
        /// The status.
        status: u16,
        /// The time of `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// A timeout.
    #[error("backend timeout: it did not {0} in time")]
    Timeout(&'static str),
    /// A response without valid data.
    #[error("invalid backend response: {0}")]
    Invalid(String),
    /// Not sent: the circuit breaker is open for this time.
    #[error("circuit breaker open for another {} s", .0.as_secs_f64().ceil())]
    CircuitOpen(Duration),
    /// Not sent: the queue was full, or the request waited too long in it.
    #[error("backend queue full")]
    QueueFull,
}

/// What the backend is asked.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamRequest<'a> {
    /// Which document.
    pub key: &'a DocumentKey,
    /// What is known of it: with this, the backend may say that it has not changed.
    pub known: Option<&'a Validators>,
    /// The trace of the request that set it off, if one did and has one.
    pub trace: Option<&'a TraceContext>,
}

/// The door.
pub trait Upstream: Send + Sync + 'static {
    /// Where it is, for the operator; without a credential.
    fn place(&self) -> String;

    /// Asks for a document.
    fn fetch<'a>(&'a self, question: UpstreamRequest<'a>) -> UpstreamFuture<'a>;

    /// Whether its list of models names every model there is, so that a model which is not in it does not exist.
    fn lists_all_models(&self) -> bool;

    /// How many questions went out once more, because their connection was being closed.
    fn asked_again(&self) -> u64 {
        0
    }
}
