//! A request to a backend, its result, and the trait that all backends implement.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use crate::cache::{DocumentContent, Validators};
use scoregate_base::{clock::Wall, routes::DocumentKey};
use scoregate_observe::telemetry::trace::TraceContext;

/// The future of a response to an upstream request.
pub type UpstreamFuture<'a> =
    Pin<Box<dyn Future<Output = Result<UpstreamResponse, UpstreamFailure>> + Send + 'a>>;

/// A response of the backend.
#[derive(Clone, Debug)]
pub enum UpstreamResponse {
    /// A valid, complete response.
    Content {
        /// The data.
        content: DocumentContent,
        /// When the data will next change, if the backend states it.
        next_refresh: Option<Wall>,
    },
    /// The stored document is current.
    Unchanged {
        /// When the data will next change, if the backend states it.
        next_refresh: Option<Wall>,
    },
    /// The model does not exist.
    NoSuchModel,
    /// The backend rejected the request with status 400. Only the parsed parameters of the request come from the
    /// client, so the id is malformed unless the model is known to exist.
    IdRejected,
    /// An empty list, which this backend may also send for a model that does not exist.
    Nothing {
        /// The empty list.
        content: DocumentContent,
        /// When the data will next change, if the backend states it.
        next_refresh: Option<Wall>,
    },
}

/// The reason why there is no usable response from the backend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamFailure {
    /// The connection failed, or was closed before a response began.
    #[error("backend unreachable: {0}")]
    Unreachable(String),
    /// A response with an error status.
    #[error("backend returned status {status}")]
    ErrorStatus {
        /// The status.
        status: u16,
        /// The time from `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// A timeout.
    #[error("backend timeout: it did not {0} in time")]
    Timeout(&'static str),
    /// A response without valid data.
    #[error("invalid backend response: {0}")]
    Invalid(String),
    /// The request was not sent, because the circuit breaker is open. It stays open for this long.
    #[error("circuit breaker open for another {} s", .0.as_secs_f64().ceil())]
    CircuitOpen(Duration),
    /// The request was not sent, because the queue was full or the request waited too long in it.
    #[error("backend queue full")]
    QueueFull,
}

/// An upstream request.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamRequest<'a> {
    /// The requested document.
    pub key: &'a DocumentKey,
    /// Validators of the stored document, for a conditional request.
    pub known: Option<&'a Validators>,
    /// The trace of the client request that caused this request, if any.
    pub trace: Option<&'a TraceContext>,
}

/// A backend.
pub trait Upstream: Send + Sync + 'static {
    /// The backend's address for the operator, without credentials.
    fn address(&self) -> String;

    /// The backend's address without scheme and path.
    fn name(&self) -> Arc<str> {
        self.address().into()
    }

    /// Requests a document.
    fn fetch<'a>(&'a self, request: UpstreamRequest<'a>) -> UpstreamFuture<'a>;

    /// Whether the backend's list of models is complete, so that a model that is not listed does not exist.
    fn lists_all_models(&self) -> bool;

    /// Whether the backend may have a document. Other documents are never requested.
    fn may_have(&self, _key: &DocumentKey) -> bool {
        true
    }

    /// The request that the backend would get, with a line for each part, without the credential or the headers that
    /// all requests have.
    fn question(&self, request: UpstreamRequest<'_>) -> Vec<String> {
        vec![format!("{} of {}", request.key, self.address())]
    }

    /// Number of requests that were retried because their connection was being closed.
    fn retries(&self) -> u64 {
        0
    }
}
