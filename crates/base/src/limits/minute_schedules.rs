//! Random schedules of gateways that share a minute limit: requests, reports and replies that are delayed, repeated or lost,
//! recalls, crashes, and pauses of seconds.
//!
//! Every admitted request must also be admitted by one bucket of the whole limit. The same schedules run against rules
//! with known bugs, and must find each of them.

use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::clock::Mono;

use super::bucket::TOKEN;
use super::minute_pool::MinutePool;
use super::minute_report::{MinuteGrant, MinuteReport};
use super::minute_share::{MinuteShare, ShareTokens};
use super::rule::Limits;
use super::window::CalendarLimits;

const CASES: u32 = 5_000;
const GATEWAYS: usize = 3;
const GATEWAY_COUNT: u32 = 3;
/// The longest time until a gateway notices that the ledger is unreachable.
const NOTICE: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug)]
enum MinuteStep {
    Pass {
        millis: u32,
    },
    /// Requests at one gateway. The one that finds no token sends a report.
    Requests {
        gateway: usize,
        count: u32,
    },
    /// A gateway sends a report that is not needed yet.
    Renew {
        gateway: usize,
    },
    /// A gateway returns its share, or half of it.
    Release {
        gateway: usize,
        in_use: bool,
    },
    /// The network delivers a report. With `again` it will deliver it once more.
    Deliver {
        which: usize,
        again: bool,
    },
    /// A reply arrives.
    Reply {
        which: usize,
    },
    /// A gateway gives up the wait for a reply. Its report may still be delivered.
    GiveUp {
        gateway: usize,
    },
    /// A gateway ends without a shutdown, and another starts.
    Crash {
        gateway: usize,
    },
}

/// A step without the ledger.
fn step_alone() -> impl Strategy<Value = MinuteStep> {
    prop_oneof![
        3 => (0u32..500).prop_map(|millis| MinuteStep::Pass { millis }),
        1 => (500u32..60_000).prop_map(|millis| MinuteStep::Pass { millis }),
        6 => (0..GATEWAYS, 1u32..40).prop_map(|(gateway, count)| MinuteStep::Requests { gateway, count }),
    ]
}

fn step(repeats: bool) -> impl Strategy<Value = MinuteStep> {
    let gateway = || 0..GATEWAYS;
    let which = || 0usize..4;
    let deliver = if repeats {
        let again = prop::bool::weighted(0.1);
        (which(), again)
            .prop_map(|(which, again)| MinuteStep::Deliver { which, again })
            .boxed()
    } else {
        which()
            .prop_map(|which| MinuteStep::Deliver {
                which,
                again: false,
            })
            .boxed()
    };
    prop_oneof![
        5 => (0u32..1_000).prop_map(|millis| MinuteStep::Pass { millis }),
        1 => (1_000u32..240_000).prop_map(|millis| MinuteStep::Pass { millis }),
        12 => (gateway(), 1u32..12).prop_map(|(gateway, count)| MinuteStep::Requests { gateway, count }),
        3 => gateway().prop_map(|gateway| MinuteStep::Renew { gateway }),
        3 => (gateway(), any::<bool>()).prop_map(|(gateway, in_use)| MinuteStep::Release { gateway, in_use }),
        10 => deliver,
        10 => which().prop_map(|which| MinuteStep::Reply { which }),
        4 => gateway().prop_map(|gateway| MinuteStep::GiveUp { gateway }),
        1 => gateway().prop_map(|gateway| MinuteStep::Crash { gateway }),
    ]
}

/// The rules, and wrong ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MinuteRules {
    Right,
    /// Bug: a gateway counts the lifetime from the reply.
    CountsFromReply,
    /// Bug: late reports are applied.
    AppliesLateReports,
    /// Bug: a gateway keeps the tokens of a share that has ended.
    KeepsEndedTokens,
    /// Bug: a gateway continues to spend tokens that it reports as returned.
    SpendsReturnedTokens,
    /// Bug: without the ledger a gateway keeps a share above its part of the limit.
    KeepsLargeShare,
    /// Bug: a gateway uses its part before the others have noticed that the ledger is unreachable.
    StartsPartEarly,
}

#[derive(Clone, Debug)]
struct SharingGateway {
    id: u64,
    share: MinuteShare,
    tokens: ShareTokens,
    is_waiting: bool,
    /// When it notices that the ledger is unreachable.
    notices_at: Option<Mono>,
}

#[derive(Clone, Copy, Debug)]
struct SentMinuteReport {
    id: u64,
    report: MinuteReport,
    asked: Mono,
}

struct SharedMinute {
    rules: MinuteRules,
    limits: Limits,
    now: Mono,
    pool: MinutePool,
    gateways: Vec<SharingGateway>,
    next_id: u64,
    reports: Vec<SentMinuteReport>,
    replies: Vec<(SentMinuteReport, MinuteGrant)>,
    rounds: u32,
    /// One bucket of the whole limit that serves the same requests, in millionths of a token, and when it was filled.
    whole: (i64, Mono),
}

impl SharedMinute {
    fn new(rules: MinuteRules, minute: u32) -> Self {
        let now = Mono::from_nanos(1_000_000_000);
        // With a day of one unit per minute, shares are single tokens.
        let limits = Limits {
            minute,
            day: if minute < 5 { 10 } else { 10_000 },
            guard: 60,
            grace: 0,
            calendar: CalendarLimits::NONE,
        };
        let mut built = Self {
            rules,
            limits,
            now,
            pool: MinutePool::new(minute, micros(now)),
            gateways: Vec::new(),
            next_id: 0,
            reports: Vec::new(),
            replies: Vec::new(),
            rounds: 0,
            whole: (i64::from(minute) * TOKEN, now),
        };
        built.gateways = (0..GATEWAYS).map(|_| built.started()).collect();
        built
    }

    fn started(&mut self) -> SharingGateway {
        self.next_id += 1;
        let share = MinuteShare::default();
        let tokens = ShareTokens::default();
        SharingGateway {
            id: self.next_id,
            share,
            tokens,
            is_waiting: false,
            notices_at: None,
        }
    }

    /// The ledger is unreachable from now on. Gateways notice it after these times.
    fn lose_ledger(&mut self, notice_millis: [u32; GATEWAYS]) {
        for (gateway, millis) in self.gateways.iter_mut().zip(notice_millis) {
            gateway.notices_at = Some(self.now.plus(Duration::from_millis(millis.into())));
        }
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now.plus(time);
        if self.rules != MinuteRules::KeepsLargeShare {
            for gateway in &mut self.gateways {
                let is_next = |at: &Mono| (self.now..=until).contains(at);
                if let Some(at) = gateway.notices_at.filter(is_next) {
                    let limit = self.limits.minute;
                    let tokens = gateway.tokens;
                    gateway.tokens = gateway.share.reduce(tokens, limit, GATEWAY_COUNT, at);
                }
            }
        }
        self.now = until;
    }

    fn take(&mut self, step: MinuteStep) -> Result<(), String> {
        match step {
            MinuteStep::Pass { millis } => {
                self.pass(Duration::from_millis(millis.into()));
            }
            MinuteStep::Requests { gateway, count } => {
                for _ in 0..count {
                    self.request(gateway)?;
                }
            }
            MinuteStep::Renew { gateway } => self.report(gateway),
            MinuteStep::Release { gateway, in_use } => {
                let now = self.now;
                let limit = self.limits.minute;
                self.send(gateway, |share, tokens| {
                    share.release(tokens, limit, in_use, now)
                });
            }
            MinuteStep::Deliver { which, again } => self.deliver(which, again),
            MinuteStep::Reply { which } => self.receive(which),
            MinuteStep::GiveUp { gateway } => self.gateways[gateway].is_waiting = false,
            MinuteStep::Crash { gateway } => self.gateways[gateway] = self.started(),
        }
        Ok(())
    }

    fn request(&mut self, gateway: usize) -> Result<(), String> {
        let now = self.now;
        let limit = self.limits.minute;
        let asking = &mut self.gateways[gateway];
        let noticed = asking.notices_at.filter(|at| *at <= now);
        if let Some(at) = noticed {
            let since = if self.rules == MinuteRules::StartsPartEarly {
                at
            } else {
                at.plus(NOTICE)
            };
            let part = asking.share.fall_back(limit, GATEWAY_COUNT, since, now);
            asking.tokens = part.unwrap_or(asking.tokens);
        }
        let capacity = asking.share.capacity(limit, now, noticed.is_some());
        let bucket = asking
            .tokens
            .bucket
            .rebase(asking.tokens.capacity, capacity, now);
        let Some(bucket) = bucket.take(capacity, now) else {
            if asking.notices_at.is_none() && asking.share.may_grow(now) {
                self.report(gateway);
            }
            return Ok(());
        };
        asking.tokens = ShareTokens { bucket, capacity };
        asking.share.used(limit, now);
        self.take_of_whole()
    }

    fn take_of_whole(&mut self) -> Result<(), String> {
        let (tokens, since) = self.whole;
        let micros = micros(self.now) - micros(since);
        let full = i64::from(self.limits.minute) * TOKEN;
        let filled = full.min(tokens + i64::from(self.limits.minute) * micros / 60);
        self.whole = (filled - TOKEN, self.now);
        // Each conversion rounds down, by less than one millionth.
        if filled < TOKEN - 10 {
            Err(format!("{filled} millionths of a token were left"))
        } else {
            Ok(())
        }
    }

    fn report(&mut self, gateway: usize) {
        let now = self.now;
        let limits = self.limits;
        self.send(gateway, |share, tokens| {
            share.report(tokens, &limits, 3, now)
        });
    }

    fn send(
        &mut self,
        gateway: usize,
        make: impl FnOnce(&mut MinuteShare, ShareTokens) -> (ShareTokens, MinuteReport),
    ) {
        let sender = &mut self.gateways[gateway];
        if std::mem::replace(&mut sender.is_waiting, true) {
            return;
        }
        let before = sender.share;
        let (tokens, report) = make(&mut sender.share, sender.tokens);
        if self.rules == MinuteRules::SpendsReturnedTokens {
            sender.share = before.with_round(report.round);
        } else {
            sender.tokens = tokens;
        }
        self.reports.push(SentMinuteReport {
            id: sender.id,
            report,
            asked: self.now,
        });
    }

    fn deliver(&mut self, which: usize, again: bool) {
        let Some(index) = which.checked_rem(self.reports.len()) else {
            return;
        };
        let sent = if again {
            self.reports[index]
        } else {
            self.reports.swap_remove(index)
        };
        let mut report = sent.report;
        if self.rules == MinuteRules::AppliesLateReports {
            self.rounds += 1;
            report.round = self.rounds;
        }
        let mut grant = self.pool.apply(sent.id, &report, micros(self.now));
        if self.rules == MinuteRules::AppliesLateReports {
            grant.round = sent.report.round;
        }
        self.replies.push((sent, grant));
    }

    fn receive(&mut self, which: usize) {
        let Some(index) = which.checked_rem(self.replies.len()) else {
            return;
        };
        let (sent, mut grant) = self.replies.swap_remove(index);
        let Some(gateway) = self
            .gateways
            .iter_mut()
            .find(|gateway| gateway.id == sent.id)
        else {
            return;
        };
        let asked = if self.rules == MinuteRules::CountsFromReply {
            self.now
        } else {
            sent.asked
        };
        if self.rules == MinuteRules::KeepsEndedTokens {
            grant.is_kept = true;
            grant.capacity = grant.capacity.max(sent.report.kept);
        }
        gateway.tokens = gateway
            .share
            .apply(gateway.tokens, &sent.report, &grant, asked, self.now);
        gateway.is_waiting = false;
    }
}

fn micros(now: Mono) -> i64 {
    i64::try_from(now.nanos() / 1_000).unwrap()
}

fn run(rules: MinuteRules, minute: u32, steps: &[MinuteStep]) -> Result<(), String> {
    let mut shared = SharedMinute::new(rules, minute);
    steps.iter().try_for_each(|step| {
        shared
            .take(*step)
            .map_err(|broken| format!("{step:?}: {broken}"))
    })
}

/// Runs steps, and then others without the ledger.
fn run_outage(
    rules: MinuteRules,
    minute: u32,
    before: &[MinuteStep],
    notice_millis: [u32; GATEWAYS],
    outage: &[MinuteStep],
) -> Result<(), String> {
    let mut shared = SharedMinute::new(rules, minute);
    before.iter().try_for_each(|step| shared.take(*step))?;
    shared.lose_ledger(notice_millis);
    outage.iter().try_for_each(|step| shared.take(*step))
}

fn notice_millis() -> impl Strategy<Value = [u32; GATEWAYS]> {
    let longest = u32::try_from(NOTICE.as_millis()).unwrap();
    prop::array::uniform3(0..=longest)
}

fn limit() -> impl Strategy<Value = u32> {
    prop_oneof![Just(1u32), Just(3u32), Just(20u32), 5u32..120]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn gateways_admit_no_request_that_one_bucket_would_refuse(
        minute in limit(), steps in prop::collection::vec(step(true), 1..200),
    ) {
        prop_assert_eq!(run(MinuteRules::Right, minute, &steps), Ok(()));
    }

    #[test]
    fn gateways_that_lose_the_ledger_admit_no_request_that_one_bucket_would_refuse(
        minute in limit(), before in prop::collection::vec(step(false), 1..100), notice in notice_millis(),
        outage in prop::collection::vec(step_alone(), 1..100),
    ) {
        prop_assert_eq!(run_outage(MinuteRules::Right, minute, &before, notice, &outage), Ok(()));
    }
}

#[test]
fn the_schedules_find_every_known_bug_of_a_shared_minute() {
    let is_found = |rules| {
        let mut runner = TestRunner::deterministic();
        let schedule = (1u32..12, prop::collection::vec(step(false), 1..200));
        (0..3_000).any(|_| {
            let (minute, steps) = schedule.new_tree(&mut runner).unwrap().current();
            run(rules, minute, &steps).is_err()
        })
    };
    for rules in [
        MinuteRules::CountsFromReply,
        MinuteRules::AppliesLateReports,
        MinuteRules::KeepsEndedTokens,
        MinuteRules::SpendsReturnedTokens,
    ] {
        assert!(is_found(rules), "{rules:?}");
    }
    assert!(!is_found(MinuteRules::Right));
}

#[test]
fn a_schedule_finds_every_known_bug_of_a_minute_without_the_ledger() {
    // One gateway has the whole limit, and notices last that the ledger is unreachable.
    let before: Vec<_> = (0..6)
        .flat_map(|_| {
            let requests = MinuteStep::Requests {
                gateway: 0,
                count: 600,
            };
            let deliver = MinuteStep::Deliver {
                which: 0,
                again: false,
            };
            [requests, deliver, MinuteStep::Reply { which: 0 }]
        })
        .collect();
    let outage: Vec<_> = (0..120)
        .flat_map(|_| {
            let requests = [0, 1, 2].map(|gateway| MinuteStep::Requests { gateway, count: 10 });
            let pass = MinuteStep::Pass { millis: 500 };
            [&[pass][..], &requests].concat()
        })
        .collect();
    let run = |rules| run_outage(rules, 600, &before, [3_000, 0, 0], &outage);
    for rules in [MinuteRules::KeepsLargeShare, MinuteRules::StartsPartEarly] {
        assert!(run(rules).is_err(), "{rules:?}");
    }
    assert_eq!(run(MinuteRules::Right), Ok(()));
}
