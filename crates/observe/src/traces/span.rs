//! A finished span, its attributes, and its outcome in the export.

use std::{borrow::Cow, time::Duration};

use crate::telemetry::{
    metrics::metric_label,
    trace::{SpanId, TraceContext},
};
use scoregate_base::clock::Wall;

/// The kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracedSpanKind {
    /// Work inside the gateway.
    Internal,
    /// A request from a client.
    Server,
    /// A request to the backend.
    Client,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanAttribute {
    /// A text.
    Text(Cow<'static, str>),
    /// An integer.
    Integer(i64),
}

metric_label! {
    /// The export outcome of a span, as a metric label.
    pub enum SpanOutcome: "result" {
        /// The collector accepted the span.
        Exported = "exported",
        /// The queue was full.
        Dropped = "dropped",
        /// The collector was unreachable or rejected the span.
        Failed = "failed",
    }
}

#[derive(Clone, Debug)]
pub struct FinishedSpan {
    pub trace: TraceContext,
    pub id: SpanId,
    pub parent: Option<SpanId>,
    /// Whether the parent is a span of the caller.
    pub has_remote_parent: bool,
    pub name: Cow<'static, str>,
    pub kind: TracedSpanKind,
    pub started: Wall,
    pub took: Duration,
    pub attributes: Vec<(&'static str, SpanAttribute)>,
    pub has_failed: bool,
}

impl From<&'static str> for SpanAttribute {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for SpanAttribute {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<u16> for SpanAttribute {
    fn from(number: u16) -> Self {
        Self::Integer(number.into())
    }
}
