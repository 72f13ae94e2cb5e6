//! Parallel work for refreshes of many models.

use std::{
    num::NonZero,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

/// The results for all items in order, computed on as many threads as can run in parallel. If the system cannot start a
/// thread, the others do its work.
pub fn map<I: Sync, T: Send>(items: &[I], of: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        std::iter::from_fn(|| {
            let at = next.fetch_add(1, Ordering::Relaxed);
            Some((at, of(items.get(at)?)))
        })
        .collect::<Vec<(usize, T)>>()
    };
    let threads = thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(items.len());
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .filter_map(|_| thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut done = work();
        for other in others {
            done.extend(
                other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
