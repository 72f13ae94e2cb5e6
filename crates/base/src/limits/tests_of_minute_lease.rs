//! Tests a gateway's minute tokens, its calls to a pool, and its verdicts on requests.

use crate::{
    clock::{Day, Wall},
    limits::{minute_lease::*, minute_pool::MinutePool, window::CalendarLimits},
};

const FREE: Limits = Limits {
    minute: 1,
    day: 10,
    guard: 60,
    grace: 0,
    calendar: CalendarLimits::NONE,
};
const PRO: Limits = Limits {
    minute: 60,
    day: 10_000,
    guard: 60,
    grace: 100,
    calendar: CalendarLimits::NONE,
};
const ENTERPRISE: Limits = Limits {
    minute: 1_200,
    day: 250_000,
    guard: 60,
    grace: 2_500,
    calendar: CalendarLimits::NONE,
};
const THREE: NonZeroU32 = NonZeroU32::new(3).unwrap();
const REACHABLE: LeaseAvailability = LeaseAvailability::Reachable;

fn at(millis: u64) -> Now {
    let since = Duration::from_millis(millis);
    Now {
        wall: Wall::from_seconds(1_763_726_400).plus(since),
        mono: Mono::from_nanos(1_000_000_000).plus(since),
    }
}

fn micros(now: Now) -> i64 {
    i64::try_from(now.mono.nanos() / 1_000).unwrap()
}

fn pool(limits: &Limits) -> MinutePool {
    MinutePool::new(limits.minute, micros(at(0)))
}

fn lost(since: Now) -> LeaseAvailability {
    LeaseAvailability::Unreachable {
        grace: 0,
        since: since.mono,
    }
}

/// A gateway with many units of the day.
struct TestGateway {
    id: u64,
    lease: MinuteLease,
    balance: AccountBalance,
    calls: u32,
    waits: u32,
}

impl TestGateway {
    fn new(id: u64, limits: &Limits) -> Self {
        let day: Day = at(0).wall.day();
        let mut balance = AccountBalance::opened(limits, day, 0);
        balance.day = balance.day.grant(day, limits.day, 0, limits.day.into());
        Self {
            id,
            lease: MinuteLease::default(),
            balance,
            calls: 0,
            waits: 0,
        }
    }

    fn decide(
        &mut self,
        limits: &Limits,
        now: Now,
        conditional: bool,
        ledger: LeaseAvailability,
    ) -> AdmissionVerdict {
        let (balance, verdict) =
            self.balance
                .admit_leased(&mut self.lease, THREE, limits, now, conditional, ledger);
        self.balance = balance;
        verdict
    }

    fn ask(&mut self, pool: &mut MinutePool, limits: &Limits, now: Now) {
        let report = self.lease.report(limits.minute, THREE, now.mono);
        self.send(pool, &report, now);
    }

    fn send(&mut self, pool: &mut MinutePool, report: &MinuteReport, now: Now) {
        let grant = pool.apply(self.id, report, micros(now));
        self.lease.apply(report, &grant, now.mono, now.mono);
        self.calls += 1;
    }

    /// Returns unused tokens and reports used tokens.
    fn tidy(&mut self, pool: &mut MinutePool, limits: &Limits, now: Now) {
        if self.lease.is_idle(now.mono) {
            let report = self.lease.release(limits.minute, now.mono).unwrap();
            self.send(pool, &report, now);
        }
    }

    /// A request, including the calls that it waits for and starts.
    fn request(&mut self, pool: &mut MinutePool, limits: &Limits, now: Now) -> bool {
        let mut verdict = self.decide(limits, now, false, REACHABLE);
        if verdict == AdmissionVerdict::LeaseFirst {
            self.ask(pool, limits, now);
            self.waits += 1;
            verdict = self.decide(limits, now, false, REACHABLE);
        }
        let AdmissionVerdict::Admitted { day, .. } = verdict else {
            return false;
        };
        self.balance.day = self.balance.day.settle(day, false);
        if self.lease.runs_low(now.mono) {
            self.ask(pool, limits, now);
        }
        true
    }

    /// The number of admitted requests, out of twice the limit.
    fn burst(&mut self, pool: &mut MinutePool, limits: &Limits, now: Now) -> u32 {
        (0..2 * limits.minute)
            .map(|_| u32::from(self.request(pool, limits, now)))
            .sum()
    }
}

#[test]
fn one_gateway_serves_the_whole_limit_at_once() {
    for limits in [FREE, PRO, ENTERPRISE] {
        let mut pool = pool(&limits);
        let mut gateway = TestGateway::new(1, &limits);
        assert_eq!(gateway.burst(&mut pool, &limits, at(0)), limits.minute);
        assert!(gateway.calls <= 8, "{}", gateway.calls);
    }
}

/// Results for a caller that sends requests to random gateways, compared with one bucket.
#[derive(Clone, Copy, Debug, Default)]
struct CallerFigures {
    requests: u32,
    admitted: u32,
    violations: u32,
    calls: u32,
    waits: u32,
    /// Refused requests for which the bucket had a token.
    wrongly_refused: u32,
}

/// Ten hours of requests in a Poisson process at this fraction of the limit.
fn ten_hours(limits: &Limits, load: f64) -> CallerFigures {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut uniform = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        f64::from(u32::try_from(random >> 32).unwrap()) / f64::from(u32::MAX)
    };
    let mut pool = pool(limits);
    let mut gateways = [1, 2, 3].map(|id| TestGateway::new(id, limits));
    let mut figures = CallerFigures::default();
    let mut whole = TokenBucket::default();
    let mean = 60.0 / (f64::from(limits.minute) * load);
    let mut seconds = 0.0;
    let mut tidied = 0.0;
    loop {
        seconds -= uniform().max(1e-9).ln() * mean;
        if seconds > 36_000.0 {
            break;
        }
        let now = Duration::from_secs_f64(seconds);
        let now = at(u64::try_from(now.as_millis()).unwrap());
        if seconds > tidied + 1.0 {
            tidied = seconds;
            for gateway in &mut gateways {
                gateway.tidy(&mut pool, limits, now);
            }
        }
        let third = uniform() * 3.0;
        let chosen = usize::from(third >= 1.0) + usize::from(third >= 2.0);
        let is_admitted = gateways[chosen].request(&mut pool, limits, now);
        let taken = whole.take(limits.minute, now.mono);
        figures.requests += 1;
        figures.admitted += u32::from(is_admitted);
        match (is_admitted, taken) {
            (true, Some(taken)) => whole = taken,
            (true, None) => figures.violations += 1,
            (false, Some(_)) => figures.wrongly_refused += 1,
            (false, None) => {}
        }
    }
    figures.calls = gateways.iter().map(|gateway| gateway.calls).sum();
    figures.waits = gateways.iter().map(|gateway| gateway.waits).sum();
    figures
}

#[test]
fn a_caller_that_changes_gateways_needs_few_calls_and_gets_what_one_bucket_gives() {
    for (limits, requests_per_call) in [(PRO, 7), (ENTERPRISE, 100)] {
        let found = ten_hours(&limits, 0.5);
        assert_eq!(found.violations, 0, "{found:?}");
        assert!(
            found.calls * requests_per_call <= found.requests,
            "{found:?}"
        );
        assert!(found.waits * 100 <= found.requests, "{found:?}");
        assert!(found.wrongly_refused * 1_000 <= found.requests, "{found:?}");
    }
}

#[test]
fn above_the_limit_gateways_ask_at_most_twice_a_second_and_admit_nearly_the_whole_limit() {
    for limits in [PRO, ENTERPRISE] {
        let found = ten_hours(&limits, 2.0);
        assert_eq!(found.violations, 0, "{found:?}");
        assert!(found.calls <= 3 * 3 * 36_000, "{found:?}");
        assert!(
            found.admitted * 100 >= limits.minute * 600 * 95,
            "{found:?}"
        );
    }
}

#[test]
fn unused_tokens_are_returned_after_half_a_minute_and_another_gateway_gets_them() {
    let mut pool = pool(&PRO);
    let mut gateways = [1, 2].map(|id| TestGateway::new(id, &PRO));
    assert_eq!(gateways[0].burst(&mut pool, &PRO, at(0)), 60);
    // One token of a chunk is used.
    assert!(gateways[0].request(&mut pool, &PRO, at(20_000)));
    let held = gateways[0].lease.held;
    assert!(held > 0);
    gateways[0].tidy(&mut pool, &PRO, at(49_999));
    assert_eq!(gateways[0].lease.held, held);
    gateways[0].tidy(&mut pool, &PRO, at(50_000));
    assert_eq!(gateways[0].lease.held, 0);
    assert_eq!(gateways[1].burst(&mut pool, &PRO, at(50_000)), 49);
}

#[test]
fn a_gateway_without_tokens_refuses_until_the_pool_has_one() {
    let mut pool = pool(&FREE);
    let mut gateways = [1, 2].map(|id| TestGateway::new(id, &FREE));
    assert!(gateways[0].request(&mut pool, &FREE, at(0)));
    gateways[0].tidy(&mut pool, &FREE, at(1_000));
    assert!(!gateways[1].request(&mut pool, &FREE, at(10_000)));
    let refusal = AdmissionVerdict::Refused(LimitRule::Minute);
    let other = &mut gateways[1];
    assert_eq!(other.decide(&FREE, at(59_999), false, REACHABLE), refusal);
    let status = other
        .balance
        .leased_minute_status(&other.lease, &FREE, at(20_000));
    assert_eq!((status.remaining, status.wait.as_secs()), (0, 40));
    assert!(other.request(&mut pool, &FREE, at(60_001)));
    assert!(!gateways[0].request(&mut pool, &FREE, at(60_002)));
}

#[test]
fn a_gateway_serves_a_limit_of_one_every_minute_without_a_report_in_between() {
    let mut pool = pool(&FREE);
    let mut gateway = TestGateway::new(1, &FREE);
    for minute in 0..5 {
        assert!(gateway.request(&mut pool, &FREE, at(minute * 60_001)));
        assert!(!gateway.request(&mut pool, &FREE, at(minute * 60_001 + 59_990)));
    }
}

#[test]
fn a_changed_limit_is_asked_about_at_once() {
    let mut pool = pool(&FREE);
    let mut gateway = TestGateway::new(1, &FREE);
    assert!(gateway.request(&mut pool, &FREE, at(0)));
    assert!(!gateway.request(&mut pool, &FREE, at(1)));
    gateway.lease.ask_again();
    assert!(gateway.request(&mut pool, &PRO, at(2)));
}

/// The remaining tokens, and the times until the limit is full and until the next token.
fn status(gateway: &TestGateway) -> (u32, Duration, Duration) {
    let status = gateway
        .balance
        .leased_minute_status(&gateway.lease, &PRO, at(0));
    (status.remaining, status.full_in, status.wait)
}

#[test]
fn the_status_counts_tokens_in_hand_and_elsewhere() {
    let mut pool = pool(&PRO);
    let mut gateway = TestGateway::new(1, &PRO);
    assert_eq!(status(&gateway), (60, Duration::ZERO, Duration::ZERO));
    assert!(gateway.request(&mut pool, &PRO, at(0)));
    assert_eq!(
        status(&gateway),
        (59, Duration::from_secs(1), Duration::ZERO)
    );
    let other = pool.apply(
        2,
        &MinuteReport {
            wanted: 50,
            limit: 60,
            ..MinuteReport::default()
        },
        micros(at(0)),
    );
    let spent = MinuteReport {
        limit: 60,
        ..MinuteReport::default()
    };
    assert_eq!(
        (other.tokens, pool.apply(2, &spent, micros(at(0))).tokens),
        (50, 0)
    );
    gateway.ask(&mut pool, &PRO, at(0));
    assert_eq!(status(&gateway).0, 9, "another gateway used 50");
}

#[test]
fn a_conditional_request_of_a_used_up_day_gets_a_token_first() {
    let mut pool = pool(&PRO);
    let mut gateway = TestGateway::new(1, &PRO);
    gateway.balance = AccountBalance::opened(&PRO, at(0).wall.day(), 10_000);
    let day = AdmissionVerdict::Refused(LimitRule::Day);
    assert_eq!(gateway.decide(&PRO, at(0), false, REACHABLE), day);
    let lease = AdmissionVerdict::LeaseFirst;
    assert_eq!(gateway.decide(&PRO, at(0), true, REACHABLE), lease);
    gateway.ask(&mut pool, &PRO, at(0));
    let revalidates = AdmissionVerdict::RevalidateOnly(LimitRule::Day);
    assert_eq!(gateway.decide(&PRO, at(0), true, REACHABLE), revalidates);
}

#[test]
fn without_the_ledger_a_gateway_has_its_tokens_and_the_refill_of_a_part() {
    let mut pool = pool(&PRO);
    let mut gateway = TestGateway::new(1, &PRO);
    assert!(gateway.request(&mut pool, &PRO, at(0)));
    assert_eq!(gateway.lease.held, 2);
    let mut served = |millis| {
        (0..100)
            .map(|_| gateway.decide(&PRO, at(millis), false, lost(at(1_000))))
            .filter(|verdict| matches!(verdict, AdmissionVerdict::Admitted { .. }))
            .count()
    };
    assert_eq!(served(1_000), 2);
    assert_eq!(served(3_999), 0);
    assert_eq!(served(4_000), 1);
    assert_eq!(served(64_000), 20);
    assert_eq!(
        gateway.decide(&PRO, at(64_000), false, REACHABLE),
        AdmissionVerdict::LeaseFirst
    );
    let report = gateway.lease.report(60, THREE, at(64_000).mono);
    assert_eq!(
        (report.held, report.returned),
        (0, -20),
        "the pool was refilled meanwhile"
    );
}

#[test]
fn without_a_token_and_the_ledger_the_wait_is_for_the_next_token_of_the_part() {
    let mut gateway = TestGateway::new(1, &PRO);
    let wait = AdmissionVerdict::NoToken {
        wait: Duration::from_secs(3),
    };
    assert_eq!(gateway.decide(&PRO, at(0), false, lost(at(0))), wait);
    gateway.balance = AccountBalance::opened(&PRO, at(0).wall.day(), 0);
    let decided = gateway.decide(&PRO, at(0), false, lost(at(0)));
    assert_eq!(decided, AdmissionVerdict::NoUnits, "a token would not help");
    assert_eq!(gateway.decide(&PRO, at(0), true, lost(at(0))), wait);
    let mut small = TestGateway::new(2, &FREE);
    let decided = small.decide(&FREE, at(0), false, lost(at(0)));
    assert_eq!(
        decided,
        AdmissionVerdict::NoUnits,
        "its part is not a whole token"
    );
}

#[test]
fn without_the_ledger_the_limit_is_used_up_only_if_all_of_it_was_admitted_here() {
    let mut pool = pool(&PRO);
    let mut gateway = TestGateway::new(1, &PRO);
    assert_eq!(gateway.burst(&mut pool, &PRO, at(0)), 60);
    let refused = AdmissionVerdict::Refused(LimitRule::Minute);
    assert_eq!(gateway.decide(&PRO, at(0), false, lost(at(0))), refused);
    let decided = gateway.decide(&PRO, at(1_000), false, lost(at(0)));
    assert!(
        matches!(decided, AdmissionVerdict::NoToken { .. }),
        "{decided:?}"
    );
}

#[test]
fn a_token_that_is_given_back_can_be_used_again() {
    let mut pool = pool(&FREE);
    let mut gateway = TestGateway::new(1, &FREE);
    for _ in 0..3 {
        assert!(gateway.request(&mut pool, &FREE, at(0)));
        gateway.balance = gateway.balance.give_back_token();
        gateway.lease.gave_back();
    }
    assert_eq!(gateway.calls, 1);
}

#[test]
fn after_an_outage_tokens_are_leased_again_and_those_refilled_meanwhile_are_paid_to_the_pool() {
    let mut pool = pool(&PRO);
    let mut gateway = TestGateway::new(1, &PRO);
    let alone = gateway.decide(&PRO, at(0), false, lost(at(0)));
    assert!(
        matches!(alone, AdmissionVerdict::NoToken { .. }),
        "{alone:?}"
    );
    assert!(gateway.request(&mut pool, &PRO, at(30_000)));
    // Ten of twenty tokens were refilled, and three of them are kept.
    assert_eq!(gateway.lease.held, 2);
    let other = TestGateway::new(2, &PRO).burst(&mut pool, &PRO, at(30_000));
    assert_eq!(other, 57);
}
