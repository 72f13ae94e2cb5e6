//! Marks points where a thread may be preempted in tests of random schedules.

use std::cell::Cell;

thread_local! {
    /// Whether this thread runs under a test scheduler.
    pub(crate) static SCHEDULED: Cell<bool> = const { Cell::new(false) };
}

/// Lets another thread run if a test scheduler is active.
pub fn switch_here() {
    if SCHEDULED.get() {
        shuttle::thread::yield_now();
    }
}
