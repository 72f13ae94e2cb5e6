//! Metrics of the service for language models.

use metrics::Counter;

use scoregate_observe::telemetry::metrics::{MetricFamily, MetricsRegistry, metric_label};

metric_label! {
    /// The result of a request to `/mcp`.
    pub(crate) enum McpOutcome: "result" {
        /// A handshake, a list or a notification.
        Listed = "listed",
        /// A preflight request of a page.
        Preflight = "preflight",
        /// A call with data.
        Answered = "answered",
        /// A call that was refused in a result.
        ToolError = "tool_error",
        /// A call without a valid key.
        Unauthenticated = "unauthenticated",
        /// A request that is none of these.
        Rejected = "rejected",
    }
}

/// Metrics of the service for language models.
pub struct McpInstruments(MetricFamily<Counter, McpOutcome>);

impl McpInstruments {
    /// Creates the handles.
    pub fn new(registry: &MetricsRegistry) -> Self {
        Self(registry.counters("scoregate_mcp_requests_total"))
    }

    /// Counts a request.
    pub(crate) fn answered(&self, outcome: McpOutcome) {
        self.0.count(outcome);
    }
}
