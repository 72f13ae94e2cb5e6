//! Random schedules of everything that can happen to an application's day in one process: requests, late lease replies,
//! crashes, restarts, midnights, clock steps, tier changes, and an unreachable ledger. Each step is followed by checks.
//!
//! Concurrent threads are tested in `gateway::schedules`, engines in `store::conformance`.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use proptest::prelude::*;

use crate::clock::{Day, Mono, Now, Wall};

use super::*;

const CASES: u32 = 20_000;
const START: Wall = Wall::from_seconds(1_763_769_590); // ten seconds before a midnight
/// A limit that is never reached, because these tests are about days.
const MINUTE: u32 = 1_000_000;

#[derive(Clone, Copy, Debug)]
enum ScheduleStep {
    /// A request is admitted or refused.
    Ask,
    /// A request in flight ends, with or without delivering data.
    Settle {
        which: usize,
        kept: bool,
    },
    /// The ledger records a lease, and the reply is in flight.
    LeaseBegins,
    /// The reply arrives.
    LeaseEnds,
    /// Idle units are returned.
    Drain,
    Crash,
    /// A shutdown and a start.
    Restart,
    Pass {
        seconds: u32,
    },
    /// The wall clock is set.
    SetClock {
        seconds: i32,
    },
    SetTier {
        day: u32,
        paid: bool,
    },
    LedgerGoesAway(bool),
}

fn step() -> impl Strategy<Value = ScheduleStep> {
    let quota = prop_oneof![Just(0u32), 1u32..12, 90u32..320, Just(10_000u32)];
    let clock = prop_oneof![
        Just(-3_600),
        Just(-10),
        Just(86_400),
        Just(-86_400),
        -5i32..20
    ];
    prop_oneof![
        20 => Just(ScheduleStep::Ask),
        14 => (0usize..8, prop::bool::weighted(0.8)).prop_map(|(which, kept)| ScheduleStep::Settle { which, kept }),
        4 => Just(ScheduleStep::LeaseBegins),
        4 => Just(ScheduleStep::LeaseEnds),
        1 => Just(ScheduleStep::Drain),
        1 => Just(ScheduleStep::Crash),
        1 => Just(ScheduleStep::Restart),
        1 => (0u32..15).prop_map(|seconds| ScheduleStep::Pass { seconds }),
        1 => clock.prop_map(|seconds| ScheduleStep::SetClock { seconds }),
        1 => (quota, any::<bool>()).prop_map(|(day, paid)| ScheduleStep::SetTier { day, paid }),
        2 => any::<bool>().prop_map(ScheduleStep::LedgerGoesAway),
    ]
}

/// A model of the ledger.
#[derive(Default)]
struct ModelLedger {
    days: BTreeMap<Day, DayTotals>,
    /// Totals of each process, by its number.
    processes: BTreeMap<(Day, u32), NodeTotals>,
}

enum ModelLease {
    Applied { node: NodeTotals, total: u64 },
    Closed(Day),
}

impl ModelLedger {
    fn newest(&self) -> Option<Day> {
        self.days.keys().next_back().copied()
    }

    fn exchange(&mut self, day: Day, process: u32, report: &NodeReport) -> ModelLease {
        if let Some(newest) = self.newest().filter(|newest| day < *newest) {
            return ModelLease::Closed(newest);
        }
        let totals = self.days.entry(day).or_default();
        let node = self.processes.entry((day, process)).or_default();
        (*totals, *node) = totals.apply(*node, report);
        ModelLease::Applied {
            node: *node,
            total: totals.granted,
        }
    }
}

/// The outcome of one day for callers and the ledger.
#[derive(Clone, Copy, Debug, Default)]
struct DayOutcome {
    delivered: u64,
    /// Units that were leased and lost in a crash.
    lost: u64,
    /// Units that were delivered on grace and not charged before a crash or the end of the day.
    forgotten: u64,
    largest_quota: u32,
    /// The next day has begun, possibly because of a clock that was later set back.
    is_over: bool,
}

struct ScheduleWorld {
    now: Now,
    limits: Limits,
    balance: AccountBalance,
    ledger: ModelLedger,
    is_away: bool,
    /// Requests in flight, by the day of their unit.
    running: Vec<Day>,
    most_running: usize,
    pending: Option<(Day, ModelLease)>,
    days: BTreeMap<Day, DayOutcome>,
    /// The number of this process.
    process: u32,
    /// Units of the current day that were granted by the ledger and delivered to callers before this process started.
    granted_before: u64,
    delivered_before: u64,
    /// Days whose grace share is lost to later processes, because a process ended with owed units or moved on to a later day.
    lost_shares: BTreeSet<Day>,
}

impl ScheduleWorld {
    fn new() -> Self {
        let now = Now {
            wall: START,
            mono: Mono::from_nanos(1_000_000_000),
        };
        let limits = Limits::for_tests(MINUTE, 300, 3);
        let balance = AccountBalance::opened(&limits, now.wall.day(), 0);
        Self {
            now,
            limits,
            balance,
            ledger: ModelLedger::default(),
            is_away: false,
            running: Vec::new(),
            most_running: 0,
            pending: None,
            days: BTreeMap::new(),
            process: 0,
            granted_before: 0,
            delivered_before: 0,
            lost_shares: BTreeSet::new(),
        }
    }

    /// The balance's day, after the update that a request would make at this moment.
    fn day(&mut self) -> Day {
        self.roll(self.now.wall.day())
    }

    fn roll(&mut self, today: Day) -> Day {
        let before = self.balance.day;
        self.balance.day = before.on(today);
        if self.balance.day.day() != before.day() {
            // Owed units can no longer be charged, and idle units can no longer be used.
            let outcome = self.outcome(before.day());
            outcome.forgotten += u64::from(before.owed());
            outcome.is_over = true;
            self.lost_shares.insert(before.day());
            (self.granted_before, self.delivered_before) =
                (self.granted(today), self.outcome(today).delivered);
        }
        self.balance.day.day()
    }

    /// Units that may be owed.
    fn grace(&self) -> u32 {
        if self.lost_shares.contains(&self.balance.day.day()) {
            0
        } else {
            self.limits.grace
        }
    }

    fn outcome(&mut self, day: Day) -> &mut DayOutcome {
        self.days.entry(day).or_default()
    }

    fn remaining(&mut self) -> (Day, u32) {
        (self.day(), self.balance.day.remaining(self.limits.day))
    }

    /// The ledger's part of a lease; `None` if the ledger is unreachable.
    fn begin_lease(&mut self) -> Option<(Day, ModelLease)> {
        let day = self.day();
        let report = self.balance.day.report(self.limits.day);
        (!self.is_away).then(|| (day, self.ledger.exchange(day, self.process, &report)))
    }

    fn end_lease(&mut self, (day, lease): (Day, ModelLease)) {
        match lease {
            ModelLease::Applied { node, total } => {
                self.balance.day = self.balance.day.apply(day, node, total);
            }
            ModelLease::Closed(newest) => {
                self.roll(newest);
            }
        }
    }

    fn ask(&mut self) {
        let mut state = LeaseAvailability::Reachable;
        for _ in 0..4 {
            let (balance, verdict) = self.balance.admit(&self.limits, self.now, false, state);
            self.balance = balance;
            match verdict {
                AdmissionVerdict::Admitted { day, .. } | AdmissionVerdict::OnGrace { day } => {
                    self.running.push(day);
                    self.most_running = self.most_running.max(self.running.len());
                    return;
                }
                // Requests share a call in flight, so the call's reply is applied first.
                AdmissionVerdict::LeaseFirst => {
                    match self.pending.take().or_else(|| self.begin_lease()) {
                        Some(answer) => self.end_lease(answer),
                        None => {
                            state = LeaseAvailability::Unreachable {
                                grace: self.grace(),
                                since: self.now.mono,
                            }
                        }
                    }
                }
                AdmissionVerdict::ReserveFirst => {
                    let day = self.balance.day;
                    let (total, _) = self.balance.day.to_reserve(self.grace());
                    self.balance.day = day.reserve(day.day(), total);
                }
                AdmissionVerdict::RevalidateOnly(_)
                | AdmissionVerdict::RevalidateWithoutUnits
                | AdmissionVerdict::Refused(_)
                | AdmissionVerdict::NoUnits
                | AdmissionVerdict::NoToken { .. } => {
                    return;
                }
            }
        }
        panic!("a request is decided again and again");
    }

    fn settle(&mut self, which: usize, kept: bool) {
        if self.running.is_empty() {
            return;
        }
        let day = self.running.swap_remove(which % self.running.len());
        self.balance.day = self.balance.day.settle(day, kept);
        self.outcome(day).delivered += u64::from(kept);
    }

    fn drain(&mut self) {
        // No lease is in flight, because a shutdown waits for leases.
        if !self.is_away && self.pending.is_none() {
            let day = self.balance.day.day();
            let (left, report) = self.balance.day.release();
            self.balance.day = left;
            // The report is sent twice, as after a lost reply.
            for report in report.into_iter().flat_map(|report| [report; 2]) {
                self.ledger.exchange(day, self.process, &report);
            }
        }
    }

    /// The process crashes.
    fn crash(&mut self) {
        let day = self.balance.day.day();
        self.running.clear();
        self.pending = None;
        self.lost_shares.insert(day);
        let granted = self.granted(day) - self.granted_before;
        let delivered = self.outcome(day).delivered - self.delivered_before;
        let most_running = self.most_running as u64;
        let outcome = self.outcome(day);
        outcome.forgotten += delivered.saturating_sub(granted);
        let gone = granted.saturating_sub(delivered);
        outcome.lost += gone;
        let one_lease = u64::from(largest_lease(outcome.largest_quota)).max(most_running + 1);
        assert!(
            gone <= one_lease,
            "a crash lost {gone} units, more than a lease of {one_lease}"
        );
        self.start();
    }

    fn granted(&self, day: Day) -> u64 {
        self.ledger
            .days
            .get(&day)
            .map_or(0, |totals| totals.granted)
    }

    fn restart(&mut self) {
        if self.is_away {
            return;
        }
        if let Some(answer) = self.pending.take() {
            self.end_lease(answer);
        }
        while !self.running.is_empty() {
            self.settle(0, true);
        }
        if self.balance.day.owed() > 0
            && let Some(answer) = self.begin_lease()
        {
            self.end_lease(answer);
        }
        self.drain();
        assert!(
            self.balance.day.unspent() == 0,
            "a hold was lost: {:?}",
            self.balance
        );
        let is_returned = self.balance.day.owed() == 0;
        let before = self.lost_shares.clone();
        self.crash();
        if is_returned {
            self.lost_shares = before;
        }
    }

    fn start(&mut self) {
        let today = self.now.wall.day();
        let day = self
            .ledger
            .newest()
            .map_or(today, |newest| newest.max(today));
        self.process += 1;
        self.granted_before = self.granted(day);
        self.delivered_before = self.outcome(day).delivered;
        self.balance = AccountBalance::opened(&self.limits, day, self.granted_before);
        self.most_running = 0;
    }

    fn take(&mut self, step: ScheduleStep) {
        match step {
            ScheduleStep::Ask => self.ask(),
            ScheduleStep::Settle { which, kept } => self.settle(which, kept),
            ScheduleStep::LeaseBegins if self.pending.is_none() => {
                self.pending = self.begin_lease();
            }
            ScheduleStep::LeaseEnds => {
                if let Some(answer) = self.pending.take() {
                    self.end_lease(answer);
                }
            }
            ScheduleStep::LeaseBegins => {}
            ScheduleStep::Drain => self.drain(),
            ScheduleStep::Crash => self.crash(),
            ScheduleStep::Restart => self.restart(),
            ScheduleStep::Pass { seconds } => {
                let by = Duration::from_secs(seconds.into());
                self.now = Now {
                    wall: self.now.wall.plus(by),
                    mono: self.now.mono.plus(by),
                };
            }
            ScheduleStep::SetClock { seconds } => {
                let by = Duration::from_secs(seconds.unsigned_abs().into());
                let wall = self.now.wall;
                self.now.wall = if seconds < 0 {
                    wall.minus(by)
                } else {
                    wall.plus(by)
                };
            }
            ScheduleStep::SetTier { day, paid } => {
                self.limits = Limits {
                    day,
                    grace: if paid { day / 100 } else { 0 },
                    ..self.limits
                };
            }
            ScheduleStep::LedgerGoesAway(away) => self.is_away = away,
        }
        let day = self.day();
        let quota = self.limits.day;
        self.outcome(day).largest_quota = quota.max(self.outcome(day).largest_quota);
    }

    fn check(&self, step: ScheduleStep) {
        for (day, outcome) in &self.days {
            let quota = u64::from(outcome.largest_quota);
            let grace = u64::from(outcome.largest_quota / 100);
            assert!(
                outcome.forgotten <= grace,
                "{step:?}: {day}: {outcome:?}: more grace than a hundredth"
            );
            let most = quota + outcome.forgotten;
            let charged = self.granted(*day);
            assert!(
                outcome.delivered <= most,
                "{step:?}: {day}: {outcome:?}: over-granted"
            );
            assert!(
                charged <= quota,
                "{step:?}: {day}: {outcome:?}: the ledger granted {charged}"
            );
        }
    }
}

/// Whether a step may raise the remaining allowance that a caller sees.
fn may_raise(step: ScheduleStep) -> bool {
    match step {
        ScheduleStep::Settle { kept, .. } => !kept,
        ScheduleStep::Drain | ScheduleStep::Restart | ScheduleStep::SetTier { .. } => true,
        ScheduleStep::Crash // only forgets units delivered on grace, which are compared with `forgotten`
        | ScheduleStep::Ask
        | ScheduleStep::LeaseBegins
        | ScheduleStep::LeaseEnds
        | ScheduleStep::Pass { .. }
        | ScheduleStep::SetClock { .. }
        | ScheduleStep::LedgerGoesAway(_) => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn no_schedule_delivers_more_than_the_quota_loses_a_hold_or_more_than_a_lease(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut world = ScheduleWorld::new();
        for step in steps {
            let (day, before) = world.remaining();
            let owed = world.balance.day.owed();
            world.take(step);
            world.check(step);
            let (same, after) = world.remaining();
            if same == day && !may_raise(step) {
                let forgotten = if matches!(step, ScheduleStep::Crash) { owed } else { 0 };
                prop_assert!(after <= before.saturating_add(forgotten), "{:?}: {} after {}", step, after, before);
            }
        }
        // At the end, every granted unit has been delivered, lost in a crash, or returned.
        world.is_away = false;
        world.restart();
        let day = world.balance.day.day();
        let outcome = *world.outcome(day);
        let granted = world.granted(day);
        prop_assert!(outcome.is_over || granted + outcome.forgotten == outcome.delivered + outcome.lost, "{:?}", outcome);
    }
}
