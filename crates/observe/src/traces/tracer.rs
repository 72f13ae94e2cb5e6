//! Samples requests, and puts their finished spans into the queue of the exporter.

use std::{borrow::Cow, fmt, sync::Arc};

use tokio::sync::mpsc;

use crate::telemetry::{
    metrics::{Counter, MetricFamily, MetricsRegistry},
    trace::{SpanId, TraceContext},
};
use scoregate_base::clock::{Clock, Mono, Now};

use super::{
    collector::CollectorEndpoint,
    sampler::TraceSampler,
    span::{FinishedSpan, SpanAttribute, SpanOutcome, TracedSpanKind},
};

/// Maximum number of spans that wait for the exporter. At about a kilobyte per span, the queue stays below 4 MiB.
const QUEUE: usize = 4_096;

/// The settings for the export of spans.
#[derive(Clone, Debug)]
pub struct TraceConfig {
    /// The collector.
    pub endpoint: CollectorEndpoint,
    /// Sample one in N requests that arrive without a trace; 0 samples none of them.
    pub one_in: u64,
}

/// Span counters by export outcome.
pub type SpanCounts = Arc<MetricFamily<Counter, SpanOutcome>>;

/// Samples requests and queues their spans.
pub struct Tracer {
    sampler: TraceSampler,
    queue: mpsc::Sender<FinishedSpan>,
    counts: SpanCounts,
    clock: Clock,
}

/// The span of a sampled request, which can start child spans.
#[derive(Debug)]
pub struct RequestSpan {
    tracer: Arc<Tracer>,
    /// The trace, without this span as the parent of further spans.
    trace: TraceContext,
    id: SpanId,
    parent: Option<SpanId>,
    method: &'static str,
    started: Now,
}

/// A span in progress. It is recorded when it is dropped.
#[derive(Debug)]
pub struct OpenSpan {
    tracer: Arc<Tracer>,
    began: Mono,
    ended: Option<Mono>,
    /// `None` after the span was recorded.
    span: Option<FinishedSpan>,
}

/// The counters of spans. They exist even if there is no exporter.
pub fn span_counts(registry: &MetricsRegistry) -> MetricFamily<Counter, SpanOutcome> {
    registry.counters("scoregate_trace_spans_total")
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer")
            .field("sampler", &self.sampler)
            .finish_non_exhaustive()
    }
}

impl Tracer {
    /// A tracer and the receiving end of its queue. `seed` returns random numbers.
    pub(super) fn new(
        one_in: u64,
        counts: SpanCounts,
        clock: Clock,
        seed: impl FnMut() -> u64,
    ) -> (Arc<Self>, mpsc::Receiver<FinishedSpan>) {
        let (queue, spans) = mpsc::channel(QUEUE);
        (
            Arc::new(Self {
                sampler: TraceSampler::new(one_in, seed),
                queue,
                counts,
                clock,
            }),
            spans,
        )
    }

    /// A new trace for a request without one, if the request is sampled.
    pub fn new_trace(&self) -> Option<TraceContext> {
        self.sampler.new_trace().map(TraceContext::started)
    }

    /// Whether a request that was sampled by its caller is recorded.
    pub fn takes_callers_trace(&self, now: Now) -> bool {
        self.sampler.take_callers_trace(now.mono)
    }

    /// Begins the span of a sampled request, a child of the caller's span if there is one.
    pub fn begin(
        self: &Arc<Self>,
        trace: TraceContext,
        parent: Option<SpanId>,
        method: &'static str,
        started: Now,
    ) -> Arc<RequestSpan> {
        let id = SpanId::new(self.sampler.random());
        Arc::new(RequestSpan {
            tracer: Arc::clone(self),
            trace,
            id,
            parent,
            method,
            started,
        })
    }

    /// Queues a finished span. Never waits.
    fn record(&self, span: FinishedSpan) {
        if self.queue.try_send(span).is_err() {
            self.counts.count(SpanOutcome::Dropped);
        }
    }
}

impl RequestSpan {
    /// Begins a child span.
    pub fn child(&self, name: &'static str, kind: TracedSpanKind, started: Now) -> OpenSpan {
        let span = FinishedSpan {
            trace: self.trace,
            id: SpanId::new(self.tracer.sampler.random()),
            parent: Some(self.id),
            has_remote_parent: false,
            name: name.into(),
            kind,
            started: started.wall,
            took: std::time::Duration::ZERO,
            attributes: Vec::new(),
            has_failed: false,
        };
        OpenSpan {
            tracer: Arc::clone(&self.tracer),
            began: started.mono,
            ended: None,
            span: Some(span),
        }
    }

    /// Records the end of the request.
    pub fn end(
        &self,
        ended: Mono,
        name: Cow<'static, str>,
        attributes: Vec<(&'static str, SpanAttribute)>,
        has_failed: bool,
    ) {
        self.tracer.record(FinishedSpan {
            trace: self.trace,
            id: self.id,
            parent: self.parent,
            has_remote_parent: self.parent.is_some(),
            name,
            kind: TracedSpanKind::Server,
            started: self.started.wall,
            took: ended.since(self.started.mono),
            attributes,
            has_failed,
        });
    }

    /// The method of the request.
    pub fn method(&self) -> &'static str {
        self.method
    }
}

impl OpenSpan {
    /// The trace to propagate to child requests.
    pub fn trace(&self) -> Option<TraceContext> {
        self.span.as_ref().map(|span| span.trace.within(span.id))
    }

    /// Adds an attribute.
    pub fn set(&mut self, name: &'static str, value: impl Into<SpanAttribute>) {
        if let Some(span) = &mut self.span {
            span.attributes.push((name, value.into()));
        }
    }

    /// Marks the span as failed with this error.
    pub fn fail(&mut self, error: &'static str) {
        self.set("error.type", error);
        if let Some(span) = &mut self.span {
            span.has_failed = true;
        }
    }

    /// Sets the end of the span. By default, the span ends when it is dropped.
    pub fn end_at(&mut self, ended: Mono) {
        self.ended = Some(ended);
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if let Some(mut span) = self.span.take() {
            let ended = self.ended.unwrap_or_else(|| self.tracer.clock.mono());
            span.took = ended.since(self.began);
            self.tracer.record(span);
        }
    }
}
