//! Counter storage: a row of numbers per thread, summed when they are read.
//!
//! A request updates about ten counters. Even if only two threads shared the numbers, counting would cost more than the rest of the
//! work for a cache hit. Rendering is in `registry`.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use metrics::{CounterFn, HistogramFn};

use crate::telemetry::per_thread::PerThread;

use super::table::max_series;

/// The rows of one registry.
#[derive(Debug, Default)]
pub struct CounterCells {
    /// The row of a thread is allocated when the thread first counts.
    rows: PerThread<OnceLock<Box<[AtomicU64]>>>,
    taken: AtomicUsize,
}

/// The same cell in every row.
#[derive(Clone, Debug)]
pub struct CounterCell {
    cells: Arc<CounterCells>,
    at: usize,
}

/// A histogram: counts per bucket, and the sum.
#[derive(Clone, Debug)]
pub struct HistogramBuckets {
    /// There is a cell for each bound, one for values above all bounds, and one for the sum.
    cells: Arc<CounterCells>,
    at: usize,
    pub bounds: &'static [f64],
}

impl CounterCells {
    /// Allocates consecutive cells. Returns the index of the first.
    fn take(&self, count: usize) -> usize {
        // Relaxed, because the ranges only have to differ.
        let at = self.taken.fetch_add(count, Ordering::Relaxed);
        assert!(
            at + count <= max_series(),
            "more series than the table of metrics declares"
        );
        at
    }

    /// The cells of the calling thread.
    fn local(&self) -> &[AtomicU64] {
        self.rows
            .local()
            .get_or_init(|| (0..max_series()).map(|_| AtomicU64::new(0)).collect())
    }

    fn add(&self, at: usize, by: u64) {
        if let Some(cell) = self.local().get(at) {
            // Relaxed, because the order of changes to different counters does not matter.
            cell.fetch_add(by, Ordering::Relaxed);
        }
    }

    fn all(&self, at: usize) -> impl Iterator<Item = &AtomicU64> {
        self.rows
            .all()
            .filter_map(OnceLock::get)
            .filter_map(move |row| row.get(at))
    }

    /// The sum over all threads.
    fn sum(&self, at: usize) -> u64 {
        self.all(at).map(|cell| cell.load(Ordering::Relaxed)).sum()
    }
}

impl CounterCell {
    pub fn new(cells: &Arc<CounterCells>) -> Self {
        Self {
            at: cells.take(1),
            cells: Arc::clone(cells),
        }
    }

    pub fn sum(&self) -> u64 {
        self.cells.sum(self.at)
    }
}

impl CounterFn for CounterCell {
    fn increment(&self, by: u64) {
        self.cells.add(self.at, by);
    }

    /// Sets the value of a counter that is maintained elsewhere. Only one thread may call this at a time.
    fn absolute(&self, value: u64) {
        self.cells.add(self.at, value.saturating_sub(self.sum()));
    }
}

impl HistogramBuckets {
    pub fn new(cells: &Arc<CounterCells>, bounds: &'static [f64]) -> Self {
        Self {
            at: cells.take(bounds.len() + 2),
            cells: Arc::clone(cells),
            bounds,
        }
    }

    /// Cumulative counts per bound and the total.
    pub fn counts(&self) -> Vec<u64> {
        let each = (0..=self.bounds.len()).map(|index| self.cells.sum(self.at + index));
        let up_to = each.scan(0_u64, |all, count| {
            *all += count;
            Some(*all)
        });
        up_to.collect()
    }

    /// The sum of the values.
    pub fn sum(&self) -> f64 {
        let sums = self.cells.all(self.at + self.bounds.len() + 1);
        sums.map(|sum| f64::from_bits(sum.load(Ordering::Relaxed)))
            .sum()
    }
}

impl HistogramFn for HistogramBuckets {
    fn record(&self, value: f64) {
        let index = self.bounds.partition_point(|bound| *bound < value);
        let cells = self
            .cells
            .local()
            .get(self.at..=self.at + self.bounds.len() + 1)
            .unwrap_or_default();
        if let [counts @ .., sum] = cells
            && let Some(count) = counts.get(index)
        {
            count.fetch_add(1, Ordering::Relaxed);
            // Two threads may share a row, so the addition is retried if another thread changed the sum.
            sum.update(Ordering::Relaxed, Ordering::Relaxed, |bits| {
                (f64::from_bits(bits) + value).to_bits()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_threads_are_summed_and_values_are_in_the_first_fitting_bucket() {
        let cells = Arc::new(CounterCells::default());
        let counter = CounterCell::new(&cells);
        let buckets = HistogramBuckets::new(&cells, &[1.0, 2.5]);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    counter.increment(5);
                    for value in [0.25, 1.0, 1.5, 7.0] {
                        buckets.record(value);
                    }
                });
            }
        });
        assert_eq!(counter.sum(), 15);
        assert_eq!((buckets.counts(), buckets.sum()), (vec![6, 9, 12], 29.25));
    }

    #[test]
    fn an_absolute_value_only_raises_a_counter() {
        let cells = Arc::new(CounterCells::default());
        let counter = CounterCell::new(&cells);
        for (value, sum) in [(7, 7), (7, 7), (3, 7), (9, 9)] {
            counter.absolute(value);
            assert_eq!(counter.sum(), sum);
        }
    }
}
