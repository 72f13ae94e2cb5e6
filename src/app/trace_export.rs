//! The export of spans: started with the gateway, and finished at a shutdown within a fixed time.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use scoregate_base::clock::Clock;
use scoregate_observe::traces::{SpanExporter, Tracer, span_counts};

use super::background::Background;
use super::start_context::{StartContext, node_name};

/// Time for which a shutdown waits for the last spans.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// The running exporter, if spans are exported.
pub(super) struct TraceExport {
    stop: CancellationToken,
    exporting: Option<JoinHandle<()>>,
}

/// Initializes the metrics, and creates the tracer and its exporter if an endpoint is configured.
pub(super) fn open(context: &StartContext) -> anyhow::Result<Option<(Arc<Tracer>, SpanExporter)>> {
    let StartContext {
        config,
        clock,
        registry,
        ..
    } = context;
    span_counts(registry);
    let Some(traces) = &config.traces else {
        return Ok(None);
    };
    // A host may run several gateways.
    let instance = format!("{}:{}", node_name(config), config.listen.port());
    let mut seed = getrandom::u64().context("the operating system returned no random bytes")?;
    Ok(Some(SpanExporter::new(
        traces,
        instance,
        registry,
        clock,
        move || {
            seed = getrandom::u64().unwrap_or(seed.rotate_left(29) ^ 0x5851_f42d_4c95_7f2d);
            seed
        },
    )))
}

impl TraceExport {
    /// Starts the exporter, if there is one.
    pub(super) fn start(exporter: Option<SpanExporter>, background: &Background) -> Self {
        let stop = CancellationToken::new();
        let exporting = exporter.map(|exporter| background.spawn(exporter.run(stop.clone())));
        Self { stop, exporting }
    }

    /// Sends the spans in the queue, for a limited time.
    pub(super) async fn finish(self, clock: &Clock) {
        self.stop.cancel();
        let Some(mut exporting) = self.exporting else {
            return;
        };
        if clock.within(LAST_SPANS, &mut exporting).await.is_err() {
            exporting.abort();
            tracing::warn!("the last spans were not exported in time");
        }
    }
}
