//! One gateway's share of a minute limit: how much capacity it requests, uses, keeps and returns.
//!
//! A share that is used up grows; an idle share is returned. Where daily units are leased one by
//! one, a share is a single token, exchanged with each unit. Without the ledger, the share in hand can be used to its
//! end, up to a fixed part of the limit, and then that part, which starts empty.
//!
//! Pure. The tokens are in the balance's bucket, whose capacity is that of the share. The rules of the ledger's side
//! are in `minute_report`.

#[cfg(test)]
#[path = "tests_of_minute_share.rs"]
mod tests;

use std::time::Duration;

use crate::clock::Mono;

use super::bucket::{TOKEN, TokenBucket};
use super::lease::largest_lease;
use super::minute_report::{MinuteGrant, MinuteReport};
use super::rule::Limits;

/// Bounds of the lifetime of a share.
const LIFETIME: [Duration; 2] = [Duration::from_secs(30), Duration::from_mins(4)];
/// Number of requests, at half the rate of the share, that its lifetime should cover.
const REQUESTS_PER_LIFETIME: u32 = 40;
/// A share without requests for this long is returned.
const IDLE: Duration = Duration::from_secs(30);
/// Minimum interval between recalls of other gateways' shares that brought nothing.
const RECALL_EVERY: Duration = Duration::from_secs(5);
/// Maximum interval between reports of a gateway without tokens while others have shares.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// One gateway's share of an application's minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinuteShare {
    capacity: u32,
    ends: Mono,
    /// In use, it is renewed from then on.
    renew_at: Mono,
    round: u32,
    is_fallback: bool,
    /// Without tokens, no report is sent before this.
    ask_at: Mono,
    recall_at: Mono,
    last_used: Mono,
    /// Requests admitted here, counted against the whole limit.
    admitted: ShareTokens,
    elsewhere: ElsewhereTokens,
}

/// An estimate of the tokens in the pool and in other shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ElsewhereTokens {
    bucket: TokenBucket,
    pool_capacity: u32,
    share_capacity: u32,
}

/// The tokens of a share: a bucket and the capacity that it was last used with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareTokens {
    /// The bucket.
    pub bucket: TokenBucket,
    /// Its capacity.
    pub capacity: u32,
}

impl ShareTokens {
    /// Millionths of a token under this capacity.
    fn micro_tokens(self, capacity: u32, now: Mono) -> i64 {
        if capacity == 0 || self.capacity == 0 {
            return 0;
        }
        self.bucket
            .rebase(self.capacity, capacity, now)
            .micro_tokens(capacity, now)
            .max(0)
    }

    fn holding(micro_tokens: i64, capacity: u32, now: Mono) -> Self {
        Self {
            bucket: TokenBucket::holding(micro_tokens, capacity, now),
            capacity,
        }
    }
}

impl MinuteShare {
    /// The capacity that can be used now. The fallback counts only while the ledger `is_unreachable`.
    pub fn capacity(&self, limit: u32, now: Mono, is_unreachable: bool) -> u32 {
        let is_usable = now < self.ends && (!self.is_fallback || is_unreachable);
        if is_usable {
            self.capacity.min(limit)
        } else {
            0
        }
    }

    /// Whether it is the part that is used because the ledger is unreachable.
    pub fn is_fallback(&self) -> bool {
        self.is_fallback
    }

    /// Whether it has capacity.
    pub fn is_held(&self, now: Mono) -> bool {
        self.capacity > 0 && now < self.ends && !self.is_fallback
    }

    /// Time until a report may bring tokens; without a limit if the ledger is unreachable.
    pub fn until_growth(&self, now: Mono) -> Duration {
        if self.is_fallback {
            Duration::MAX
        } else {
            self.ask_at.since(now)
        }
    }

    /// Records a request that was admitted.
    pub fn used(&mut self, limit: u32, now: Mono) {
        self.last_used = now;
        let bucket = self
            .admitted
            .bucket
            .rebase(self.admitted.capacity, limit, now);
        let bucket = bucket.take(limit, now).unwrap_or(bucket);
        self.admitted = ShareTokens {
            bucket,
            capacity: limit,
        };
    }

    /// Records that an admitted request cost nothing.
    pub fn gave_back(&mut self) {
        self.admitted.bucket = self.admitted.bucket.give_back(self.admitted.capacity);
    }

    /// Whether the requests admitted here use up the whole limit.
    pub fn admitted_all(&self, limit: u32, now: Mono) -> bool {
        let ShareTokens { bucket, capacity } = self.admitted;
        bucket
            .rebase(capacity, limit, now)
            .take(limit, now)
            .is_none()
    }

    /// Whether a report may bring tokens to a share without any.
    pub fn may_grow(&self, now: Mono) -> bool {
        now >= self.ask_at
    }

    /// Whether to renew or to enlarge the share before a request needs it.
    pub fn runs_low(&self, tokens: ShareTokens, limits: &Limits, now: Mono) -> bool {
        let is_old = now >= self.renew_at && self.capacity(limits.minute, now, false) > 0;
        let is_low = tokens.bucket.is_below_a_quarter(now);
        is_old || (is_low && self.can_grow(limits) && self.may_grow(now))
    }

    /// Whether a share of several tokens could be larger.
    fn can_grow(&self, limits: &Limits) -> bool {
        first_capacity(limits, 1) > 1 && self.elsewhere.pool_capacity > 0
    }

    /// Whether a report that is sent anyway should renew the share.
    pub fn is_due(&self, tokens: ShareTokens, limits: &Limits, now: Mono) -> bool {
        let capacity = self.capacity(limits.minute, now, false);
        let is_used_up = tokens.micro_tokens(capacity, now) < TOKEN;
        is_used_up || self.ends.since(now) < lifetime(capacity) / 2
    }

    /// Whether it has capacity and was neither granted nor used for 30 seconds.
    pub fn is_idle(&self, now: Mono) -> bool {
        self.is_held(now) && now.since(self.last_used) >= IDLE
    }

    /// Whether a recall may still bring tokens.
    pub fn awaits_recall(&self, tokens: ShareTokens, limit: u32, now: Mono) -> bool {
        let capacity = self.capacity(limit, now, false);
        tokens.micro_tokens(capacity, now) < TOKEN && self.elsewhere.share_capacity > 0
    }

    /// The next report: it renews the share, and enlarges it if its tokens run low. Also returns the tokens that can
    /// be used until the reply arrives.
    pub fn report(
        &mut self,
        tokens: ShareTokens,
        limits: &Limits,
        gateways: u32,
        now: Mono,
    ) -> (ShareTokens, MinuteReport) {
        let first = first_capacity(limits, gateways);
        let held = self.capacity(limits.minute, now, false);
        let left = tokens.micro_tokens(held, now);
        let is_used_up = left < TOKEN;
        let recalls = is_used_up && now >= self.recall_at;
        if self.is_fallback {
            // Its tokens may be spent until the reply arrives, so all of them count as spent.
            let spent = i64::from(self.capacity) * TOKEN;
            return (
                tokens,
                self.numbered(0, -spent, first, recalls, limits.minute),
            );
        }
        if is_used_up && first == 1 {
            return self.keeping(0, left, 1, recalls, limits.minute, now);
        }
        // Doubled, so that a busy gateway needs few reports to get the whole limit.
        let larger = first.max(held.saturating_mul(2)).min(limits.minute);
        let grows = is_used_up || (self.can_grow(limits) && is_low(left, held));
        let wanted = if grows { larger } else { held };
        self.keeping(held, left, wanted, recalls, limits.minute, now)
    }

    /// The report that returns the share: all of it, or half of it if it is in use. Also returns the tokens that are
    /// left.
    pub fn release(
        &mut self,
        tokens: ShareTokens,
        limit: u32,
        in_use: bool,
        now: Mono,
    ) -> (ShareTokens, MinuteReport) {
        let held = self.capacity(u32::MAX, now, false);
        let left = tokens.micro_tokens(held, now);
        if !in_use {
            return self.keeping(0, left, 0, false, limit, now);
        }
        let (tokens, report) = self.keeping(held / 2, left / 2, held / 2, false, limit, now);
        let kept = tokens.micro_tokens(held / 2, now);
        (
            tokens,
            MinuteReport {
                returned: left - kept,
                ..report
            },
        )
    }

    /// Keeps this capacity and as many tokens as fit, and reports the remainder of `left` as returned.
    fn keeping(
        &mut self,
        kept: u32,
        left: i64,
        wanted: u32,
        recalls: bool,
        limit: u32,
        now: Mono,
    ) -> (ShareTokens, MinuteReport) {
        let own = left.min(i64::from(kept) * TOKEN);
        self.capacity = kept;
        let report = self.numbered(kept, left - own, wanted, recalls, limit);
        (ShareTokens::holding(own, kept, now), report)
    }

    fn numbered(
        &mut self,
        kept: u32,
        returned: i64,
        wanted: u32,
        recalls: bool,
        limit: u32,
    ) -> MinuteReport {
        self.round = self.round.saturating_add(1);
        let lifetime = u32::try_from(lifetime(wanted).as_micros()).unwrap_or(u32::MAX);
        MinuteReport {
            round: self.round,
            kept,
            returned,
            wanted,
            limit,
            lifetime,
            recalls,
        }
    }

    /// Whether it was used within the last second.
    pub fn is_in_use(&self, now: Mono) -> bool {
        now.since(self.last_used) < ASK_EVERY
    }

    /// Applies the reply to a report that was made at `asked`. Returns the tokens of the share.
    pub fn apply(
        &mut self,
        tokens: ShareTokens,
        report: &MinuteReport,
        grant: &MinuteGrant,
        asked: Mono,
        now: Mono,
    ) -> ShareTokens {
        if grant.round != self.round {
            return tokens; // the reply to an earlier report
        }
        let kept = if grant.is_kept {
            self.capacity(report.limit, now, false)
        } else {
            0
        };
        let own = tokens.micro_tokens(kept, now).saturating_add(grant.tokens);
        let own = own.min(i64::from(grant.capacity) * TOKEN);
        let elsewhere = report.limit.saturating_sub(grant.capacity);
        let shares = elsewhere.saturating_sub(grant.pool_capacity);
        self.elsewhere = ElsewhereTokens {
            bucket: TokenBucket::holding(
                grant.pool_tokens + i64::from(shares) * TOKEN,
                elsewhere,
                now,
            ),
            pool_capacity: grant.pool_capacity,
            share_capacity: shares,
        };
        if report.kept == 0 && grant.capacity > 0 {
            // The request that waits for it uses it shortly.
            self.last_used = now;
        }
        (self.capacity, self.is_fallback) = (grant.capacity, false);
        let lifetime = Duration::from_micros(report.lifetime.into());
        // Counted from the report and not from the reply, so that the share ends here before it ends in the ledger. It is renewed
        // earlier, so that requests do not find it ended.
        (self.ends, self.renew_at) = (asked.plus(lifetime), asked.plus(lifetime / 6 * 5));
        if grant.tokens >= TOKEN {
            (self.ask_at, self.recall_at) = (Mono::default(), Mono::default());
        } else if own < TOKEN {
            self.ask_at = now.plus(until_a_token(own, grant, shares));
        }
        if report.recalls && grant.tokens < TOKEN {
            self.recall_at = now.plus(RECALL_EVERY);
        }
        ShareTokens::holding(own, grant.capacity, now)
    }

    /// Begins to use a fixed part of the limit because the ledger is unreachable and the share has ended. It is empty at the
    /// later of both times, from which it is refilled. `None` if there is a share or this part already.
    pub fn fall_back(
        &mut self,
        limit: u32,
        gateways: u32,
        since: Mono,
        now: Mono,
    ) -> Option<ShareTokens> {
        if self.capacity > 0 && now < self.ends {
            return None;
        }
        self.capacity = limit / gateways.max(1);
        let empty_at = self.ends.min(now).max(since);
        (self.is_fallback, self.ends) = (true, Mono::from_nanos(u64::MAX));
        Some(ShareTokens::holding(0, self.capacity, empty_at))
    }

    /// Reduces the share to a fixed part of the limit because the ledger is unreachable: other gateways begin to use
    /// theirs. Tokens that do not fit count as spent.
    pub fn reduce(
        &mut self,
        tokens: ShareTokens,
        limit: u32,
        gateways: u32,
        now: Mono,
    ) -> ShareTokens {
        let part = limit / gateways.max(1);
        let held = self.capacity(limit, now, false);
        if held <= part {
            return tokens;
        }
        self.capacity = part;
        let own = tokens.micro_tokens(held, now).min(i64::from(part) * TOKEN);
        ShareTokens::holding(own, part, now)
    }

    /// Tokens in the pool and in other shares, as far as known, and the time until all of them are refilled.
    pub fn elsewhere(&self, limit: u32, now: Mono) -> (u32, Duration) {
        let capacity = limit.saturating_sub(self.capacity);
        let known = self
            .elsewhere
            .pool_capacity
            .saturating_add(self.elsewhere.share_capacity);
        if known == 0 || capacity == 0 {
            return (if known == 0 { capacity } else { 0 }, Duration::ZERO);
        }
        let level = self.elsewhere.bucket.level(known, now);
        (level.tokens.min(capacity), level.full_in)
    }
}

#[cfg(test)]
impl MinuteShare {
    /// This share with another number of its newest report.
    pub(super) fn with_round(self, round: u32) -> Self {
        Self { round, ..self }
    }
}

/// The capacity of a first share: an equal part of the limit. Where units are leased one by one, a single token.
fn first_capacity(limits: &Limits, gateways: u32) -> u32 {
    limits
        .minute
        .div_ceil(gateways.max(1))
        .min(largest_lease(limits.day))
        .min(limits.minute)
        .max(1)
}

/// Whether so few tokens are left that the share should grow.
fn is_low(micro_tokens: i64, capacity: u32) -> bool {
    micro_tokens < i64::from(capacity) * TOKEN / 4
}

/// The lifetime of a share.
fn lifetime(capacity: u32) -> Duration {
    let [shortest, longest] = LIFETIME;
    (Duration::from_mins(2) * REQUESTS_PER_LIFETIME / capacity.max(1)).clamp(shortest, longest)
}

/// Time until share and pool together have a token.
fn until_a_token(own: i64, grant: &MinuteGrant, shares: u32) -> Duration {
    let missing = u64::try_from((TOKEN - own).saturating_sub(grant.pool_tokens)).unwrap_or(0);
    let rate = u64::from(grant.capacity) + u64::from(grant.pool_capacity);
    let micros = missing.saturating_mul(60).div_ceil(rate.max(1));
    let longest = if shares > 0 {
        ASK_EVERY
    } else {
        Duration::from_mins(1)
    };
    Duration::from_micros(micros).min(longest)
}
