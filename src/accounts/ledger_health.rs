//! Whether the ledger can be reached, as far as the last call tells: so that while it is away nobody waits for it, and
//! one call a second asks whether it is back.
//!
//! Not for: what is decided while it is away (`limits`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Mono;

/// How long a ledger that failed is left alone.
const RETRY: Duration = Duration::from_secs(1);
/// In place of an instant: it is near. The running time begins above it.
const NEAR: u64 = 0;

/// What is known of the ledger.
#[derive(Debug, Default)]
pub(super) struct LedgerHealth {
    /// When it may be asked again, in nanoseconds of the running time.
    retry_at: AtomicU64,
}

impl LedgerHealth {
    /// Whether the last call failed.
    pub(super) fn is_away(&self) -> bool {
        self.retry_at.load(Ordering::Acquire) != NEAR
    }

    /// Whether a call may be made now. While it is away this is true for one caller a second.
    pub(super) fn may_ask(&self, now: Mono) -> bool {
        let retry_at = self.retry_at.load(Ordering::Acquire);
        if retry_at == NEAR {
            return true;
        }
        let next = now.plus(RETRY).nanos();
        now.nanos() >= retry_at
            && self.retry_at.compare_exchange(retry_at, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// A call failed, or took too long. `true` if that is news.
    pub(super) fn failed(&self, now: Mono) -> bool {
        self.retry_at.swap(now.plus(RETRY).nanos(), Ordering::AcqRel) == NEAR
    }

    /// A call succeeded. `true` if that is news.
    pub(super) fn answered(&self) -> bool {
        self.is_away() && self.retry_at.swap(NEAR, Ordering::AcqRel) != NEAR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_it_is_away_one_caller_a_second_asks() {
        let (reach, start) = (LedgerHealth::default(), Mono::from_nanos(5));
        assert!(reach.may_ask(start) && reach.may_ask(start));
        assert!(reach.failed(start) && !reach.failed(start));
        assert!(reach.is_away() && !reach.may_ask(start));
        let later = start.plus(RETRY);
        assert!(reach.may_ask(later) && !reach.may_ask(later));
        assert!(reach.answered() && !reach.answered());
        assert!(reach.may_ask(later) && reach.may_ask(later));
    }
}
