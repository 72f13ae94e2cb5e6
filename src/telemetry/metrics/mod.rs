//! Metrics: handles created from THE table of metrics, and the text for Prometheus.
//!
//! Handles are created once; counting is a step in the counting thread's own memory.

mod counter_cells;
mod label;
mod registry;
mod table;

use std::marker::PhantomData;

pub use metrics::Counter;

pub use counter_cells::UpDownCounter;
pub(crate) use label::metric_label;
pub use label::{FixedLabel, MetricLabel};
pub use registry::{MetricsRegistry, Scrape};
pub use table::{LABELS, LabelRow, METRICS, MetricKind, MetricRow, max_series};

/// Handles of one metric, by label value.
pub struct MetricFamily<H, L> {
    handles: Vec<H>,
    of: PhantomData<fn(L)>,
}

/// Without handles: counts nothing.
impl<H, L> Default for MetricFamily<H, L> {
    fn default() -> Self {
        Self { handles: Vec::new(), of: PhantomData }
    }
}

impl<H, L: MetricLabel> MetricFamily<H, L> {
    /// The handle of a label value. Always `Some` for a label that lists all its values.
    pub fn of(&self, word: L) -> Option<&H> {
        self.handles.get(word.index())
    }
}

/// Counters of one metric, by two labels.
pub struct CounterMatrix<A, B> {
    handles: Vec<Counter>,
    columns: usize,
    of: PhantomData<fn(A, B)>,
}

impl<A: MetricLabel, B: MetricLabel> CounterMatrix<A, B> {
    /// Adds one.
    pub fn count(&self, row: A, column: B) {
        if let Some(counter) = self.handles.get(row.index() * self.columns + column.index()) {
            counter.increment(1);
        }
    }
}

impl<L: MetricLabel> MetricFamily<Counter, L> {
    /// Adds one.
    pub fn count(&self, word: L) {
        self.add(word, 1);
    }

    /// Adds several.
    pub fn add(&self, word: L, by: u64) {
        if let Some(counter) = self.of(word) {
            counter.increment(by);
        }
    }
}
