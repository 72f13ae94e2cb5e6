//! Metrics of the MCP endpoint.

use metrics::Counter;

use scoregate_observe::telemetry::metrics::{MetricFamily, MetricsRegistry, metric_label};

metric_label! {
    /// The result of a request to `/mcp`.
    pub(crate) enum McpOutcome: "result" {
        /// A handshake, a list or a notification.
        Listed = "listed",
        /// A CORS preflight request.
        Preflight = "preflight",
        /// A call with data.
        Answered = "answered",
        /// A call that was refused with an error in the result.
        ToolError = "tool_error",
        /// A call without a valid key.
        Unauthenticated = "unauthenticated",
        /// Any other request.
        Rejected = "rejected",
    }
}

/// Metrics of the MCP endpoint.
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
