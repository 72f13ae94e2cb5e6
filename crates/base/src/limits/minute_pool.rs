//! A model of the pool that `minute_report` describes: random reports must have the same replies from it and from an
//! engine.

use std::collections::BTreeMap;

use super::bucket::TOKEN;
use super::minute_report::{MinuteGrant, MinuteReport};

const MINUTE_MICROS: i64 = 60_000_000;

/// The pool of one application and the shares taken from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinutePool {
    limit: u32,
    /// Content of the pool at `as_of`, in millionths of a token. Negative if shares hold more than a lowered limit allows.
    tokens: i64,
    /// In microseconds.
    as_of: i64,
    shares: BTreeMap<u64, GrantedShare>,
}

/// The share of one gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GrantedShare {
    round: u32,
    capacity: u32,
    /// In microseconds.
    ends_at: i64,
    is_recalled: bool,
}

impl MinutePool {
    /// A full pool without shares.
    pub fn new(limit: u32, now: i64) -> Self {
        Self {
            limit,
            tokens: i64::from(limit) * TOKEN,
            as_of: now,
            shares: BTreeMap::new(),
        }
    }

    /// Applies a report of a node at `now`, in microseconds.
    pub fn apply(&mut self, node: u64, report: &MinuteReport, now: i64) -> MinuteGrant {
        let own = self
            .shares
            .get(&node)
            .copied()
            .filter(|share| share.ends_at > now);
        if let Some(newer) = own.filter(|share| share.round >= report.round) {
            return MinuteGrant {
                round: newer.round,
                ..MinuteGrant::default()
            };
        }
        let mut tokens = self.refilled(now);
        self.shares.retain(|_, share| share.ends_at > now);
        let held = own.map_or(0, |share| share.capacity);
        let kept = report.kept.min(held);
        let returned = report.returned.min(i64::from(held - kept) * TOKEN);
        let elsewhere = self.capacity_of_shares() - i64::from(held);
        // After the limit was lowered, the pool owes at most what shares can hold.
        let [least_before, least] =
            [elsewhere + i64::from(held), elsewhere].map(|shares| -shares * TOKEN);
        let raised = i64::from(report.limit) - i64::from(self.limit);
        tokens = tokens.saturating_add(raised * TOKEN).max(least_before);
        let free = (i64::from(report.limit) - elsewhere - i64::from(kept)).max(0);
        tokens = tokens.saturating_add(returned).clamp(least, free * TOKEN);

        let more = i64::from(report.wanted.saturating_sub(kept)).min(free);
        let granted = tokens.clamp(0, more * TOKEN);
        let pool_capacity = free - more;
        tokens = (tokens - granted).min(pool_capacity * TOKEN);
        let capacity = kept.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));

        if report.recalls && granted < TOKEN {
            self.shares
                .values_mut()
                .for_each(|share| share.is_recalled |= share.capacity > 0);
        }
        let ends_at = now.saturating_add(report.lifetime.into());
        let share = GrantedShare {
            round: report.round,
            capacity,
            ends_at,
            is_recalled: false,
        };
        self.shares.insert(node, share);
        (self.limit, self.tokens, self.as_of) = (report.limit, tokens, self.as_of.max(now));
        MinuteGrant {
            round: report.round,
            is_kept: own.is_some(),
            capacity,
            tokens: granted,
            pool_capacity: u32::try_from(pool_capacity).unwrap_or(u32::MAX),
            pool_tokens: tokens,
        }
    }

    /// Whether the share of a node was requested by another one.
    pub fn is_recalled(&self, node: u64, now: i64) -> bool {
        self.shares
            .get(&node)
            .is_some_and(|share| share.is_recalled && share.ends_at > now)
    }

    /// Content of the pool at `now`, with what shares gained that ended since.
    fn refilled(&self, now: i64) -> i64 {
        let gained = |capacity: i64, since: i64| {
            let micros = now.saturating_sub(since).clamp(0, MINUTE_MICROS);
            // Millionths of a token per microsecond: a sixtieth.
            capacity.saturating_mul(micros) / 60
        };
        let capacity = (i64::from(self.limit) - self.capacity_of_shares()).max(0);
        let pool = (self.tokens + gained(capacity, self.as_of)).min(capacity * TOKEN);
        let over = self.shares.values().filter(|share| share.ends_at <= now);
        over.fold(pool, |tokens, share| {
            tokens + gained(share.capacity.into(), share.ends_at)
        })
    }

    fn capacity_of_shares(&self) -> i64 {
        self.shares
            .values()
            .map(|share| i64::from(share.capacity))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;
    const TEN_SECONDS: u32 = 10_000_000;

    fn wants(round: u32, kept: u32, wanted: u32) -> MinuteReport {
        MinuteReport {
            round,
            kept,
            wanted,
            limit: 60,
            lifetime: TEN_SECONDS,
            ..MinuteReport::default()
        }
    }

    #[test]
    fn shares_and_pool_hold_the_tokens_of_one_bucket() {
        let mut pool = MinutePool::new(60, 0);
        let first = pool.apply(1, &wants(1, 0, 20), 0);
        assert_eq!(
            (first.capacity, first.tokens, first.pool_tokens),
            (20, 20 * TOKEN, 40 * TOKEN)
        );
        let second = pool.apply(2, &wants(1, 0, 100), 0);
        assert_eq!(
            (second.capacity, second.tokens, second.pool_capacity),
            (40, 40 * TOKEN, 0)
        );
        let third = pool.apply(3, &wants(1, 0, 20), 0);
        assert_eq!((third.capacity, third.tokens), (0, 0));
    }

    #[test]
    fn a_repeated_or_late_report_changes_nothing() {
        let mut pool = MinutePool::new(60, 0);
        pool.apply(1, &wants(2, 0, 20), 0);
        let before = pool.clone();
        for round in [1, 2] {
            assert_eq!(pool.apply(1, &wants(round, 0, 50), SECOND).round, 2);
        }
        assert_eq!(pool, before);
    }

    #[test]
    fn tokens_of_a_share_that_ended_count_as_spent() {
        let mut pool = MinutePool::new(60, 0);
        pool.apply(1, &wants(1, 0, 60), 0);
        let at_the_end = pool.apply(2, &wants(1, 0, 60), 10 * SECOND);
        assert_eq!((at_the_end.capacity, at_the_end.tokens), (60, 0));
        let late = pool.apply(1, &wants(2, 60, 60), 10 * SECOND);
        assert_eq!((late.is_kept, late.capacity), (false, 0));
    }

    #[test]
    fn a_share_that_ended_long_ago_is_full_again() {
        let mut pool = MinutePool::new(60, 0);
        pool.apply(1, &wants(1, 0, 60), 0);
        assert_eq!(
            pool.apply(2, &wants(1, 0, 1), 70 * SECOND).pool_tokens,
            59 * TOKEN
        );
    }

    #[test]
    fn returned_tokens_are_granted_again_and_spent_ones_are_not() {
        let mut pool = MinutePool::new(60, 0);
        pool.apply(1, &wants(1, 0, 60), 0);
        let returned = MinuteReport {
            returned: 25 * TOKEN,
            ..wants(2, 20, 20)
        };
        assert_eq!(pool.apply(1, &returned, 0).pool_tokens, 25 * TOKEN);
        let debt = MinuteReport {
            returned: -10 * TOKEN,
            ..wants(1, 0, 0)
        };
        assert_eq!(pool.apply(2, &debt, 0).pool_tokens, 15 * TOKEN);
    }

    #[test]
    fn other_shares_are_recalled_only_if_the_pool_is_empty() {
        let mut pool = MinutePool::new(60, 0);
        pool.apply(1, &wants(1, 0, 59), 0);
        let recalls = |round| MinuteReport {
            recalls: true,
            ..wants(round, 0, 1)
        };
        pool.apply(2, &recalls(1), 0);
        assert!(!pool.is_recalled(1, 0));
        pool.apply(2, &recalls(2), 0);
        assert!(
            pool.is_recalled(1, 0) && !pool.is_recalled(2, 0) && !pool.is_recalled(1, 10 * SECOND)
        );
        pool.apply(1, &wants(2, 20, 20), 0);
        assert!(!pool.is_recalled(1, 0));
    }

    #[test]
    fn a_changed_limit_keeps_what_was_used() {
        let mut pool = MinutePool::new(60, 0);
        pool.apply(
            1,
            &MinuteReport {
                returned: -40 * TOKEN,
                ..wants(1, 0, 0)
            },
            0,
        );
        let raised = pool.apply(
            1,
            &MinuteReport {
                limit: 120,
                ..wants(2, 0, 0)
            },
            0,
        );
        assert_eq!(raised.pool_tokens, 80 * TOKEN);
        let lowered = pool.apply(
            1,
            &MinuteReport {
                limit: 30,
                ..wants(3, 0, 0)
            },
            0,
        );
        assert_eq!((lowered.pool_tokens, lowered.pool_capacity), (0, 30));
    }

    #[test]
    fn after_a_lower_limit_tokens_that_shares_return_pay_what_the_pool_owes() {
        let mut pool = MinutePool::new(60, 0);
        pool.apply(1, &wants(1, 0, 20), 0);
        pool.apply(2, &wants(1, 0, 40), 0);
        // 15 of the tokens were used, so 15 of 30 are left; the other gateway holds all of its 40.
        let lower = |round, returned| MinuteReport {
            returned,
            limit: 30,
            ..wants(round, 0, 0)
        };
        let first = pool.apply(1, &lower(2, 5 * TOKEN), 0);
        assert_eq!(
            (first.tokens, first.pool_tokens, first.pool_capacity),
            (0, -25 * TOKEN, 0)
        );
        let second = pool.apply(2, &lower(2, 40 * TOKEN), 0);
        assert_eq!((second.pool_tokens, second.pool_capacity), (15 * TOKEN, 30));
    }
}
