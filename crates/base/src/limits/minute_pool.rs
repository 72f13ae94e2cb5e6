//! The minute limit of an application that several gateways share. It is one bucket, from which gateways lease tokens.
//!
//! The pool has the tokens that no gateway holds. It refills like the bucket, but never above the limit minus the held
//! tokens. A gateway spends the tokens that it holds without a call, so it never has more than the tokens of its last
//! report and grant. The pool and the gateways together therefore never have more tokens than one bucket would have:
//!
//! 1. Together they refill no faster than the bucket and only below its limit. Each admission takes a token of a
//!    gateway.
//! 2. A lease ends after [`LIFETIME`]. Tokens that were not returned by then count as spent. The gateway measures this time from
//!    before it sends its report, and the pool measures it from the decision, so the gateway stops first.
//! 3. Reports of a gateway are applied in order. A gateway has one call in flight per application, and the engine holds a lock on
//!    the pool from the read to the commit, so an abandoned call cannot change the pool later.
//! 4. If a report is applied twice or its reply is lost, only the granted tokens are lost.
//!
//! `minute_lease` has the rules of the gateway.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::limits::bucket::TOKEN;

/// The lifetime of a token lease.
// This is longer than the time until a lease in use is renewed plus the time until an unused lease is returned.
pub const LIFETIME: Duration = Duration::from_secs(100);
/// Delay before the next report while other gateways hold the whole limit. They return unused tokens within half a
/// minute.
const ALL_HELD: Duration = Duration::from_secs(1);

/// A gateway's report about its tokens from an application's minute limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinuteReport {
    /// Tokens that the gateway holds.
    pub held: u32,
    /// Tokens that the gateway returns to the pool. Negative for tokens that it may have spent without a lease.
    pub returned: i64,
    /// Tokens that the gateway requests in addition to the held tokens.
    pub wanted: u32,
    /// Time since the gateway last used a token.
    pub unused_for: Duration,
    /// The limit in force.
    pub limit: u32,
}

/// The reply to a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinuteGrant {
    /// Granted tokens.
    pub tokens: u32,
    /// Tokens that are left in the pool or held by other gateways, in millionths of a token.
    pub elsewhere: i64,
    /// Time until the pool has a token; zero if it has one now.
    pub next: Duration,
}

/// The pool of one application, in the form that is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinutePool {
    limit: u32,
    /// The content at `as_of`, in millionths of a token. It is negative if gateways hold more than a lowered limit
    /// allows.
    tokens: i64,
    /// The time in microseconds.
    as_of: i64,
    /// The leases by node.
    held: BTreeMap<u64, HeldTokens>,
}

/// The tokens of one gateway, as of its last report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct HeldTokens {
    tokens: u32,
    /// The time in microseconds.
    ends_at: i64,
}

impl MinutePool {
    /// A full pool.
    pub fn new(limit: u32, now: i64) -> Self {
        Self {
            limit,
            tokens: i64::from(limit) * TOKEN,
            as_of: now,
            held: BTreeMap::new(),
        }
    }

    /// The limit in the last report.
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// The time of the last use, in microseconds.
    pub const fn as_of(&self) -> i64 {
        self.as_of
    }

    /// Applies a node's report at `now`, in microseconds.
    pub fn apply(&mut self, node: u64, report: &MinuteReport, now: i64) -> MinuteGrant {
        self.count_used(node, report, now);
        self.refill(now);
        self.change_limit(report.limit);
        let known = self.held.remove(&node).map_or(0, |lease| lease.tokens);
        let elsewhere = self.held();
        let held = elsewhere + i64::from(report.held);
        // Returned tokens are limited to the known tokens that the node no longer holds, so that a return that is applied twice
        // counts once.
        let returned = report
            .returned
            .min(known.saturating_sub(report.held).into());
        let content = self.tokens.saturating_add(returned * TOKEN);
        self.tokens = content.clamp(-held * TOKEN, (i64::from(self.limit) - held) * TOKEN);
        let whole = u32::try_from(self.tokens / TOKEN).unwrap_or(0);
        let granted = report.wanted.min(whole);
        self.tokens -= i64::from(granted) * TOKEN;
        let lease = HeldTokens {
            tokens: report.held.saturating_add(granted),
            ends_at: now.saturating_add(micros(LIFETIME)),
        };
        if lease.tokens > 0 {
            self.held.insert(node, lease);
        }
        MinuteGrant {
            tokens: granted,
            elsewhere: self.tokens + elsewhere * TOKEN,
            next: self.until_token(),
        }
    }

    /// Records that a node's used tokens were spent at the time of its last use, so that the pool is refilled from then on.
    fn count_used(&mut self, node: u64, report: &MinuteReport, now: i64) {
        self.refill(now.saturating_sub(micros(report.unused_for)));
        let returned = u32::try_from(report.returned).unwrap_or(0);
        if let Some(lease) = self.held.get_mut(&node) {
            lease.tokens = lease.tokens.min(report.held.saturating_add(returned));
        }
    }

    /// Refills the pool until `now`. Capacity that a lease occupied is refilled from the end of the lease.
    fn refill(&mut self, now: i64) {
        let mut ended: Vec<(i64, u64)> = self
            .held
            .iter()
            .filter(|(_, held)| held.ends_at <= now)
            .map(|(node, held)| (held.ends_at, *node))
            .collect();
        ended.sort_unstable();
        for (at, node) in ended {
            self.refill_until(at);
            self.held.remove(&node);
        }
        self.refill_until(now);
    }

    fn refill_until(&mut self, at: i64) {
        // The clock may have been set back.
        let elapsed = at.saturating_sub(self.as_of).max(0);
        // A rate in tokens per second is the same number in millionths of a token per microsecond.
        let gained = i64::from(self.limit).saturating_mul(elapsed) / 60;
        self.tokens = self.tokens.saturating_add(gained).min(self.room());
        self.as_of = self.as_of.max(at);
    }

    /// Changes the limit. The number of used tokens stays the same. After the limit is lowered, the pool owes at most
    /// the held tokens.
    fn change_limit(&mut self, limit: u32) {
        let raised = i64::from(limit) - i64::from(self.limit);
        let least = -self.held() * TOKEN;
        self.tokens = self.tokens.saturating_add(raised * TOKEN).max(least);
        self.limit = limit;
    }

    fn until_token(&self) -> Duration {
        if self.room() < TOKEN {
            return ALL_HELD;
        }
        let missing = u64::try_from(TOKEN - self.tokens).unwrap_or(0);
        Duration::from_micros((missing * 60).div_ceil(u64::from(self.limit.max(1))))
    }

    /// The capacity of the pool in millionths of a token.
    fn room(&self) -> i64 {
        (i64::from(self.limit) - self.held()) * TOKEN
    }

    /// The tokens held by all gateways.
    fn held(&self) -> i64 {
        self.held.values().map(|held| i64::from(held.tokens)).sum()
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use crate::limits::minute_pool::*;

    const SECOND: i64 = 1_000_000;

    fn wants(wanted: u32) -> MinuteReport {
        MinuteReport {
            wanted,
            limit: 60,
            ..MinuteReport::default()
        }
    }

    /// A pool of 60 tokens, of which two gateways hold `first` and `second`.
    fn leased(first: u32, second: u32) -> MinutePool {
        let mut pool = MinutePool::new(60, 0);
        assert_eq!(pool.apply(1, &wants(first), 0).tokens, first);
        assert_eq!(pool.apply(2, &wants(second), 0).tokens, second);
        pool
    }

    #[test]
    fn gateways_and_pool_have_the_tokens_of_one_bucket() {
        let mut pool = leased(20, 30);
        let rest = pool.apply(3, &wants(100), 0);
        assert_eq!((rest.tokens, rest.elsewhere), (10, 50 * TOKEN));
        assert_eq!(rest.next, ALL_HELD);
        assert_eq!(pool.apply(4, &wants(1), 10 * SECOND).tokens, 0);
    }

    #[test]
    fn the_pool_refills_the_tokens_that_a_report_says_were_spent() {
        let mut pool = leased(40, 20);
        let report = MinuteReport {
            held: 10,
            ..wants(0)
        };
        assert_eq!(pool.apply(1, &report, 0).next, Duration::from_secs(1));
        assert_eq!(pool.apply(3, &wants(60), 12 * SECOND).tokens, 12);
        let rest = pool.apply(
            3,
            &MinuteReport {
                held: 12,
                ..wants(60)
            },
            99 * SECOND,
        );
        assert_eq!(rest.tokens, 18, "42 of 60 tokens are held");
    }

    #[test]
    fn room_refills_from_the_last_use_of_a_token() {
        let mut pool = leased(60, 0);
        let report = MinuteReport {
            held: 20,
            unused_for: Duration::from_secs(7),
            ..wants(40)
        };
        assert_eq!(pool.apply(1, &report, 30 * SECOND).tokens, 7);
    }

    #[test]
    fn tokens_of_a_lease_that_ended_count_as_spent_at_its_end() {
        let end = micros(LIFETIME);
        assert_eq!(leased(60, 0).apply(2, &wants(60), end).tokens, 0);
        assert_eq!(
            leased(60, 0).apply(2, &wants(60), end + 7 * SECOND).tokens,
            7
        );
        assert_eq!(
            leased(60, 0).apply(2, &wants(60), end + 80 * SECOND).tokens,
            60
        );
    }

    #[test]
    fn returned_tokens_are_granted_again_and_those_spent_without_a_lease_are_not() {
        let mut pool = leased(60, 0);
        let back = MinuteReport {
            returned: 25,
            ..wants(0)
        };
        assert_eq!(pool.apply(1, &back, 0).elsewhere, 25 * TOKEN);
        let spent = MinuteReport {
            returned: -10,
            ..wants(0)
        };
        assert_eq!(pool.apply(2, &spent, 0).elsewhere, 15 * TOKEN);
    }

    fn changed(limit: u32) -> MinuteReport {
        MinuteReport { limit, ..wants(0) }
    }

    #[test]
    fn a_changed_limit_keeps_the_tokens_that_were_used() {
        let mut pool = leased(40, 0);
        assert_eq!(pool.apply(1, &changed(120), 0).elsewhere, 80 * TOKEN);
        assert_eq!(pool.apply(1, &changed(30), 0).elsewhere, 0);
    }

    #[test]
    fn after_a_lower_limit_tokens_that_gateways_return_pay_the_tokens_that_the_pool_owes() {
        let mut pool = leased(20, 40);
        // 15 of the tokens were used, so 15 of 30 are left. The other gateway still holds all of its 40.
        let first = MinuteReport {
            returned: 5,
            ..changed(30)
        };
        assert_eq!(pool.apply(1, &first, 0).elsewhere, 15 * TOKEN);
        let more = MinuteReport {
            wanted: 9,
            ..changed(30)
        };
        assert_eq!(pool.apply(1, &more, 0).tokens, 0);
        let second = MinuteReport {
            returned: 40,
            ..changed(30)
        };
        assert_eq!(pool.apply(2, &second, 0).elsewhere, 15 * TOKEN);
    }

    #[test]
    fn a_clock_that_is_set_back_refills_nothing() {
        let mut pool = leased(60, 0);
        assert_eq!(pool.apply(1, &wants(9), -50 * SECOND).tokens, 0);
        assert_eq!(pool.apply(1, &wants(9), 3 * SECOND).tokens, 3);
    }
}
