//! Admission where gateways share minute limits: as on a single gateway, but with the tokens of this gateway's share.

use std::num::NonZeroU32;

use crate::clock::Now;

use super::decide::{AccountBalance, AdmissionVerdict, LeaseAvailability};
use super::minute_share::MinuteShare;
use super::rule::{LimitStatus, Limits};
use super::table::LimitRule;

impl AccountBalance {
    /// Decides on a request with the tokens of `share`, one of `gateways`.
    pub fn admit_with_share(
        self,
        share: &mut MinuteShare,
        gateways: NonZeroU32,
        limits: &Limits,
        now: Now,
        conditional: bool,
        ledger: LeaseAvailability,
    ) -> (Self, AdmissionVerdict) {
        let without_ledger = match ledger {
            LeaseAvailability::Reachable => None,
            LeaseAvailability::Unreachable { grace, since } => Some((grace, since)),
        };
        let is_unreachable = without_ledger.is_some();
        let fallback = without_ledger
            .and_then(|(_, since)| share.fall_back(limits.minute, gateways.get(), since, now.mono));
        let before = fallback.map_or(self, |tokens| self.with_share_tokens(tokens));
        let minute = share.capacity(limits.minute, now.mono, is_unreachable);
        let (after, verdict) =
            before.admit(&Limits { minute, ..*limits }, now, conditional, ledger);
        let verdict = match verdict {
            AdmissionVerdict::Refused(LimitRule::Minute)
                if is_unreachable && !share.admitted_all(limits.minute, now.mono) =>
            {
                let may_deliver = conditional || after.day.available(limits.day) > 0;
                let may_owe =
                    without_ledger.is_some_and(|(grace, _)| after.day.may_owe(limits.day, grace));
                if minute > 0 && (may_deliver || may_owe) {
                    let own = after.minute_status(&Limits { minute, ..*limits }, now);
                    AdmissionVerdict::NoToken { wait: own.wait }
                } else {
                    AdmissionVerdict::NoUnits
                }
            }
            AdmissionVerdict::Refused(rule) => {
                // A conditional request would be admitted with a token.
                let needs_token = rule == LimitRule::Minute || conditional;
                let may_grow = !is_unreachable && share.may_grow(now.mono);
                if needs_token && may_grow {
                    AdmissionVerdict::LeaseFirst
                } else {
                    verdict
                }
            }
            AdmissionVerdict::Admitted { day, runs_low } => {
                share.used(limits.minute, now.mono);
                let runs_low = runs_low || share.runs_low(after.share_tokens(), limits, now.mono);
                AdmissionVerdict::Admitted { day, runs_low }
            }
            AdmissionVerdict::RevalidateOnly(_)
            | AdmissionVerdict::RevalidateWithoutUnits
            | AdmissionVerdict::OnGrace { .. } => {
                share.used(limits.minute, now.mono);
                verdict
            }
            AdmissionVerdict::LeaseFirst
            | AdmissionVerdict::ReserveFirst
            | AdmissionVerdict::NoUnits
            | AdmissionVerdict::NoToken { .. } => verdict,
        };
        (after, verdict)
    }

    /// Status of the minute: of the tokens of `share`, and of those elsewhere as far as known.
    pub fn shared_minute_status(
        self,
        share: &MinuteShare,
        limits: &Limits,
        now: Now,
    ) -> LimitStatus {
        let minute = share.capacity(limits.minute, now.mono, share.is_fallback());
        let own = self.minute_status(&Limits { minute, ..*limits }, now);
        let (elsewhere, full_in) = share.elsewhere(limits.minute, now.mono);
        let full_in = own.full_in.max(full_in);
        LimitStatus {
            limit: limits.minute,
            remaining: own.remaining.saturating_add(elsewhere).min(limits.minute),
            reset: now.wall.plus(full_in).rounded_up(),
            full_in,
            wait: own.wait.min(share.until_growth(now.mono)),
            ..own
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Day, Mono, Wall};
    use crate::limits::minute_pool::MinutePool;
    use crate::limits::minute_report::MinuteGrant;
    use crate::limits::minute_share::ShareTokens;
    use crate::limits::window::CalendarLimits;
    use std::time::Duration;

    const PRO: Limits = Limits {
        minute: 60,
        day: 10_000,
        guard: 60,
        grace: 100,
        calendar: CalendarLimits::NONE,
    };
    const THREE: NonZeroU32 = NonZeroU32::new(3).unwrap();

    fn at(seconds: u64) -> Now {
        let mono = Mono::from_nanos(1_000_000_000).plus(Duration::from_secs(seconds));
        Now {
            wall: Wall::from_seconds(1_763_726_400 + seconds),
            mono,
        }
    }

    fn opened(units: u32) -> AccountBalance {
        let day: Day = at(0).wall.day();
        let mut balance = AccountBalance::opened(&PRO, day, 0);
        balance.day = balance.day.grant(day, units, 0, units.into());
        balance
    }

    fn shared(balance: AccountBalance, share: &mut MinuteShare) -> AccountBalance {
        let now = at(0).mono;
        let (tokens, report) = share.report(balance.share_tokens(), &PRO, 3, now);
        let grant = MinutePool::new(60, 0).apply(1, &report, 0);
        balance.with_share_tokens(share.apply(tokens, &report, &grant, now, now))
    }

    #[test]
    fn a_share_is_leased_with_the_first_request_and_reported_with_the_tokens_elsewhere() {
        let mut share = MinuteShare::default();
        let reachable = LeaseAvailability::Reachable;
        let (balance, verdict) =
            opened(5).admit_with_share(&mut share, THREE, &PRO, at(0), false, reachable);
        assert_eq!(verdict, AdmissionVerdict::LeaseFirst);
        assert_eq!(
            balance.shared_minute_status(&share, &PRO, at(0)).remaining,
            60
        );
        let balance = shared(balance, &mut share);
        let (balance, verdict) =
            balance.admit_with_share(&mut share, THREE, &PRO, at(0), false, reachable);
        assert!(
            matches!(verdict, AdmissionVerdict::Admitted { .. }),
            "{verdict:?}"
        );
        let status = balance.shared_minute_status(&share, &PRO, at(0));
        assert_eq!(
            (status.limit, status.remaining, status.wait),
            (60, 59, Duration::ZERO)
        );
        assert_eq!(
            status.full_in,
            Duration::from_secs(3),
            "a third of the limit refills a third as fast"
        );
    }

    #[test]
    fn a_conditional_request_of_a_used_up_day_gets_a_share_first() {
        let mut share = MinuteShare::default();
        let reachable = LeaseAvailability::Reachable;
        let spent = AccountBalance::opened(&PRO, at(0).wall.day(), 10_000);
        let decide = |balance: AccountBalance, share: &mut MinuteShare, conditional| {
            balance
                .admit_with_share(share, THREE, &PRO, at(0), conditional, reachable)
                .1
        };
        assert_eq!(
            decide(spent, &mut share, false),
            AdmissionVerdict::Refused(LimitRule::Day)
        );
        assert_eq!(
            decide(spent, &mut share, true),
            AdmissionVerdict::LeaseFirst
        );
        let spent = shared(spent, &mut share);
        assert_eq!(
            decide(spent, &mut share, true),
            AdmissionVerdict::RevalidateOnly(LimitRule::Day)
        );
    }

    #[test]
    fn without_the_ledger_a_fixed_part_is_used_that_starts_empty() {
        let mut share = MinuteShare::default();
        let unreachable = LeaseAvailability::Unreachable {
            grace: 0,
            since: at(0).mono,
        };
        let (balance, verdict) =
            opened(5).admit_with_share(&mut share, THREE, &PRO, at(0), false, unreachable);
        assert_eq!(
            verdict,
            AdmissionVerdict::NoToken {
                wait: Duration::from_secs(3)
            }
        );
        assert_eq!(
            balance.shared_minute_status(&share, &PRO, at(0)).wait,
            Duration::from_secs(3)
        );
        let without_units = AccountBalance::opened(&PRO, at(0).wall.day(), 0);
        let decide = |conditional| {
            let mut share = MinuteShare::default();
            without_units
                .admit_with_share(&mut share, THREE, &PRO, at(0), conditional, unreachable)
                .1
        };
        assert_eq!(
            decide(false),
            AdmissionVerdict::NoUnits,
            "a token would not help"
        );
        assert_eq!(
            decide(true),
            AdmissionVerdict::NoToken {
                wait: Duration::from_secs(3)
            }
        );
        let (_, verdict) =
            balance.admit_with_share(&mut share, THREE, &PRO, at(3), false, unreachable);
        assert!(
            matches!(verdict, AdmissionVerdict::Admitted { .. }),
            "{verdict:?}"
        );
        let many = NonZeroU32::new(100).unwrap();
        let (_, verdict) = opened(5).admit_with_share(
            &mut MinuteShare::default(),
            many,
            &PRO,
            at(0),
            false,
            unreachable,
        );
        assert_eq!(verdict, AdmissionVerdict::NoUnits);
    }

    #[test]
    fn without_the_ledger_the_limit_is_used_up_only_if_all_of_it_was_admitted_here() {
        let unreachable = LeaseAvailability::Unreachable {
            grace: 0,
            since: at(0).mono,
        };
        for (capacity, expected) in [
            (60, AdmissionVerdict::Refused(LimitRule::Minute)),
            (
                59,
                AdmissionVerdict::NoToken {
                    wait: Duration::from_nanos(60_000_000_000u64.div_ceil(59)),
                },
            ),
        ] {
            let mut share = MinuteShare::default();
            let now = at(0).mono;
            let (tokens, report) = share.report(ShareTokens::default(), &PRO, 3, now);
            let grant = MinuteGrant {
                round: report.round,
                is_kept: true,
                capacity,
                tokens: i64::from(capacity) * 1_000_000,
                pool_capacity: 60 - capacity,
                pool_tokens: 0,
            };
            let mut balance =
                opened(100).with_share_tokens(share.apply(tokens, &report, &grant, now, now));
            for _ in 0..capacity {
                let admitted =
                    balance.admit_with_share(&mut share, THREE, &PRO, at(0), false, unreachable);
                assert!(
                    matches!(admitted.1, AdmissionVerdict::Admitted { .. }),
                    "{:?}",
                    admitted.1
                );
                balance = admitted.0;
            }
            let refused =
                balance.admit_with_share(&mut share, THREE, &PRO, at(0), false, unreachable);
            assert_eq!(refused, (balance, expected), "nothing is taken");
        }
    }
}
