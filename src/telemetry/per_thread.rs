//! What every thread has a part of its own of, so that threads that do the same do not wait for each other's memory.
//!
//! A line of memory that two cores write to travels between them with each write, which costs more than most of what a hit
//! does. Not for: what has to be exact at every moment; a sum over all parts is as old as its reading takes.

use std::sync::atomic::{AtomicUsize, Ordering};

/// So many parts. With more threads than that some share one, which is slower and no less right.
const PARTS: usize = 16;

/// One value for each thread, as far as there are parts.
#[derive(Debug)]
pub struct PerThread<T> {
    parts: [CachePadded<T>; PARTS],
}

/// On lines of memory that nothing else lies on; processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CachePadded<T>(T);

impl<T> PerThread<T> {
    /// The calling thread's part.
    pub fn mine(&self) -> &T {
        let [first, ..] = &self.parts;
        &self.parts.get(place()).unwrap_or(first).0
    }

    /// All parts.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.parts.iter().map(|part| &part.0)
    }
}

impl<T: Default> Default for PerThread<T> {
    fn default() -> Self {
        Self { parts: std::array::from_fn(|_| CachePadded::default()) }
    }
}

/// The place of the calling thread's part: threads get them in turns.
fn place() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PLACE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % PARTS;
    }
    PLACE.with(|place| *place)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn a_thread_keeps_its_part_and_all_parts_together_miss_nothing() {
        let counts: PerThread<AtomicU64> = PerThread::default();
        std::thread::scope(|scope| {
            for _ in 0..2 * PARTS {
                scope.spawn(|| {
                    let mine = counts.mine();
                    for _ in 0..1_000 {
                        counts.mine().fetch_add(1, Ordering::Relaxed);
                    }
                    assert!(std::ptr::eq(mine, counts.mine()));
                });
            }
        });
        let all: Vec<u64> = counts.all().map(|count| count.load(Ordering::Relaxed)).collect();
        assert_eq!(all.iter().sum::<u64>(), 2 * PARTS as u64 * 1_000);
        assert!(all.iter().filter(|count| **count > 0).count() > 1);
    }
}
