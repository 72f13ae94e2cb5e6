//! Per-thread copies of a value, so that threads do not contend for one cache line.
//!
//! If two cores write to the same cache line, it moves between them at each write, which costs more than most of the work for a
//! cache hit. A sum over all copies is not a snapshot: the copies are read one after another.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of copies. If there are more threads, some share a copy, which is slower but still correct.
const PARTS: usize = 16;

/// One value per thread, up to a fixed number of copies.
#[derive(Debug)]
pub struct PerThread<T> {
    parts: [CachePadded<T>; PARTS],
}

/// A value on separate cache lines. The alignment is two lines, because processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CachePadded<T>(T);

impl<T> PerThread<T> {
    /// The calling thread's copy.
    pub fn local(&self) -> &T {
        let [first, ..] = &self.parts;
        &self.parts.get(index()).unwrap_or(first).0
    }

    /// All copies.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.parts.iter().map(|part| &part.0)
    }
}

impl<T: Default> Default for PerThread<T> {
    fn default() -> Self {
        Self {
            parts: std::array::from_fn(|_| CachePadded::default()),
        }
    }
}

/// The index of the calling thread's copy, assigned round robin.
fn index() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        // Relaxed, because threads only need distinct numbers.
        static INDEX: usize = NEXT.fetch_add(1, Ordering::Relaxed) % PARTS;
    }
    INDEX.with(|index| *index)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn a_thread_keeps_its_copy_and_the_sum_is_complete() {
        let counts: PerThread<AtomicU64> = PerThread::default();
        std::thread::scope(|scope| {
            for _ in 0..2 * PARTS {
                scope.spawn(|| {
                    let local = counts.local();
                    for _ in 0..1_000 {
                        counts.local().fetch_add(1, Ordering::Relaxed);
                    }
                    assert!(std::ptr::eq(local, counts.local()));
                });
            }
        });
        let all: Vec<u64> = counts
            .all()
            .map(|count| count.load(Ordering::Relaxed))
            .collect();
        assert_eq!(all.iter().sum::<u64>(), 2 * PARTS as u64 * 1_000);
        assert!(all.iter().filter(|count| **count > 0).count() > 1);
    }
}
