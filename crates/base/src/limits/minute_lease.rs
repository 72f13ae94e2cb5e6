//! Tokens that a gateway leased from a minute limit shared by several gateways.
//!
//! ```text
//! no tokens ──request──▶ report(held, wanted) ──reply──▶ tokens in hand, or none until the pool has one (`ask_at`)
//! in hand ──a quarter of the chunk is left──▶ report in the background; the chunk doubles up to an equal part of the limit
//! in hand ──30 seconds unused──▶ all are returned; if all were used, this is reported after a second
//! no ledger ──▶ a separate bucket with an equal part of the limit, which begins with the tokens in hand
//! ```
//!
//! A request also needs a token in the bucket of its balance. That bucket has the whole limit and counts only the
//! requests that this gateway admitted. If it is empty, the limit is used up, regardless of other gateways.
//!
//! The code is pure. `minute_pool` has the rules of the ledger.

#[cfg(test)]
#[path = "minute_schedules.rs"]
mod schedules;
#[cfg(test)]
#[path = "tests_of_minute_lease.rs"]
mod tests;

use std::{num::NonZeroU32, time::Duration};

use crate::{
    clock::{Mono, Now},
    limits::{
        bucket::{BucketLevel, TOKEN, TokenBucket},
        decide::{AccountBalance, AdmissionVerdict, LeaseAvailability},
        minute_pool::{LIFETIME, MinuteGrant, MinuteReport},
        rule::{LimitStatus, Limits},
        table::LimitRule,
    },
};

/// The first chunk is the limit divided by this number.
const FIRST_CHUNK: u32 = 20;
/// A lease in use is renewed after this time.
const RENEW_AFTER: Duration = Duration::from_mins(1);
/// Tokens that were not used for this long are returned.
const IDLE: Duration = Duration::from_secs(30);
/// Time after which a report states that all tokens were used, if no report requests more tokens.
// Until this report, the ledger counts these tokens as held and does not refill them. A busy caller needs the next tokens sooner.
const ALL_USED: Duration = Duration::from_secs(1);
/// Minimum interval between reports that find no token.
// A limit of 1,200 refills a token every 50 ms. A caller above the limit does not need a report for each token.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// The tokens of one gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinuteLease {
    held: u32,
    /// Tokens that the ledger counts as held by this gateway, at least until the lease ends.
    leased: u32,
    ends_at: Mono,
    renew_at: Mono,
    /// Number of tokens that the gateway should hold after a report.
    chunk: u32,
    /// The earliest time of the next report, because the pool has no token until then.
    ask_at: Mono,
    used_at: Mono,
    /// Tokens in the pool and at other gateways, as of the last reply, refilled at the rate of the whole limit.
    elsewhere: TokenBucket,
    own_part: Option<OwnPart>,
}

/// A bucket with a part of the limit, used while the ledger is unreachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OwnPart {
    bucket: TokenBucket,
    capacity: u32,
    since: Mono,
}

impl OwnPart {
    fn level(self, now: Mono) -> BucketLevel {
        self.bucket.level(self.capacity, now)
    }

    /// Tokens that were refilled without a lease, rounded up.
    fn refilled(self, now: Mono) -> i64 {
        let minute = Duration::from_mins(1);
        let nanos = now.since(self.since).min(minute).as_nanos();
        let tokens = (nanos * u128::from(self.capacity)).div_ceil(minute.as_nanos());
        i64::try_from(tokens).unwrap_or(i64::MAX)
    }
}

impl MinuteLease {
    /// Whether a request that finds no token should send a report to the ledger.
    fn may_ask(&self, now: Mono) -> bool {
        now >= self.ask_at
    }

    /// Whether a report that is sent for another reason should also request tokens.
    pub fn is_due(&self, now: Mono) -> bool {
        let is_low = self.in_hand(now) <= self.chunk / 4;
        // This gateway's own part of the limit, which applied while the ledger was unreachable, is replaced with tokens from the ledger.
        let is_needed = is_low || now >= self.renew_at || self.own_part.is_some();
        is_needed && self.may_ask(now)
    }

    /// Whether to request tokens before a request needs them. Chunks of a single token are leased on demand.
    pub fn runs_low(&self, now: Mono) -> bool {
        self.chunk > 1 && self.is_due(now)
    }

    /// Whether the lease should end before it is used again: no token was granted or used for 30 seconds, or the last token was
    /// used at least a second ago.
    pub fn is_idle(&self, now: Mono) -> bool {
        let end = if self.held == 0 { ALL_USED } else { IDLE };
        self.is_leased(now) && now.since(self.used_at) >= end
    }

    /// Whether the ledger counts tokens as held by this gateway.
    pub fn is_leased(&self, now: Mono) -> bool {
        self.own_part.is_none() && self.leased > 0 && now < self.ends_at
    }

    /// Tokens in hand.
    fn in_hand(&self, now: Mono) -> u32 {
        match self.own_part {
            Some(own) => own.level(now).tokens,
            None if now < self.ends_at => self.held,
            None => 0,
        }
    }

    /// The report that requests a chunk.
    pub fn report(&mut self, limit: u32, gateways: NonZeroU32, now: Mono) -> MinuteReport {
        let in_hand = self.in_hand(now);
        self.chunk = self.next_chunk(in_hand, limit, gateways);
        let held = in_hand.min(self.chunk);
        let refilled = self.own_part.map_or(0, |own| own.refilled(now));
        self.holds(held);
        MinuteReport {
            held,
            returned: i64::from(in_hand - held) - refilled,
            wanted: self.chunk - held,
            unused_for: now.since(self.used_at),
            limit,
        }
    }

    /// The next chunk: doubled if few tokens are left, halved if most are left. It is at most the limit divided by the number of
    /// gateways, so that a gateway that can no longer reach the ledger holds no more than that.
    fn next_chunk(&self, in_hand: u32, limit: u32, gateways: NonZeroU32) -> u32 {
        let most = (limit / gateways).max(1);
        let first = (limit / FIRST_CHUNK).clamp(1, most);
        let next = if in_hand <= self.chunk / 4 {
            self.chunk.saturating_mul(2)
        } else if in_hand > self.chunk / 4 * 3 {
            self.chunk / 2
        } else {
            self.chunk
        };
        next.clamp(first, most)
    }

    /// Allows a report immediately, because the last reply may no longer match the tokens in the pool.
    pub fn ask_again(&mut self) {
        self.ask_at = Mono::default();
    }

    /// The report that ends the lease and returns the tokens in hand. `None` if there is no lease.
    pub fn release(&mut self, limit: u32, now: Mono) -> Option<MinuteReport> {
        if !self.is_leased(now) {
            return None;
        }
        let returned = self.held.into();
        self.holds(0);
        self.chunk /= 4;
        Some(MinuteReport {
            returned,
            unused_for: now.since(self.used_at),
            limit,
            ..MinuteReport::default()
        })
    }

    fn holds(&mut self, tokens: u32) {
        self.held = tokens;
        self.leased = tokens;
    }

    /// Applies the reply to a report that was created at `asked`.
    pub fn apply(&mut self, report: &MinuteReport, grant: &MinuteGrant, asked: Mono, now: Mono) {
        // Requests may have used tokens since the report, and a lease may have ended.
        let left = self.in_hand(now).min(report.held);
        self.own_part = None;
        self.held = left.saturating_add(grant.tokens);
        self.leased = report.held.saturating_add(grant.tokens);
        // The lifetime is measured from the report, not from the reply, so that the lease ends here before it ends in
        // the ledger.
        self.ends_at = asked.plus(LIFETIME);
        self.renew_at = asked.plus(RENEW_AFTER);
        self.elsewhere = TokenBucket::holding(grant.elsewhere, report.limit, now);
        self.ask_at = if grant.next.is_zero() {
            Mono::default()
        } else {
            now.plus(grant.next.max(ASK_EVERY))
        };
        if grant.tokens > 0 {
            // The waiting request will use the tokens shortly.
            self.used_at = now;
        }
    }

    /// Records that an admitted request cost nothing. If the ledger already counts the token as spent, it is lost.
    pub fn gave_back(&mut self) {
        if let Some(own) = &mut self.own_part {
            own.bucket = own.bucket.give_back(own.capacity);
        }
        self.held = self.leased.min(self.held.saturating_add(1));
    }

    /// Begins to use this gateway's equal part of the limit, because the ledger has been unreachable since `since`. The part
    /// starts with the tokens in hand, so the parts of all gateways together start with at most the tokens of one bucket.
    fn use_own_part(&mut self, limit: u32, gateways: NonZeroU32, since: Mono, now: Mono) {
        if self.own_part.is_some_and(|own| own.since >= since) {
            return;
        }
        let capacity = limit / gateways;
        let tokens = if self.is_leased(now) { self.held } else { 0 };
        let bucket = TokenBucket::holding(i64::from(tokens) * TOKEN, capacity, since);
        self.own_part = Some(OwnPart {
            bucket,
            capacity,
            since,
        });
        self.holds(0);
        self.ask_again();
    }

    /// Tokens that a request can use.
    fn usable(&self, ledger: LeaseAvailability, now: Mono) -> u32 {
        match (ledger, self.own_part) {
            // The next report replaces the part with tokens from the ledger.
            (LeaseAvailability::Reachable, Some(_)) => 0,
            (LeaseAvailability::Reachable, None) | (LeaseAvailability::Unreachable { .. }, _) => {
                self.in_hand(now)
            }
        }
    }

    /// Takes one of the usable tokens.
    fn take(&mut self, now: Mono) {
        self.used_at = now;
        match &mut self.own_part {
            Some(own) => own.bucket = own.bucket.take(own.capacity, now).unwrap_or(own.bucket),
            None => self.held = self.held.saturating_sub(1),
        }
    }

    /// The verdict on a request that has or may have a unit but finds no token.
    fn without_token(
        &self,
        verdict: AdmissionVerdict,
        ledger: LeaseAvailability,
        now: Mono,
    ) -> AdmissionVerdict {
        match (ledger, self.own_part, verdict) {
            (LeaseAvailability::Unreachable { .. }, Some(own), _) if own.capacity > 0 => {
                AdmissionVerdict::NoToken {
                    wait: own.level(now).token_in,
                }
            }
            (LeaseAvailability::Unreachable { .. }, ..) => AdmissionVerdict::NoUnits,
            (LeaseAvailability::Reachable, ..) if self.may_ask(now) => AdmissionVerdict::LeaseFirst,
            // Reports the used-up quota, because the caller has to wait longer for it than for a token.
            (LeaseAvailability::Reachable, _, AdmissionVerdict::RevalidateOnly(rule)) => {
                AdmissionVerdict::Refused(rule)
            }
            (LeaseAvailability::Reachable, ..) => AdmissionVerdict::Refused(LimitRule::Minute),
        }
    }

    /// Estimated time until the next token.
    fn until_token(&self, limit: u32, now: Mono) -> Duration {
        match self.own_part {
            Some(own) => own.level(now).token_in,
            None if self.in_hand(now) > 0 => Duration::ZERO,
            None => self
                .elsewhere
                .level(limit, now)
                .token_in
                .max(self.ask_at.since(now)),
        }
    }
}

impl AccountBalance {
    /// Decides on a request at one of several gateways, with the tokens that this gateway holds.
    pub fn admit_leased(
        self,
        lease: &mut MinuteLease,
        gateways: NonZeroU32,
        limits: &Limits,
        now: Now,
        conditional: bool,
        ledger: LeaseAvailability,
    ) -> (Self, AdmissionVerdict) {
        if let LeaseAvailability::Unreachable { since, .. } = ledger {
            lease.use_own_part(limits.minute, gateways, since, now.mono);
        }
        let (after, verdict) = self.admit(limits, now, conditional, ledger);
        let takes_token = match verdict {
            AdmissionVerdict::Refused(_)
            | AdmissionVerdict::NoUnits
            | AdmissionVerdict::NoToken { .. } => return (after, verdict),
            AdmissionVerdict::LeaseFirst | AdmissionVerdict::ReserveFirst => false,
            AdmissionVerdict::Admitted { .. }
            | AdmissionVerdict::OnGrace { .. }
            | AdmissionVerdict::RevalidateOnly(_)
            | AdmissionVerdict::RevalidateWithoutUnits => true,
        };
        if lease.usable(ledger, now.mono) == 0 {
            return (self, lease.without_token(verdict, ledger, now.mono));
        }
        if takes_token {
            lease.take(now.mono);
        }
        if let AdmissionVerdict::Admitted { day, runs_low } = verdict {
            let runs_low = runs_low || lease.runs_low(now.mono);
            return (after, AdmissionVerdict::Admitted { day, runs_low });
        }
        (after, verdict)
    }

    /// Status of the minute limit, based on the tokens in hand and the tokens known to be elsewhere.
    pub fn leased_minute_status(
        self,
        lease: &MinuteLease,
        limits: &Limits,
        now: Now,
    ) -> LimitStatus {
        let own = self.minute_status(limits, now);
        let elsewhere = lease.elsewhere.level(limits.minute, now.mono);
        let known = elsewhere.tokens.saturating_add(lease.in_hand(now.mono));
        let remaining = own.remaining.min(known);
        let missing = limits.minute.saturating_sub(remaining);
        let refill = Duration::from_mins(1) * missing / limits.minute.max(1);
        let full_in = own.full_in.max(refill);
        LimitStatus {
            remaining,
            reset: now.wall.plus(full_in).rounded_up(),
            full_in,
            wait: own.wait.max(lease.until_token(limits.minute, now.mono)),
            ..own
        }
    }
}
