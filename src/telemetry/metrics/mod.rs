//! Metrics: handles made from THE table of them, and the text that is scraped.
//!
//! Handles are made once; counting is a step in memory of the counting thread's own. Not for: what there is (`table.rs`), nor
//! for deciding what is counted when.

mod counter_cells;
mod reference;
mod registry;
mod table;

use std::marker::PhantomData;

pub use metrics::Counter;

pub use counter_cells::UpDownCounter;
pub use reference::reference;
pub use registry::{MetricsRegistry, Scrape};
pub use table::{LABELS, LabelRow, METRICS, MetricKind, MetricRow, most_series};

/// A closed set of words that can be a label. Implemented next to the enum whose words they are.
pub trait MetricLabel: Copy {
    /// The label's name in [`LABELS`].
    const NAME: &'static str;
    /// Its place in the list of words.
    fn index(self) -> usize;
}

/// Handles of one metric, by the word of a label.
pub struct MetricFamily<H, L> {
    handles: Vec<H>,
    of: PhantomData<fn(L)>,
}

impl<H, L: MetricLabel> MetricFamily<H, L> {
    /// The handle of a word. `None` cannot happen for a label that lists all its words.
    pub fn of(&self, word: L) -> Option<&H> {
        self.handles.get(word.index())
    }
}

/// Counters of one metric, by the words of two labels.
pub struct CounterMatrix<A, B> {
    handles: Vec<Counter>,
    columns: usize,
    of: PhantomData<fn(A, B)>,
}

impl<A: MetricLabel, B: MetricLabel> CounterMatrix<A, B> {
    /// Counts one.
    pub fn count(&self, row: A, column: B) {
        if let Some(counter) = self.handles.get(row.index() * self.columns + column.index()) {
            counter.increment(1);
        }
    }
}

impl<L: MetricLabel> MetricFamily<Counter, L> {
    /// Counts one.
    pub fn count(&self, word: L) {
        self.add(word, 1);
    }

    /// Counts several.
    pub fn add(&self, word: L, by: u64) {
        if let Some(counter) = self.of(word) {
            counter.increment(by);
        }
    }
}
