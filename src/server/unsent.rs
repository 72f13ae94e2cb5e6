//! How fast a client reads: since when bytes wait for it, and whether it takes enough of them.
//!
//! A client must take [`MIN_BYTES`] bytes within each write timeout. Taking nothing violates that, and so does a byte now
//! and then. Pure.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::clock::Mono;

/// Bytes that a client must take within the write timeout: about 400 B/s with the default of 20 s, a tenth of a slow
/// mobile link.
pub(super) const MIN_BYTES: usize = 8 * 1_024;

/// Maximum number of unsent responses in the whole process before clients without a key get less time.
const MAX_UNSENT: usize = 4_096;

/// Response bytes that wait for a client, on the socket or for an HTTP/2 window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnsentBytes(Option<OpenResponse>);

#[derive(Clone, Copy, Debug)]
struct OpenResponse {
    /// Start of the current time allowance.
    since: Mono,
    /// When the client last took bytes.
    last: Mono,
    /// Bytes taken since `since`.
    taken: usize,
}

impl UnsentBytes {
    /// Bytes begin to wait. Changes nothing if some wait already.
    pub(super) fn begin(&mut self, now: Mono) {
        self.0.get_or_insert(OpenResponse { since: now, last: now, taken: 0 });
    }

    /// No bytes wait any more.
    pub(super) fn end(&mut self) {
        self.0 = None;
    }

    /// The client took bytes. The clock is read only if bytes wait.
    pub(super) fn taken(&mut self, bytes: usize, now: impl FnOnce() -> Mono) {
        let Some(open) = &mut self.0 else { return };
        open.last = now();
        open.taken += bytes;
        if open.taken >= MIN_BYTES {
            (open.since, open.taken) = (open.last, 0);
        }
    }

    /// Since when the client has taken less than [`MIN_BYTES`].
    pub(super) fn since(&self) -> Option<Mono> {
        self.0.map(|open| open.since)
    }

    /// When the client last took a byte, or when bytes began to wait.
    pub(super) fn last_byte(&self) -> Option<Mono> {
        self.0.map(|open| open.last)
    }
}

/// Number of unsent HTTP/2 responses in the whole process.
#[derive(Debug, Default)]
pub(super) struct UnsentResponses(AtomicUsize);

/// One of them; dropped when it is sent.
#[derive(Debug)]
pub(super) struct UnsentResponse(Arc<UnsentResponses>);

impl UnsentResponses {
    /// Counts one.
    pub(super) fn count(self: &Arc<Self>) -> UnsentResponse {
        self.0.fetch_add(1, Ordering::Relaxed);
        UnsentResponse(Arc::clone(self))
    }

    /// Whether memory has to be freed.
    pub(super) fn is_over_limit(&self) -> bool {
        self.0.load(Ordering::Relaxed) > MAX_UNSENT
    }
}

impl Drop for UnsentResponse {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Mono = Mono::from_nanos(0);
    const LATER: Mono = Mono::from_nanos(5);

    #[test]
    fn deadline_is_extended_only_by_enough_bytes() {
        let mut waiting = UnsentBytes::default();
        waiting.taken(1, || unreachable!("nothing waits"));
        assert_eq!((waiting.since(), waiting.last_byte()), (None, None));
        waiting.begin(START);
        waiting.begin(LATER);
        waiting.taken(MIN_BYTES - 1, || LATER);
        assert_eq!((waiting.since(), waiting.last_byte()), (Some(START), Some(LATER)));
        waiting.taken(1, || LATER);
        assert_eq!(waiting.since(), Some(LATER));
        waiting.end();
        assert_eq!(waiting.since(), None);
    }

    #[test]
    fn the_process_limit_counts_responses_that_wait_now() {
        let unsent = Arc::new(UnsentResponses::default());
        let mut all: Vec<_> = (0..=MAX_UNSENT).map(|_| unsent.count()).collect();
        assert!(unsent.is_over_limit());
        all.pop();
        assert!(!unsent.is_over_limit());
    }
}
