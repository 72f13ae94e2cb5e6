//! Handles of one metric, by label values.

use std::marker::PhantomData;

use metrics::Counter;

use super::label::MetricLabel;

/// Handles of one metric, by label value.
pub struct MetricFamily<H, L> {
    handles: Vec<H>,
    of: PhantomData<fn(L)>,
}

/// A family without handles, which counts nothing.
impl<H, L> Default for MetricFamily<H, L> {
    fn default() -> Self {
        Self {
            handles: Vec::new(),
            of: PhantomData,
        }
    }
}

impl<H, L: MetricLabel> MetricFamily<H, L> {
    /// Handles in the order of the label values.
    pub(super) fn new(handles: Vec<H>) -> Self {
        Self {
            handles,
            of: PhantomData,
        }
    }

    /// The handle of a label value. It is always `Some` for a label that lists all values.
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
    /// A matrix of these handles, in rows of this many columns.
    pub(super) fn new(handles: Vec<Counter>, columns: usize) -> Self {
        Self {
            handles,
            columns,
            of: PhantomData,
        }
    }

    /// Adds one.
    pub fn count(&self, row: A, column: B) {
        if let Some(counter) = self
            .handles
            .get(row.index() * self.columns + column.index())
        {
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
