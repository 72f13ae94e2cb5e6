//! Sends queued spans to the collector in batches, and retries requests that may succeed later.
//!
//! The exporter is the only reader of the queue and holds one batch at a time. While it waits for the collector, the
//! queue fills and further spans are dropped.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::telemetry::metrics::MetricsRegistry;
use scoregate_base::clock::Clock;

use super::{
    collector::{Collector, ExportFailure},
    otlp::{ExportReply, TraceResource, export_request},
    span::{FinishedSpan, SpanOutcome},
    tracer::{SpanCounts, TraceConfig, Tracer, span_counts},
};

/// Maximum number of spans in a request.
const BATCH: usize = 512;
/// Time for which a span waits for others to fill the batch.
const BATCH_TIME: Duration = Duration::from_secs(1);
/// Maximum number of times that a batch is sent.
// This limits how long a batch delays the spans in the queue.
const ATTEMPTS: u32 = 4;
/// Delay before the first retry if there is no `Retry-After`. It doubles with each retry.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Exports spans.
pub struct SpanExporter {
    spans: mpsc::Receiver<FinishedSpan>,
    collector: Collector,
    resource: TraceResource,
    counts: SpanCounts,
    clock: Clock,
    /// Whether the last batch was lost.
    is_failing: bool,
}

impl SpanExporter {
    /// A tracer and its exporter, which sends spans with `instance` as the name of the gateway. `seed` returns random
    /// numbers.
    pub fn new(
        config: &TraceConfig,
        instance: String,
        registry: &MetricsRegistry,
        clock: &Clock,
        seed: impl FnMut() -> u64,
    ) -> (Arc<Tracer>, Self) {
        let counts: SpanCounts = Arc::new(span_counts(registry));
        let (tracer, spans) = Tracer::new(config.one_in, Arc::clone(&counts), clock.clone(), seed);
        let collector = Collector::new(config.endpoint.clone());
        let resource = TraceResource { instance };
        (
            tracer,
            Self {
                spans,
                collector,
                resource,
                counts,
                clock: clock.clone(),
                is_failing: false,
            },
        )
    }

    /// Exports spans until `stop`, then sends each batch in the queue once.
    pub async fn run(mut self, stop: CancellationToken) {
        while let Some(batch) = self.next_batch(&stop).await {
            self.export(&batch, &stop).await;
        }
    }

    /// The next spans; `None` at the end.
    async fn next_batch(&mut self, stop: &CancellationToken) -> Option<Vec<FinishedSpan>> {
        let mut batch = Vec::new();
        if let Some(first) = stop.run_until_cancelled(self.spans.recv()).await {
            batch.push(first?);
            let end = self.clock.mono().plus(BATCH_TIME);
            while batch.len() < BATCH {
                let next = self.clock.until(end, self.spans.recv());
                let Some(Ok(Some(span))) = stop.run_until_cancelled(next).await else {
                    break;
                };
                batch.push(span);
            }
        }
        // Spans that are already queued are added to this batch.
        while batch.len() < BATCH
            && let Ok(span) = self.spans.try_recv()
        {
            batch.push(span);
        }
        (!batch.is_empty()).then_some(batch)
    }

    /// Sends a batch, with retries if necessary, and counts its spans.
    async fn export(&mut self, batch: &[FinishedSpan], stop: &CancellationToken) {
        let body = Bytes::from(export_request(batch, &self.resource));
        let spans = batch.len() as u64;
        let mut delay = RETRY_DELAY;
        for attempt in 1..=ATTEMPTS {
            let failure = match self.collector.export(body.clone(), &self.clock).await {
                Ok(reply) => return self.accepted(spans, &reply),
                Err(failure) => failure,
            };
            let (reason, retry_after) = match failure {
                ExportFailure::Temporary {
                    reason,
                    retry_after,
                } => (reason, retry_after),
                ExportFailure::Permanent(reason) => return self.lost(spans, &reason),
            };
            if attempt == ATTEMPTS || stop.is_cancelled() {
                return self.lost(spans, &reason);
            }
            // At shutdown, the batch is sent once more immediately.
            stop.run_until_cancelled(self.clock.sleep(retry_after.unwrap_or(delay)))
                .await;
            delay *= 2;
        }
    }

    fn accepted(&mut self, spans: u64, reply: &ExportReply) {
        let rejected = reply.rejected.min(spans);
        self.counts.add(SpanOutcome::Exported, spans - rejected);
        self.counts.add(SpanOutcome::Failed, rejected);
        let collector = self.collector.address();
        if rejected > 0 || !reply.message.is_empty() {
            tracing::warn!(%collector, rejected, message = reply.message, "the collector reports a problem with spans");
        }
        if std::mem::take(&mut self.is_failing) {
            tracing::info!(%collector, "the collector accepts spans again");
        }
    }

    fn lost(&mut self, spans: u64, reason: &str) {
        self.counts.add(SpanOutcome::Failed, spans);
        if !std::mem::replace(&mut self.is_failing, true) {
            let collector = self.collector.address();
            tracing::warn!(%collector, reason, "the collector does not accept spans; they are lost until it does");
        }
    }
}
