//! Admission: a single decision that takes a minute token *and* holds a day unit, or takes neither.

use std::time::Duration;

use crate::clock::{Day, Mono, Now};

use super::{
    bucket::TokenBucket,
    lease::DayBalance,
    rule::{LimitStatus, Limits},
    table::LimitRule,
};

/// All balances of one application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountBalance {
    minute: TokenBucket,
    /// The capacity when `minute` was last used. If the capacity changes, the bucket is rebased.
    minute_capacity: u32,
    guard: TokenBucket,
    /// The units of the day.
    pub day: DayBalance,
}

/// The verdict on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionVerdict {
    /// A token is taken and a unit of `day` is held.
    Admitted {
        /// The day of the unit.
        day: Day,
        /// Whether to lease more units now.
        runs_low: bool,
    },
    /// A token is taken. This rule has no units left, so the request may only revalidate the caller's copy.
    RevalidateOnly(LimitRule),
    /// A token is taken. The ledger is unreachable, and no unit or grace is left, so the request may only revalidate
    /// the caller's copy.
    RevalidateWithoutUnits,
    /// Nothing is taken, because this rule is exhausted.
    Refused(LimitRule),
    /// Nothing is taken, because units must be leased first.
    LeaseFirst,
    /// A token is taken, and an unleased unit of `day` is held because the ledger is unreachable.
    OnGrace {
        /// The day of the unit.
        day: Day,
    },
    /// Nothing is taken. The ledger is unreachable, and units must be reserved before they are owed.
    ReserveFirst,
    /// Nothing is taken. The ledger is unreachable, and no unit or grace is left.
    NoUnits,
    /// Nothing is taken. The ledger is unreachable and this gateway has no token left for the minute, but the limit is not used
    /// up.
    NoToken {
        /// Time until the gateway's next token.
        wait: Duration,
    },
}

/// Whether more units can be leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAvailability {
    /// The ledger is not known to be unreachable.
    Reachable,
    /// The ledger is unreachable or cannot write.
    Unreachable {
        /// Units that may be owed to the ledger.
        grace: u32,
        /// The time from which each gateway uses only its part of a minute limit.
        since: Mono,
    },
}

impl AccountBalance {
    /// A new balance, based only on the units already granted for `day`.
    pub fn opened(limits: &Limits, day: Day, granted: u64) -> Self {
        Self {
            minute: TokenBucket::default(),
            minute_capacity: limits.minute,
            guard: TokenBucket::default(),
            day: DayBalance::opened(day, granted),
        }
    }

    /// The balance at `now` under `limits`, with the current day and the rebased minute.
    fn current(self, limits: &Limits, now: Now) -> Self {
        Self {
            minute: self
                .minute
                .rebase(self.minute_capacity, limits.minute, now.mono),
            minute_capacity: limits.minute,
            guard: self.guard,
            day: self.day.on(now.wall.day()),
        }
    }

    /// Decides on a request. A `conditional` request (with `If-None-Match`) may revalidate even when the day's units are used up.
    pub fn admit(
        self,
        limits: &Limits,
        now: Now,
        conditional: bool,
        ledger: LeaseAvailability,
    ) -> (Self, AdmissionVerdict) {
        let before = self.current(limits, now);
        let day_is_spent = before.day.remaining(limits.day) == 0;
        // If nothing is taken, only the day changes. Rebasing the minute's bucket to a smaller tier without using it would lose
        // usage recorded under a larger tier.
        let untouched = Self {
            day: before.day,
            ..self
        };
        let Some(minute) = before.minute.take(limits.minute, now.mono) else {
            // The day is reported, because the caller has to wait longer for it.
            let rule = if day_is_spent {
                LimitRule::Day
            } else {
                LimitRule::Minute
            };
            return (untouched, AdmissionVerdict::Refused(rule));
        };
        let taken = Self { minute, ..before };
        if day_is_spent {
            return if conditional {
                (taken, AdmissionVerdict::RevalidateOnly(LimitRule::Day))
            } else {
                (untouched, AdmissionVerdict::Refused(LimitRule::Day))
            };
        }
        if let Some(day) = before.day.hold(limits.day) {
            let runs_low = day.runs_low(limits.day);
            return (
                Self { day, ..taken },
                AdmissionVerdict::Admitted {
                    day: day.day(),
                    runs_low,
                },
            );
        }
        match ledger {
            LeaseAvailability::Reachable => (untouched, AdmissionVerdict::LeaseFirst),
            LeaseAvailability::Unreachable { grace, .. } => {
                match before.day.hold_on_grace(limits.day, grace) {
                    Some(day) => (
                        Self { day, ..taken },
                        AdmissionVerdict::OnGrace { day: day.day() },
                    ),
                    None if before.day.may_owe(limits.day, grace) => {
                        (untouched, AdmissionVerdict::ReserveFirst)
                    }
                    None if conditional => (taken, AdmissionVerdict::RevalidateWithoutUnits),
                    None => (untouched, AdmissionVerdict::NoUnits),
                }
            }
        }
    }

    /// Returns the minute token of a request that was admitted but cost nothing.
    pub fn give_back_token(self) -> Self {
        Self {
            minute: self.minute.give_back(self.minute_capacity),
            ..self
        }
    }

    /// Takes a token from the guard. `None` if no token is available.
    pub fn take_guard(self, limits: &Limits, now: Now) -> Option<Self> {
        self.guard
            .take(limits.guard, now.mono)
            .map(|guard| Self { guard, ..self })
    }

    /// Status of the minute.
    pub fn minute_status(self, limits: &Limits, now: Now) -> LimitStatus {
        let minute = self
            .minute
            .rebase(self.minute_capacity, limits.minute, now.mono);
        bucket_status(LimitRule::Minute, minute, limits.minute, now)
    }

    /// Status of the guard.
    pub fn guard_status(self, limits: &Limits, now: Now) -> LimitStatus {
        bucket_status(LimitRule::Guard, self.guard, limits.guard, now)
    }

    /// Status of the day.
    pub fn day_status(self, limits: &Limits, now: Now) -> LimitStatus {
        let day = self.day.on(now.wall.day());
        let remaining = day.remaining(limits.day);
        let reset = day.day().end();
        let wait = if remaining == 0 {
            reset.since(now.wall)
        } else {
            Duration::ZERO
        };
        LimitStatus {
            rule: LimitRule::Day,
            limit: limits.day,
            window_seconds: 86_400,
            remaining,
            reset,
            full_in: reset.since(now.wall),
            wait,
        }
    }

    /// Whether the balance equals a new balance, so that dropping it loses nothing.
    pub fn can_be_dropped(self, now: Now) -> bool {
        self.minute.is_full(now.mono)
            && self.guard.is_full(now.mono)
            && self.day.on(now.wall.day()).can_be_dropped()
    }
}

/// Status of a bucket at `now`.
pub fn bucket_status(rule: LimitRule, bucket: TokenBucket, limit: u32, now: Now) -> LimitStatus {
    let level = bucket.level(limit, now.mono);
    // The time is reported in whole seconds, and rounded up so that it is never too early.
    let reset = now.wall.plus(level.full_in).rounded_up();
    LimitStatus {
        rule,
        limit,
        window_seconds: 60,
        remaining: level.tokens,
        reset,
        full_in: level.full_in,
        wait: level.token_in,
    }
}

impl LimitStatus {
    /// Status of a bucket that belongs to no application, such as the guard of an address.
    pub fn of_bucket(rule: LimitRule, bucket: TokenBucket, limit: u32, now: Now) -> Self {
        bucket_status(rule, bucket, limit, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Wall;

    const FREE: Limits = Limits::FREE;
    const PRO: Limits = Limits::PRO;

    fn noon() -> Now {
        Now {
            wall: Wall::parse_rfc3339("2026-11-21T12:00:00Z").unwrap(),
            mono: Mono::from_nanos(1_000_000_000),
        }
    }

    fn after(now: Now, seconds: u64) -> Now {
        let by = Duration::from_secs(seconds);
        Now {
            wall: now.wall.plus(by),
            mono: now.mono.plus(by),
        }
    }

    fn opened(limits: &Limits, granted: u64) -> AccountBalance {
        AccountBalance::opened(limits, noon().wall.day(), granted)
    }

    const UNREACHABLE: LeaseAvailability = LeaseAvailability::Unreachable {
        grace: 0,
        since: Mono::from_nanos(0),
    };

    /// Admits a request at noon, with a reachable ledger.
    fn admitted(balance: AccountBalance, limits: &Limits) -> (AccountBalance, AdmissionVerdict) {
        balance.admit(limits, noon(), false, LeaseAvailability::Reachable)
    }

    /// Admits a conditional request at noon, with a reachable ledger.
    fn looked(balance: AccountBalance, limits: &Limits) -> (AccountBalance, AdmissionVerdict) {
        balance.admit(limits, noon(), true, LeaseAvailability::Reachable)
    }

    /// A balance with leased units.
    fn leased(limits: &Limits, units: u32) -> AccountBalance {
        let empty = opened(limits, 0);
        let today = noon().wall.day();
        AccountBalance {
            day: empty.day.grant(today, units, 0, units.into()),
            ..empty
        }
    }

    #[test]
    fn without_units_and_ledger_a_conditional_request_may_revalidate_and_costs_no_unit() {
        let empty = opened(&PRO, 0);
        assert_eq!(
            empty.admit(&PRO, noon(), false, UNREACHABLE),
            (empty, AdmissionVerdict::NoUnits)
        );
        let (revalidating, verdict) = empty.admit(&PRO, noon(), true, UNREACHABLE);
        assert_eq!(verdict, AdmissionVerdict::RevalidateWithoutUnits);
        assert_eq!(revalidating.minute_status(&PRO, noon()).remaining, 59);
        assert_eq!(revalidating.day, empty.day);
        let spent = opened(&PRO, 10_000);
        assert_eq!(
            spent.admit(&PRO, noon(), true, UNREACHABLE).1,
            AdmissionVerdict::RevalidateOnly(LimitRule::Day)
        );
    }

    #[test]
    fn admission_takes_a_token_and_holds_a_unit_or_takes_nothing() {
        let empty = opened(&FREE, 0);
        let (same, verdict) = admitted(empty, &FREE);
        assert_eq!((same, verdict), (empty, AdmissionVerdict::LeaseFirst));

        let (held, verdict) = admitted(leased(&FREE, 1), &FREE);
        assert_eq!(
            verdict,
            AdmissionVerdict::Admitted {
                day: noon().wall.day(),
                runs_low: false
            }
        );
        assert_eq!(held.minute_status(&FREE, noon()).remaining, 0);
        assert_eq!(held.day_status(&FREE, noon()).remaining, 9);
        assert_eq!(
            admitted(held, &FREE).1,
            AdmissionVerdict::Refused(LimitRule::Minute)
        );
    }

    #[test]
    fn if_both_rules_are_exhausted_the_day_is_reported() {
        let spent = opened(&FREE, 10);
        let refused = AdmissionVerdict::Refused(LimitRule::Day);
        let revalidates = AdmissionVerdict::RevalidateOnly(LimitRule::Day);
        assert_eq!(admitted(spent, &FREE).1, refused);
        let (looking, verdict) = looked(spent, &FREE);
        assert_eq!(verdict, revalidates);
        assert_eq!(looked(looking, &FREE).1, refused);
        assert_eq!(looked(looking.give_back_token(), &FREE).1, revalidates);
    }

    #[test]
    fn a_new_day_opens_with_the_whole_quota_and_resets_once() {
        let spent = opened(&FREE, 10);
        let tomorrow = after(noon(), 12 * 3600);
        assert_eq!(spent.day_status(&FREE, tomorrow).remaining, 10);
        assert_eq!(
            spent
                .admit(&FREE, tomorrow, false, LeaseAvailability::Reachable)
                .1,
            AdmissionVerdict::LeaseFirst
        );
        let status = spent.day_status(&FREE, noon());
        assert_eq!(status.reset.rfc3339(), "2026-11-22T00:00:00Z");
        assert_eq!(status.wait, Duration::from_hours(12));
    }

    #[test]
    fn tier_change_keeps_used_units() {
        let (used, _) = admitted(leased(&FREE, 10), &FREE);
        assert_eq!(used.minute_status(&PRO, noon()).remaining, 59);
        assert_eq!(used.day_status(&PRO, noon()).remaining, 9_999);
    }

    #[test]
    fn a_temporary_change_to_a_smaller_tier_refills_nothing() {
        let mut balance = leased(&PRO, 100);
        for _ in 0..41 {
            balance = admitted(balance, &PRO).0;
        }
        let (detour, verdict) = admitted(balance, &FREE);
        assert_eq!(verdict, AdmissionVerdict::Refused(LimitRule::Day));
        assert_eq!(detour.minute_status(&PRO, noon()).remaining, 19);
    }

    #[test]
    fn refused_request_reports_zero_remaining_after_later_returns() {
        let midnight = after(noon(), 12 * 3_600);
        let begun = after(noon(), 12 * 3_600 - 1);
        let last_moment = Now {
            wall: begun.wall.plus(Duration::from_millis(600)),
            mono: begun.mono.plus(Duration::from_millis(600)),
        };
        for (granted, refused, now, wait) in [
            (9, noon(), noon(), Duration::from_hours(12)),
            (10, noon(), midnight, Duration::ZERO),
            (10, last_moment, last_moment, Duration::from_millis(400)),
        ] {
            let status = opened(&FREE, granted).day_status(&FREE, now);
            let hit = status.as_hit(refused, now);
            assert_eq!(
                (hit.remaining, hit.reset, hit.wait),
                (0, midnight.wall, wait)
            );
        }
        let full = opened(&PRO, 0).minute_status(&PRO, noon());
        let hit = full.as_hit(noon(), noon());
        assert!(hit.remaining == 0 && hit.reset > noon().wall);
    }

    #[test]
    fn unreachable_ledger_uses_leased_units_then_grace() {
        let today = noon().wall.day();
        let mut balance = opened(&PRO, 0);
        balance.day = balance.day.grant(today, 1, 1, 1);
        let status = [(); 5].map(|()| {
            let (next, verdict) = balance.admit(
                &PRO,
                noon(),
                false,
                LeaseAvailability::Unreachable {
                    grace: 2,
                    since: Mono::default(),
                },
            );
            balance = next;
            if verdict == AdmissionVerdict::ReserveFirst {
                balance.day = balance.day.reserve(today, 3);
            }
            verdict
        });
        let expected = [
            AdmissionVerdict::Admitted {
                day: today,
                runs_low: true,
            },
            AdmissionVerdict::OnGrace { day: today },
            AdmissionVerdict::ReserveFirst,
            AdmissionVerdict::OnGrace { day: today },
            AdmissionVerdict::NoUnits,
        ];
        assert_eq!(status, expected);
        assert_eq!(balance.minute_status(&PRO, noon()).remaining, 57);
        assert_eq!(admitted(balance, &PRO).1, AdmissionVerdict::LeaseFirst);
        assert_eq!(
            opened(&FREE, 0).admit(&FREE, noon(), false, UNREACHABLE).1,
            AdmissionVerdict::NoUnits
        );
        assert_eq!(
            opened(&FREE, 10).admit(&FREE, noon(), false, UNREACHABLE).1,
            AdmissionVerdict::Refused(LimitRule::Day)
        );
    }

    #[test]
    fn the_reset_of_an_empty_bucket_is_in_the_future() {
        let mut balance = opened(&PRO, 0);
        for _ in 0..60 {
            balance = balance.take_guard(&PRO, noon()).unwrap();
        }
        assert_eq!(balance.take_guard(&PRO, noon()), None);
        let limit_status = balance.guard_status(&PRO, noon());
        assert_eq!(
            (limit_status.remaining, limit_status.wait),
            (0, Duration::from_secs(1))
        );
        assert!(limit_status.reset > noon().wall);
        assert!(!balance.can_be_dropped(noon()) && balance.can_be_dropped(after(noon(), 60)));
    }
}
