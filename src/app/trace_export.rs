//! The tracer and the span exporter.

use std::sync::Arc;

use anyhow::Context as _;

use scoregate_observe::traces::{SpanExporter, Tracer, span_counts};

use super::{
    background::{Background, FinishingTask},
    start_context::{StartContext, node_name},
};

/// Initializes the metrics, and creates the tracer and its exporter if an endpoint is configured.
pub fn open(context: &StartContext) -> anyhow::Result<Option<(Arc<Tracer>, SpanExporter)>> {
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

/// Starts the exporter, if there is one.
pub fn start(exporter: Option<SpanExporter>, background: &Background) -> FinishingTask {
    background.finishing(exporter.map(|exporter| |stop| exporter.run(stop)))
}
