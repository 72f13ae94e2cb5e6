//! Whether the ledger is reachable, by the result of the last call. While it is not, no request waits for it, and one
//! call a second tries again.
//!
//! Decisions while it is unreachable are in `limits`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use scoregate_base::clock::Mono;

/// Minimum interval between attempts while it is unreachable.
const RETRY: Duration = Duration::from_secs(1);
/// Without requests, an attempt follows this long after it was due.
const IDLE_RETRY: Duration = Duration::from_secs(9);
/// Marks a reachable ledger. Monotonic time starts above it.
const REACHABLE: u64 = 0;

/// Reachability of the ledger.
#[derive(Debug, Default)]
pub(super) struct LedgerHealth {
    /// When the next attempt is due, in nanoseconds of monotonic time.
    retry_at: AtomicU64,
    /// When it was last found to be unreachable.
    since: AtomicU64,
}

impl LedgerHealth {
    /// Whether the last call failed.
    pub(super) fn is_unreachable(&self) -> bool {
        self.retry_at.load(Ordering::Acquire) != REACHABLE
    }

    /// Whether a call may be made now. While the ledger is unreachable this is true for one caller a second.
    pub(super) fn may_try(&self, now: Mono) -> bool {
        let retry_at = self.retry_at.load(Ordering::Acquire);
        if retry_at == REACHABLE {
            return true;
        }
        let next = now.plus(RETRY).nanos();
        now.nanos() >= retry_at
            && self
                .retry_at
                .compare_exchange(retry_at, next, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
    }

    /// Whether no request has made the attempt that is due, for a while.
    pub(super) fn is_idle(&self, now: Mono) -> bool {
        let retry_at = self.retry_at.load(Ordering::Acquire);
        retry_at != REACHABLE && now.nanos() >= Mono::from_nanos(retry_at).plus(IDLE_RETRY).nanos()
    }

    /// Records a failed or late call. Returns `true` if the ledger was reachable before.
    pub(super) fn failed(&self, now: Mono) -> bool {
        let was_reachable = self
            .retry_at
            .swap(now.plus(RETRY).nanos(), Ordering::AcqRel)
            == REACHABLE;
        if was_reachable {
            self.since.store(now.nanos(), Ordering::Release);
        }
        was_reachable
    }

    /// When the ledger was last found to be unreachable.
    pub(super) fn unreachable_since(&self) -> Mono {
        Mono::from_nanos(self.since.load(Ordering::Acquire))
    }

    /// Records a successful call. Returns `true` if the ledger was unreachable before.
    pub(super) fn succeeded(&self) -> bool {
        self.is_unreachable() && self.retry_at.swap(REACHABLE, Ordering::AcqRel) != REACHABLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_unreachable_one_caller_per_second_retries() {
        let reach = LedgerHealth::default();
        let start = Mono::from_nanos(5);
        assert!(reach.may_try(start) && reach.may_try(start));
        assert!(reach.failed(start) && !reach.failed(start));
        assert!(
            reach.is_unreachable() && !reach.may_try(start) && reach.unreachable_since() == start
        );
        let later = start.plus(RETRY);
        assert!(reach.may_try(later) && !reach.may_try(later));
        assert!(reach.succeeded() && !reach.succeeded());
        assert!(reach.may_try(later) && reach.may_try(later));
    }
}
