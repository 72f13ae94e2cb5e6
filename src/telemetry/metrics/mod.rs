//! Metrics: handles made from THE table of them, and the text that is scraped.
//!
//! Handles are made once; counting is a step in memory of the counting thread's own. Not for: what there is (`table.rs`), nor
//! for deciding what is counted when.

mod cells;
mod reference;
mod registry;
mod table;

use std::marker::PhantomData;

pub use metrics::Counter;

pub use cells::Level;
pub use reference::reference;
pub use registry::{Registry, Scrape};
pub use table::{Kind, LABELS, LabelRow, METRICS, Row, most_series};

/// A closed set of words that can be a label. Implemented next to the enum whose words they are.
pub trait Label: Copy {
    /// The label's name in [`LABELS`].
    const NAME: &'static str;
    /// Its place in the list of words.
    fn index(self) -> usize;
}

/// Handles of one metric, by the word of a label.
pub struct Family<H, L> {
    handles: Vec<H>,
    of: PhantomData<fn(L)>,
}

impl<H, L: Label> Family<H, L> {
    /// The handle of a word. `None` cannot happen for a label that lists all its words.
    pub fn of(&self, word: L) -> Option<&H> {
        self.handles.get(word.index())
    }
}

/// Counters of one metric, by the words of two labels.
pub struct Table<A, B> {
    handles: Vec<Counter>,
    columns: usize,
    of: PhantomData<fn(A, B)>,
}

impl<A: Label, B: Label> Table<A, B> {
    /// Counts one.
    pub fn count(&self, row: A, column: B) {
        if let Some(counter) = self.handles.get(row.index() * self.columns + column.index()) {
            counter.increment(1);
        }
    }
}

impl<L: Label> Family<Counter, L> {
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
