//! Metrics: the table, the handles, and the text for Prometheus.
//!
//! Handles are created once. Counting changes only the calling thread's memory.

mod base_labels;
mod counter_cells;
mod gauge_value;
mod label;
mod metric_family;
mod registry;
mod table;

pub use gauge_value::{flag_value, number_value};
pub use label::metric_label;
pub use label::{FixedLabel, MetricLabel};
pub use metric_family::{CounterMatrix, MetricFamily};
pub use metrics::Counter;
pub use registry::{MetricsRegistry, Scrape};
pub use table::{LABELS, LabelRow, METRICS, MetricKind, MetricRow, max_series};
