//! Recorded spans of sampled requests, exported to an OpenTelemetry collector over OTLP/HTTP.
//!
//! A [`Tracer`] decides which requests are sampled and puts finished spans into a bounded queue; a [`SpanExporter`]
//! sends them in batches. No request waits for the export: spans that do not fit the queue are dropped and counted.
//! The trace of a request without spans is in `telemetry::trace`.

mod collector;
mod exporter;
mod otlp;
mod sampler;
mod span;
mod tracer;

pub use collector::{BadEndpoint, CollectorEndpoint};
pub use exporter::SpanExporter;
pub use span::{SpanAttribute, SpanOutcome, TracedSpanKind};
pub use tracer::{OpenSpan, RequestSpan, TraceConfig, Tracer, span_counts};
