//! Measures how fast a client reads: how long bytes have been waiting, and whether the client reads enough of them.
//! Counts the waiting responses of the whole process. A client must read [`MIN_BYTES`] within each write timeout, so
//! occasional single bytes are not enough.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use metrics::Counter;

use scoregate_base::clock::Mono;
use scoregate_observe::telemetry::metrics::{MetricFamily, MetricsRegistry, metric_label};

use super::client_limits::ClientLimits;

/// Bytes that a client must read within the write timeout. With the default of 20 s this is about 400 B/s, a tenth of the speed
/// of a slow mobile link.
pub const MIN_BYTES: usize = 8 * 1_024;

/// Response bytes that wait for a client: for the socket or for an HTTP/2 window.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnsentBytes(Option<OpenResponse>);

#[derive(Clone, Copy, Debug)]
struct OpenResponse {
    /// Start of the current timeout.
    since: Mono,
    /// When the client last read bytes.
    last: Mono,
    /// Bytes read since `since`.
    taken: usize,
}

impl UnsentBytes {
    /// Records that bytes begin to wait. Has no effect if bytes are already waiting.
    pub fn begin(&mut self, now: Mono) {
        self.0.get_or_insert(OpenResponse {
            since: now,
            last: now,
            taken: 0,
        });
    }

    /// Records that bytes no longer wait.
    pub fn end(&mut self) {
        self.0 = None;
    }

    /// Records that the client read bytes. The clock is read only if bytes wait.
    pub fn taken(&mut self, bytes: usize, now: impl FnOnce() -> Mono) {
        let Some(open) = &mut self.0 else { return };
        open.last = now();
        open.taken += bytes;
        if open.taken >= MIN_BYTES {
            (open.since, open.taken) = (open.last, 0);
        }
    }

    /// The start of the current timeout. Since then, the client has read fewer than [`MIN_BYTES`].
    pub fn since(&self) -> Option<Mono> {
        self.0.map(|open| open.since)
    }

    /// When the client last read a byte, or when bytes began to wait.
    pub fn last_byte(&self) -> Option<Mono> {
        self.0.map(|open| open.last)
    }
}

/// Unsent HTTP/2 responses in the whole process.
#[derive(Default)]
pub struct UnsentResponses {
    count: AtomicUsize,
    refused: MetricFamily<Counter, StreamRefusal>,
}

/// An unsent response. Dropped when the response has been sent.
pub struct UnsentResponse(Arc<UnsentResponses>);

metric_label! {
    /// The limit that caused an HTTP/2 request to be refused.
    pub enum StreamRefusal: "scope" {
        /// Pending responses of the connection.
        Connection = "connection",
        /// Pending responses of the process.
        Process = "process",
    }
}

impl UnsentResponses {
    pub fn new(registry: &MetricsRegistry) -> Self {
        Self {
            count: AtomicUsize::default(),
            refused: registry.counters("scoregate_streams_refused_total"),
        }
    }

    pub fn count(self: &Arc<Self>) -> UnsentResponse {
        self.count.fetch_add(1, Ordering::Relaxed);
        UnsentResponse(Arc::clone(self))
    }

    /// Whether a client with these limits must read within the short timeout.
    pub fn hurries(&self, limits: &ClientLimits) -> bool {
        // The limits have wide margins, so a slightly outdated count is harmless.
        self.count.load(Ordering::Relaxed) >= limits.hurried_from
    }

    /// Whether a request is accepted from a client with these limits and `pending` responses on its connection. Counts
    /// a refused request.
    pub fn take(&self, limits: &ClientLimits, pending: usize) -> Result<(), StreamRefusal> {
        let refusal = if pending >= limits.pending {
            StreamRefusal::Connection
        } else if pending > 0 && self.count.load(Ordering::Relaxed) >= limits.pending_in_process {
            StreamRefusal::Process
        } else {
            return Ok(());
        };
        self.refused.count(refusal);
        Err(refusal)
    }
}

impl Drop for UnsentResponse {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::TrustLevel;

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
        assert_eq!(
            (waiting.since(), waiting.last_byte()),
            (Some(START), Some(LATER))
        );
        waiting.taken(1, || LATER);
        assert_eq!(waiting.since(), Some(LATER));
        waiting.end();
        assert_eq!(waiting.since(), None);
    }

    #[test]
    fn the_process_limit_counts_responses_that_wait_now() {
        let limits = ClientLimits::of(TrustLevel::Anonymous, false);
        let unsent = Arc::new(UnsentResponses::default());
        let mut all: Vec<_> = (1..limits.hurried_from).map(|_| unsent.count()).collect();
        assert!(!unsent.hurries(&limits));
        all.push(unsent.count());
        assert!(unsent.hurries(&limits) && unsent.take(&limits, 0) == Ok(()));
        all.extend((limits.hurried_from..limits.pending_in_process).map(|_| unsent.count()));
        assert_eq!(unsent.take(&limits, 1), Err(StreamRefusal::Process));
        assert_eq!(
            unsent.take(&limits, 0),
            Ok(()),
            "the first response of a connection"
        );
        assert_eq!(
            unsent.take(&limits, limits.pending),
            Err(StreamRefusal::Connection)
        );
        let admitted = ClientLimits::of(TrustLevel::Admitted, false);
        assert!(unsent.take(&admitted, 1) == Ok(()) && !unsent.hurries(&admitted));
        all.pop();
        assert_eq!(unsent.take(&limits, 1), Ok(()));
    }
}
