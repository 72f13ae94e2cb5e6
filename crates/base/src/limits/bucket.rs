//! The token bucket: capacity L, refilled at L tokens a minute.
//!
//! The whole state is the time when the bucket will be full. A missing bucket is therefore equal to a full one, and
//! dropping a full bucket loses nothing. The time is monotonic, so steps of the wall clock neither freeze nor refill a
//! bucket.

use std::time::Duration;

use crate::clock::Mono;

const MINUTE: u64 = 60_000_000_000;
/// Millionths of a token per token.
pub const TOKEN: i64 = 1_000_000;

/// A token bucket. By default it is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBucket {
    full_at: Mono,
}

/// The content of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketLevel {
    /// Whole tokens.
    pub tokens: u32,
    /// Time until the bucket is full.
    pub full_in: Duration,
    /// Time until the next whole token; zero if a token is available.
    pub token_in: Duration,
}

/// Nanoseconds per token. Rounded up, so that rounding never grants additional tokens.
fn interval(capacity: u32) -> u64 {
    MINUTE.div_ceil(u64::from(capacity.max(1)))
}

impl TokenBucket {
    /// Restores a bucket from [`TokenBucket::to_nanos`].
    pub const fn from_nanos(nanos: u64) -> Self {
        Self {
            full_at: Mono::from_nanos(nanos),
        }
    }

    /// The state as a number, for an atomic.
    pub const fn to_nanos(self) -> u64 {
        self.full_at.nanos()
    }

    /// Takes a token. `None` if no token is available.
    pub fn take(self, capacity: u32, now: Mono) -> Option<Self> {
        let step = interval(capacity);
        let missing = self.missing(now) + step;
        (missing <= step * u64::from(capacity)).then(|| Self {
            full_at: Mono::from_nanos(now.nanos() + missing),
        })
    }

    /// Takes several tokens, or none. The error is the time until enough tokens are available.
    pub fn take_several(self, tokens: u32, capacity: u32, now: Mono) -> Result<Self, Duration> {
        let step = interval(capacity);
        let missing = self.missing(now) + step * u64::from(tokens);
        match missing.checked_sub(step * u64::from(capacity)) {
            None | Some(0) => Ok(Self {
                full_at: Mono::from_nanos(now.nanos() + missing),
            }),
            Some(early) => Err(Duration::from_nanos(early)),
        }
    }

    /// Returns an unused token.
    pub fn give_back(self, capacity: u32) -> Self {
        self.give_back_several(1, capacity)
    }

    /// Returns several unused tokens.
    pub fn give_back_several(self, tokens: u32, capacity: u32) -> Self {
        let returned = interval(capacity).saturating_mul(u64::from(tokens));
        Self {
            full_at: Mono::from_nanos(self.full_at.nanos().saturating_sub(returned)),
        }
    }

    /// The content at `now`.
    pub fn level(self, capacity: u32, now: Mono) -> BucketLevel {
        let step = interval(capacity);
        let missing = self.missing(now);
        let available = (step * u64::from(capacity)).saturating_sub(missing);
        let tokens = u32::try_from(available / step).unwrap_or(u32::MAX);
        let token_in = if tokens > 0 { 0 } else { step - available };
        BucketLevel {
            tokens,
            full_in: Duration::from_nanos(missing),
            token_in: Duration::from_nanos(token_in),
        }
    }

    /// Changes the capacity. The number of missing tokens stays the same, up to the new capacity.
    pub fn rebase(self, from: u32, to: u32, now: Mono) -> Self {
        if from == to {
            return self;
        }
        let old = u128::from(interval(from));
        let new = u128::from(interval(to));
        let missing = (u128::from(self.missing(now)) * new)
            .div_ceil(old)
            .min(new * u128::from(to));
        Self {
            full_at: Mono::from_nanos(now.nanos() + u64::try_from(missing).unwrap_or(MINUTE)),
        }
    }

    /// A bucket that holds this many millionths of a token.
    pub(super) fn holding(micro_tokens: i64, capacity: u32, now: Mono) -> Self {
        let missing = (i64::from(capacity) * TOKEN).saturating_sub(micro_tokens);
        // Rounded up, so that rounding never grants additional tokens.
        let missing = u128::try_from(missing).unwrap_or(0) * u128::from(interval(capacity));
        let nanos =
            u64::try_from(missing.div_ceil(TOKEN.unsigned_abs().into())).unwrap_or(u64::MAX);
        Self {
            full_at: Mono::from_nanos(now.nanos().saturating_add(nanos)),
        }
    }

    /// Whether the bucket is full and can be dropped.
    pub fn is_full(self, now: Mono) -> bool {
        self.full_at <= now
    }

    fn missing(self, now: Mono) -> u64 {
        self.full_at.nanos().saturating_sub(now.nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: u64) -> Mono {
        Mono::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn bucket_grants_its_capacity_then_one_per_interval() {
        let mut bucket = TokenBucket::default();
        for _ in 0..60 {
            bucket = bucket.take(60, at(5_000)).unwrap();
        }
        assert_eq!(bucket.take(60, at(5_999)), None);
        assert_eq!(
            bucket.level(60, at(5_400)).token_in,
            Duration::from_millis(600)
        );
        bucket = bucket.take(60, at(6_000)).unwrap();
        assert_eq!(bucket.take(60, at(6_001)), None);
        assert_eq!(bucket.level(60, at(66_000)).tokens, 60);
        assert!(bucket.is_full(at(66_000)) && !bucket.is_full(at(65_999)));
    }

    #[test]
    fn several_tokens_are_taken_together_or_not_at_all() {
        let bucket = TokenBucket::default()
            .take_several(50, 60, at(5_000))
            .unwrap();
        assert_eq!(
            bucket.take_several(11, 60, at(5_000)),
            Err(Duration::from_secs(1))
        );
        assert_eq!(
            bucket.take_several(11, 60, at(5_999)),
            Err(Duration::from_millis(1))
        );
        assert_eq!(
            bucket
                .take_several(11, 60, at(6_000))
                .unwrap()
                .level(60, at(6_000))
                .tokens,
            0
        );
    }

    #[test]
    fn larger_tier_keeps_used_units() {
        let mut bucket = TokenBucket::default();
        for _ in 0..40 {
            bucket = bucket.take(60, at(0)).unwrap();
        }
        assert_eq!(bucket.rebase(60, 120, at(0)).level(120, at(0)).tokens, 80);
        assert_eq!(bucket.rebase(60, 30, at(0)).level(30, at(0)).tokens, 0);
    }

    #[test]
    fn a_token_given_back_can_be_taken_again() {
        let spent = TokenBucket::default().take(1, at(7)).unwrap();
        assert_eq!(spent.take(1, at(8)), None);
        assert!(spent.give_back(1).take(1, at(8)).is_some());
    }

    proptest! {
        #[test]
        fn a_bucket_that_holds_tokens_grants_no_more_than_these(capacity in 1u32..5_000, tokens in 0i64..5_000) {
            let bucket = TokenBucket::holding(tokens * TOKEN, capacity, at(3));
            let most = u32::try_from(tokens).unwrap().min(capacity);
            prop_assert_eq!(bucket.level(capacity, at(3)).tokens, most);
        }

        #[test]
        fn no_window_grants_more_than_the_burst_and_the_refill(
            capacity in 1u32..1_200, gaps in prop::collection::vec(0u64..2_000, 1..400),
        ) {
            let mut bucket = TokenBucket::default();
            let mut now = 0;
            let mut granted = Vec::new();
            for gap in gaps {
                now += gap;
                if let Some(taken) = bucket.take(capacity, at(now)) {
                    bucket = taken;
                    granted.push(now);
                }
            }
            for (first, start) in granted.iter().enumerate() {
                for (last, end) in granted.iter().enumerate().skip(first) {
                    let most = u64::from(capacity) * 60_000 + u64::from(capacity) * (end - start);
                    prop_assert!((last - first + 1) as u64 * 60_000 <= most);
                }
            }
        }

        #[test]
        fn a_bucket_of_any_capacity_grants_exactly_its_capacity_at_once(capacity in 1u32..5_000) {
            let mut bucket = TokenBucket::default();
            for left in (0..capacity).rev() {
                bucket = bucket.take(capacity, at(3)).unwrap();
                prop_assert_eq!(bucket.level(capacity, at(3)).tokens, left);
            }
            prop_assert_eq!(bucket.take(capacity, at(3)), None);
        }
    }
}
