//! Random schedules of gateways that share a minute limit: requests, reports that are repeated or lost, lost replies,
//! tokens that are given back, crashes, pauses and outages of the ledger.
//!
//! Every admitted request must also be admitted by a single bucket with the whole limit. The same schedules run against rules
//! with known bugs, and must find each bug.

use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};

use crate::limits::{minute_lease::*, minute_pool::MinutePool};

const GATEWAYS: NonZeroU32 = NonZeroU32::new(3).unwrap();

#[derive(Clone, Copy, Debug)]
enum MinuteStep {
    Pass {
        millis: u32,
    },
    /// Requests at one gateway. A request that finds no token sends a report.
    Requests {
        gateway: usize,
        count: u32,
    },
    /// A gateway sends a report that is not needed yet.
    Renew {
        gateway: usize,
    },
    Release {
        gateway: usize,
    },
    /// An admitted request turns out to cost nothing.
    GiveBack {
        gateway: usize,
    },
    /// The ledger applies the report of a gateway, possibly again.
    Deliver {
        gateway: usize,
    },
    Reply {
        gateway: usize,
    },
    /// The call of a gateway fails. Its report may have been applied.
    Fail {
        gateway: usize,
    },
    /// A gateway crashes, and another one starts.
    Crash {
        gateway: usize,
    },
}

fn step() -> impl Strategy<Value = MinuteStep> {
    let gateway = || 0usize..3;
    prop_oneof![
        5 => (0u32..1_000).prop_map(|millis| MinuteStep::Pass { millis }),
        1 => (1_000u32..120_000).prop_map(|millis| MinuteStep::Pass { millis }),
        12 => (gateway(), 1u32..12).prop_map(|(gateway, count)| MinuteStep::Requests { gateway, count }),
        3 => gateway().prop_map(|gateway| MinuteStep::Renew { gateway }),
        3 => gateway().prop_map(|gateway| MinuteStep::Release { gateway }),
        2 => gateway().prop_map(|gateway| MinuteStep::GiveBack { gateway }),
        12 => gateway().prop_map(|gateway| MinuteStep::Deliver { gateway }),
        12 => gateway().prop_map(|gateway| MinuteStep::Reply { gateway }),
        2 => gateway().prop_map(|gateway| MinuteStep::Fail { gateway }),
        1 => gateway().prop_map(|gateway| MinuteStep::Crash { gateway }),
    ]
}

/// A step that does not involve the ledger.
fn step_alone() -> impl Strategy<Value = MinuteStep> {
    prop_oneof![
        3 => (0u32..500).prop_map(|millis| MinuteStep::Pass { millis }),
        1 => (500u32..60_000).prop_map(|millis| MinuteStep::Pass { millis }),
        6 => (0usize..3, 1u32..40).prop_map(|(gateway, count)| MinuteStep::Requests { gateway, count }),
    ]
}

/// The correct rules and incorrect variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MinuteRules {
    Right,
    /// Bug: a gateway measures the lifetime from the reply.
    CountsFromReply,
    /// Bug: the report of a call that failed is applied after the next report.
    AppliesLateReports,
    /// Bug: a gateway keeps the tokens of a lease that has ended.
    KeepsEndedTokens,
    /// Bug: a gateway continues to spend tokens that it returned.
    SpendsReturnedTokens,
    /// Bug: a gateway keeps a token that the ledger counts as spent.
    KeepsGivenBackTokens,
    /// Bug: the pool refills as if no gateway held tokens.
    ForgetsHeldTokens,
    /// Bug: without the ledger, a gateway adds its part to the tokens in hand.
    AddsPartToTokens,
}

/// A call to the ledger.
#[derive(Clone, Copy, Debug)]
struct SentMinuteReport {
    report: MinuteReport,
    asked: Mono,
    grant: Option<MinuteGrant>,
}

#[derive(Clone, Debug, Default)]
struct SharingGateway {
    id: u64,
    lease: MinuteLease,
    call: Option<SentMinuteReport>,
    /// Admitted requests whose tokens may be given back.
    admitted: u32,
}

struct SharedMinute {
    rules: MinuteRules,
    limit: u32,
    now: Mono,
    pool: MinutePool,
    gateways: [SharingGateway; 3],
    next_id: u64,
    late: Vec<(u64, MinuteReport)>,
    /// The time when each gateway notices an outage.
    outage: Option<[Mono; 3]>,
    /// A single bucket with the whole limit, which serves the same requests: the content in millionths of a token, and the time
    /// of its last refill.
    whole: (i64, Mono),
}

impl SharedMinute {
    fn new(rules: MinuteRules, limit: u32) -> Self {
        let now = Mono::from_nanos(1_000_000_000);
        let mut built = Self {
            rules,
            limit,
            now,
            pool: MinutePool::new(limit, micros(now)),
            gateways: Default::default(),
            next_id: 0,
            late: Vec::new(),
            outage: None,
            whole: (i64::from(limit) * TOKEN, now),
        };
        for gateway in 0..3 {
            built.gateways[gateway] = built.started();
        }
        built
    }

    fn started(&mut self) -> SharingGateway {
        self.next_id += 1;
        SharingGateway {
            id: self.next_id,
            ..SharingGateway::default()
        }
    }

    fn take(&mut self, step: MinuteStep) -> Result<(), String> {
        match step {
            MinuteStep::Pass { millis } => {
                self.now = self.now.plus(Duration::from_millis(millis.into()));
            }
            MinuteStep::Requests { gateway, count } => {
                for _ in 0..count {
                    self.request(gateway)?;
                }
            }
            MinuteStep::Renew { gateway } => self.report(gateway),
            MinuteStep::Release { gateway } => self.release(gateway),
            MinuteStep::GiveBack { gateway } => self.give_back(gateway),
            MinuteStep::Deliver { gateway } => self.deliver(gateway),
            MinuteStep::Reply { gateway } => self.receive(gateway),
            MinuteStep::Fail { gateway } => {
                let failed = &mut self.gateways[gateway];
                let call = failed.call.take();
                if self.rules == MinuteRules::AppliesLateReports {
                    self.late.extend(call.map(|call| (failed.id, call.report)));
                }
            }
            MinuteStep::Crash { gateway } => self.gateways[gateway] = self.started(),
        }
        Ok(())
    }

    fn request(&mut self, gateway: usize) -> Result<(), String> {
        let now = self.now;
        let asking = &mut self.gateways[gateway];
        let since = self
            .outage
            .map(|noticed| noticed[gateway])
            .filter(|at| *at <= now);
        let mut ledger = LeaseAvailability::Reachable;
        if let Some(since) = since {
            let before = asking.lease.held;
            asking.lease.use_own_part(self.limit, GATEWAYS, since, now);
            ledger = LeaseAvailability::Unreachable { grace: 0, since };
            if self.rules == MinuteRules::AddsPartToTokens
                && let Some(own) = &mut asking.lease.own_part
                && before > 0
            {
                own.bucket = TokenBucket::default();
            }
        }
        if self.rules == MinuteRules::KeepsEndedTokens {
            asking.lease.ends_at = Mono::from_nanos(u64::MAX);
        }
        if asking.lease.usable(ledger, now) > 0 {
            asking.lease.take(now);
            asking.admitted += 1;
            return self.take_of_whole();
        }
        if self.outage.is_none() && asking.lease.may_ask(now) {
            self.report(gateway);
        }
        Ok(())
    }

    fn refill_whole(&mut self) {
        let (tokens, since) = self.whole;
        let gained = i64::from(self.limit) * (micros(self.now) - micros(since)) / 60;
        let full = i64::from(self.limit) * TOKEN;
        self.whole = (full.min(tokens + gained), self.now);
    }

    fn take_of_whole(&mut self) -> Result<(), String> {
        self.refill_whole();
        let tokens = self.whole.0;
        self.whole.0 -= TOKEN;
        // Each conversion rounds down by less than one millionth.
        if tokens < TOKEN - 100 {
            return Err(format!("{tokens} millionths of a token were left"));
        }
        Ok(())
    }

    fn give_back(&mut self, gateway: usize) {
        let giving = &mut self.gateways[gateway];
        if giving.admitted == 0 || giving.lease.own_part.is_some() {
            return;
        }
        giving.admitted = 0;
        if self.rules == MinuteRules::KeepsGivenBackTokens {
            giving.lease.leased += 1;
        }
        giving.lease.gave_back();
        self.refill_whole();
        self.whole.0 = (self.whole.0 + TOKEN).min(i64::from(self.limit) * TOKEN);
    }

    fn report(&mut self, gateway: usize) {
        let sender = &mut self.gateways[gateway];
        if sender.call.is_none() {
            let report = sender.lease.report(self.limit, GATEWAYS, self.now);
            self.send(gateway, report);
        }
    }

    fn release(&mut self, gateway: usize) {
        let sender = &mut self.gateways[gateway];
        let before = sender.lease;
        if sender.call.is_some() {
            return;
        }
        if let Some(report) = sender.lease.release(self.limit, self.now) {
            if self.rules == MinuteRules::SpendsReturnedTokens {
                sender.lease = before;
            }
            self.send(gateway, report);
        }
    }

    fn send(&mut self, gateway: usize, report: MinuteReport) {
        self.gateways[gateway].call = Some(SentMinuteReport {
            report,
            asked: self.now,
            grant: None,
        });
    }

    fn deliver(&mut self, gateway: usize) {
        let sender = &mut self.gateways[gateway];
        let Some(call) = &mut sender.call else {
            return;
        };
        let mut report = call.report;
        if self.rules == MinuteRules::ForgetsHeldTokens {
            report.held = 0;
        }
        call.grant = Some(self.pool.apply(sender.id, &report, micros(self.now)));
        for (id, report) in std::mem::take(&mut self.late) {
            self.pool.apply(id, &report, micros(self.now));
        }
    }

    fn receive(&mut self, gateway: usize) {
        let receiver = &mut self.gateways[gateway];
        let Some(call) = receiver.call else {
            return;
        };
        let Some(grant) = call.grant else {
            return;
        };
        receiver.call = None;
        let asked = if self.rules == MinuteRules::CountsFromReply {
            self.now
        } else {
            call.asked
        };
        receiver.lease.apply(&call.report, &grant, asked, self.now);
    }
}

fn micros(now: Mono) -> i64 {
    i64::try_from(now.nanos() / 1_000).unwrap()
}

fn run(rules: MinuteRules, limit: u32, steps: &[MinuteStep]) -> Result<(), String> {
    let mut shared = SharedMinute::new(rules, limit);
    steps.iter().try_for_each(|step| {
        shared
            .take(*step)
            .map_err(|broken| format!("{step:?}: {broken}"))
    })
}

/// Runs steps, then further steps without the ledger.
fn run_outage(
    rules: MinuteRules,
    limit: u32,
    before: &[MinuteStep],
    notice_millis: [u32; 3],
    outage: &[MinuteStep],
) -> Result<(), String> {
    let mut shared = SharedMinute::new(rules, limit);
    before.iter().try_for_each(|step| shared.take(*step))?;
    let now = shared.now;
    let noticed = notice_millis.map(|millis| now.plus(Duration::from_millis(millis.into())));
    shared.outage = Some(noticed);
    outage.iter().try_for_each(|step| shared.take(*step))
}

fn limit() -> impl Strategy<Value = u32> {
    prop_oneof![Just(1u32), Just(3u32), Just(20u32), 5u32..120]
}

fn steps() -> impl Strategy<Value = Vec<MinuteStep>> {
    prop::collection::vec(step(), 1..200)
}

fn steps_alone() -> impl Strategy<Value = Vec<MinuteStep>> {
    prop::collection::vec(step_alone(), 1..100)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn gateways_admit_no_request_that_one_bucket_would_refuse(limit in limit(), steps in steps()) {
        prop_assert_eq!(run(MinuteRules::Right, limit, &steps), Ok(()));
    }

    #[test]
    fn gateways_that_lose_the_ledger_admit_no_request_that_one_bucket_would_refuse(
        limit in limit(), before in steps(), notice in prop::array::uniform3(0u32..5_000), outage in steps_alone(),
    ) {
        prop_assert_eq!(run_outage(MinuteRules::Right, limit, &before, notice, &outage), Ok(()));
    }
}

#[test]
fn the_schedules_find_every_known_bug_of_a_shared_minute() {
    for rules in [
        MinuteRules::CountsFromReply,
        MinuteRules::AppliesLateReports,
        MinuteRules::KeepsEndedTokens,
        MinuteRules::SpendsReturnedTokens,
        MinuteRules::KeepsGivenBackTokens,
        MinuteRules::ForgetsHeldTokens,
        MinuteRules::AddsPartToTokens,
    ] {
        let mut runner = TestRunner::deterministic();
        let schedule = (1u32..20, steps(), steps_alone());
        let is_found = (0..100_000).any(|_| {
            let (limit, steps, alone) = schedule.new_tree(&mut runner).unwrap().current();
            run_outage(rules, limit, &steps, [0; 3], &alone).is_err()
        });
        assert!(is_found, "{rules:?}");
    }
}

#[test]
fn a_return_that_is_applied_twice_counts_once() {
    let mut pool = MinutePool::new(3, 0);
    let report = |wanted, returned| MinuteReport {
        wanted,
        returned,
        limit: 3,
        ..MinuteReport::default()
    };
    for (node, wanted, returned) in [(1, 1, 0), (2, 1, 0), (1, 0, 0), (2, 0, 1), (2, 0, 1)] {
        pool.apply(node, &report(wanted, returned), 0);
    }
    let left = pool.apply(3, &report(3, 0), 0);
    assert_eq!(left.tokens, 2, "the first node spent its token");
}
