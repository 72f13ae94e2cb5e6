//! A gateway's share, in exchanges with a pool.

use crate::limits::minute_pool::MinutePool;
use crate::limits::window::CalendarLimits;

use super::*;

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

/// A gateway, and its exchanges with a pool.
struct TestGateway {
    id: u64,
    share: MinuteShare,
    tokens: ShareTokens,
    exchanges: u32,
}

fn at(millis: u64) -> Mono {
    Mono::from_nanos(1_000_000_000 + millis * 1_000_000)
}

fn micros(now: Mono) -> i64 {
    i64::try_from(now.nanos() / 1_000).unwrap()
}

impl TestGateway {
    fn new(id: u64) -> Self {
        Self {
            id,
            share: MinuteShare::default(),
            tokens: ShareTokens::default(),
            exchanges: 0,
        }
    }

    fn exchange(&mut self, pool: &mut MinutePool, limits: &Limits, now: Mono) {
        let (tokens, report) = self.share.report(self.tokens, limits, 3, now);
        self.send(pool, tokens, &report, now);
    }

    fn release(&mut self, pool: &mut MinutePool, limits: &Limits, now: Mono) {
        let in_use = self.share.is_in_use(now);
        let (tokens, report) = self.share.release(self.tokens, limits.minute, in_use, now);
        self.send(pool, tokens, &report, now);
    }

    fn send(
        &mut self,
        pool: &mut MinutePool,
        tokens: ShareTokens,
        report: &MinuteReport,
        now: Mono,
    ) {
        let grant = pool.apply(self.id, report, micros(now));
        self.tokens = self.share.apply(tokens, report, &grant, now, now);
        self.exchanges += 1;
    }

    fn take(&mut self, limits: &Limits, now: Mono, is_unreachable: bool) -> bool {
        let capacity = self.share.capacity(limits.minute, now, is_unreachable);
        let Some(bucket) = self.tokens.bucket.take(capacity, now) else {
            return false;
        };
        self.tokens = ShareTokens { bucket, capacity };
        self.share.used(limits.minute, now);
        true
    }

    /// A request, with the exchanges that it waits for and starts.
    fn request(&mut self, pool: &mut MinutePool, limits: &Limits, now: Mono) -> bool {
        if !self.take(limits, now, false) {
            self.exchange(pool, limits, now);
            return self.take(limits, now, false);
        }
        if self.share.runs_low(self.tokens, limits, now) {
            self.exchange(pool, limits, now);
        }
        true
    }
}

fn pool(limits: &Limits) -> MinutePool {
    MinutePool::new(limits.minute, micros(at(0)))
}

#[test]
fn a_new_share_is_not_idle_before_the_request_that_waits_for_it_has_used_it() {
    let mut pool = pool(&PRO);
    let mut gateway = TestGateway::new(1);
    gateway.exchange(&mut pool, &PRO, at(60_000));
    assert!(gateway.share.is_held(at(60_001)));
    assert!(!gateway.share.is_idle(at(60_001)));
    assert!(gateway.share.is_idle(at(90_000)));
}

#[test]
fn at_half_the_limit_over_three_gateways_exchanges_are_few() {
    for (limits, most) in [(PRO, 0.05), (ENTERPRISE, 0.02)] {
        let mut pool = pool(&limits);
        let mut gateways = [1, 2, 3].map(TestGateway::new);
        let interval = 2 * 60_000 / u64::from(limits.minute);
        let requests = u64::from(limits.minute) / 2 * 60;
        for number in 0..requests {
            let gateway = &mut gateways[usize::try_from(number % 3).unwrap()];
            assert!(
                gateway.request(&mut pool, &limits, at(number * interval)),
                "request {number}"
            );
        }
        let exchanges: u32 = gateways.iter().map(|gateway| gateway.exchanges).sum();
        let share = f64::from(exchanges) / f64::from(u32::try_from(requests).unwrap());
        assert!(share <= most * 0.7, "{share} exchanges per request");
    }
}

#[test]
fn one_gateway_serves_the_whole_limit_at_once() {
    for limits in [FREE, PRO, ENTERPRISE] {
        let mut pool = pool(&limits);
        let mut gateway = TestGateway::new(1);
        let served = (0..2 * limits.minute)
            .filter(|_| gateway.request(&mut pool, &limits, at(0)))
            .count();
        assert_eq!(served, usize::try_from(limits.minute).unwrap());
    }
}

#[test]
fn a_free_token_moves_to_the_gateway_that_needs_it() {
    let mut pool = pool(&FREE);
    let [mut first, mut second] = [1, 2].map(TestGateway::new);
    assert!(first.request(&mut pool, &FREE, at(0)));
    assert!(first.share.is_idle(at(30_000)));
    first.release(&mut pool, &FREE, at(30_000));
    assert!(!second.request(&mut pool, &FREE, at(59_000)));
    assert!(second.request(&mut pool, &FREE, at(60_001)));
    assert!(!first.request(&mut pool, &FREE, at(60_002)));
}

#[test]
fn a_gateway_without_tokens_recalls_those_of_others() {
    let mut pool = pool(&PRO);
    let [mut idle, mut starved] = [1, 2].map(TestGateway::new);
    for _ in 0..41 {
        assert!(idle.request(&mut pool, &PRO, at(0)));
    }
    assert!(!starved.request(&mut pool, &PRO, at(20_000)));
    assert!(starved.share.awaits_recall(starved.tokens, 60, at(20_000)));
    assert!(!starved.share.may_grow(at(20_900)) && starved.share.may_grow(at(21_000)));
    assert!(pool.is_recalled(1, micros(at(20_400))));
    idle.release(&mut pool, &PRO, at(20_400));
    let served = (0..60)
        .filter(|_| starved.request(&mut pool, &PRO, at(21_000)))
        .count();
    assert_eq!(served, 40, "19 were left, and 21 were refilled");
}

#[test]
fn a_share_of_the_whole_limit_without_tokens_waits_for_its_refill() {
    let mut pool = pool(&PRO);
    let mut gateway = TestGateway::new(1);
    assert_eq!(
        (0..60)
            .filter(|_| gateway.request(&mut pool, &PRO, at(0)))
            .count(),
        60
    );
    assert!(!gateway.request(&mut pool, &PRO, at(0)) && !gateway.share.may_grow(at(990)));
    assert_eq!(gateway.share.until_growth(at(0)), Duration::from_secs(1));
}

#[test]
fn a_recalled_share_in_use_is_halved() {
    let mut pool = pool(&PRO);
    let mut gateway = TestGateway::new(1);
    for _ in 0..5 {
        assert!(gateway.request(&mut pool, &PRO, at(0)));
    }
    gateway.release(&mut pool, &PRO, at(500));
    assert_eq!(gateway.share.capacity(60, at(500), false), 10);
    assert_eq!(
        (0..20)
            .filter(|_| gateway.take(&PRO, at(500), false))
            .count(),
        7,
        "half of 15 were returned"
    );
}

#[test]
fn without_the_ledger_a_share_is_used_to_its_end_and_then_a_part_that_starts_empty() {
    let mut pool = pool(&PRO);
    let mut gateway = TestGateway::new(1);
    assert!(gateway.request(&mut pool, &PRO, at(0)));
    assert_eq!(
        gateway.share.fall_back(60, 3, at(239_000), at(239_000)),
        None
    );
    let end = at(240_000);
    assert!(!gateway.take(&PRO, end, true), "the share has ended");
    gateway.tokens = gateway.share.fall_back(60, 3, end, end).unwrap();
    assert!(!gateway.take(&PRO, end, true));
    let served = (0..180)
        .filter(|second| gateway.take(&PRO, at(240_000 + second * 1_000), true))
        .count();
    assert_eq!(served, 59, "20 a minute");
    assert!(
        !gateway.take(&PRO, at(430_000), false),
        "reachable: a share is needed"
    );
    gateway.exchange(&mut pool, &PRO, at(430_000));
    assert_eq!(
        (0..60)
            .filter(|_| gateway.take(&PRO, at(430_000), false))
            .count(),
        20
    );
    let mut other = TestGateway::new(2);
    let served = (0..60)
        .filter(|_| other.request(&mut pool, &PRO, at(430_000)))
        .count();
    assert_eq!(
        served, 20,
        "of 60 tokens, 20 counted as spent without a share"
    );
}

#[test]
fn without_the_ledger_a_returned_share_is_replaced_at_once() {
    let mut pool = pool(&PRO);
    let mut gateway = TestGateway::new(1);
    assert!(gateway.request(&mut pool, &PRO, at(0)));
    gateway.release(&mut pool, &PRO, at(31_000));
    gateway.tokens = gateway
        .share
        .fall_back(60, 3, at(32_000), at(32_000))
        .unwrap();
    assert_eq!(
        gateway.share.fall_back(60, 3, at(33_000), at(33_000)),
        None,
        "it does not start again"
    );
    assert!(!gateway.take(&PRO, at(34_000), true) && gateway.take(&PRO, at(35_001), true));
}

#[test]
fn tokens_elsewhere_are_part_of_the_reported_allowance() {
    let mut pool = pool(&PRO);
    let mut gateway = TestGateway::new(1);
    assert_eq!(gateway.share.elsewhere(60, at(0)).0, 60);
    assert!(gateway.request(&mut pool, &PRO, at(0)));
    assert_eq!(gateway.share.elsewhere(60, at(0)).0, 40);
}
