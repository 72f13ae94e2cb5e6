//! Recorded spans of sampled requests, exported to an OpenTelemetry collector over OTLP/HTTP.
//!
//! A [`Tracer`] decides which requests are sampled and puts finished spans into a bounded queue. A [`SpanExporter`]
//! sends them in batches. No request waits for the export. If the queue is full, spans are dropped and counted. The
//! trace context of requests without recorded spans is in `telemetry::trace`.

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
