//! Where a thread may be preempted in a test of random schedules.

use std::cell::Cell;

thread_local! {
    /// Whether a schedule is being tried on this thread.
    pub(crate) static SCHEDULED: Cell<bool> = const { Cell::new(false) };
}

/// A point at which another thread may run, where a schedule is being tried.
pub(crate) fn switch_here() {
    if SCHEDULED.get() {
        shuttle::thread::yield_now();
    }
}
