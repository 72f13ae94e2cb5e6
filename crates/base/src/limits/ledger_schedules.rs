//! Random schedules of several nodes and one ledger over days and months: reports and replies that are lost, repeated,
//! delayed and reordered, crashes, changes to the quota, midnights and ends of months, and failovers that lose commits,
//! including commits that opened a day. Nodes return yesterday's unspent units.
//!
//! The same schedules run against rules with known bugs, and must find each bug.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::day_ledger::{NodeReport, NodeTotals, WindowTotals};
use super::found_bugs::{is_found, pick};
use super::ledger_model::{LedgerRows, LedgerRules, MONTH};

const CASES: u32 = 20_000;
const NODES: usize = 3;
/// The daily quota at the beginning of a schedule.
const QUOTA: u32 = 6;
const MONTH_QUOTA: u32 = 9;

#[derive(Clone, Copy, Debug)]
enum FleetStep {
    /// A node sends a report that requests this many additional units.
    Report {
        node: usize,
        units: u32,
    },
    /// A node sends a report that returns yesterday's units.
    ReportEnded {
        node: usize,
    },
    /// The network delivers a report. With `again`, the report will be delivered once more.
    Deliver {
        which: usize,
        again: bool,
    },
    /// A reply arrives.
    Reply {
        which: usize,
        again: bool,
    },
    LoseReport {
        which: usize,
    },
    LoseReply {
        which: usize,
    },
    Spend {
        node: usize,
    },
    /// A node sets aside up to this many unspent units. Its next report returns them.
    GiveBack {
        node: usize,
        units: u32,
    },
    /// A node crashes, and another one starts.
    Crash {
        node: usize,
    },
    /// A node is silent for a long time. The correct rules do not react to this.
    Silence {
        node: usize,
    },
    Quota(u32),
    /// A day begins. Each node notices this later.
    Midnight,
    /// A node's clock shows the current day.
    NextDay {
        node: usize,
    },
    /// The ledger loses this many of its last commits.
    Failover {
        lost: usize,
    },
}

/// A step. Failovers lose up to `most_lost` commits.
fn step(most_lost: usize) -> impl Strategy<Value = FleetStep> {
    let node = || 0..NODES;
    let which = || 0usize..6;
    prop_oneof![
        8 => (node(), 0u32..6).prop_map(|(node, units)| FleetStep::Report { node, units }),
        3 => node().prop_map(|node| FleetStep::ReportEnded { node }),
        9 => (which(), any::<bool>()).prop_map(|(which, again)| FleetStep::Deliver { which, again }),
        8 => (which(), any::<bool>()).prop_map(|(which, again)| FleetStep::Reply { which, again }),
        1 => which().prop_map(|which| FleetStep::LoseReport { which }),
        1 => which().prop_map(|which| FleetStep::LoseReply { which }),
        12 => node().prop_map(|node| FleetStep::Spend { node }),
        2 => (node(), 1u32..6).prop_map(|(node, units)| FleetStep::GiveBack { node, units }),
        1 => node().prop_map(|node| FleetStep::Crash { node }),
        1 => node().prop_map(|node| FleetStep::Silence { node }),
        1 => prop_oneof![0u32..8, Just(QUOTA)].prop_map(FleetStep::Quota),
        1 => Just(FleetStep::Midnight),
        4 => node().prop_map(|node| FleetStep::NextDay { node }),
        1 => (0..=most_lost).prop_map(|lost| FleetStep::Failover { lost }),
    ]
}

#[derive(Clone, Debug)]
struct SentReport {
    id: usize,
    day: usize,
    report: NodeReport,
    /// The rows when the report was sent.
    snapshot: LedgerRows,
}

#[derive(Clone, Copy, Debug)]
struct SentReply {
    id: usize,
    day: usize,
    totals: NodeTotals,
    /// Units granted in reply to the report.
    units: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct FleetNode {
    id: usize,
    day: usize,
    known: NodeTotals,
    spent: u32,
    /// The totals of yesterday, without the unspent units.
    ended: Option<NodeTotals>,
}

struct Fleet {
    rules: LedgerRules,
    quota: u32,
    largest_quota: u32,
    /// The day of all clocks.
    today: usize,
    ledger: LedgerRows,
    commits: Vec<LedgerRows>,
    nodes: [FleetNode; NODES],
    next_id: usize,
    reports: Vec<SentReport>,
    replies: Vec<SentReply>,
    spent: BTreeMap<usize, u64>,
    /// Units granted by commits that were lost.
    forgotten: u64,
}

impl Fleet {
    fn new(rules: LedgerRules) -> Self {
        Self {
            rules,
            quota: QUOTA,
            largest_quota: QUOTA,
            today: 0,
            ledger: LedgerRows::default(),
            commits: Vec::new(),
            nodes: std::array::from_fn(|id| FleetNode {
                id,
                ..FleetNode::default()
            }),
            next_id: NODES,
            reports: Vec::new(),
            replies: Vec::new(),
            spent: BTreeMap::new(),
            forgotten: 0,
        }
    }

    fn take(&mut self, step: FleetStep) {
        match step {
            FleetStep::Report { node, units } => self.report(node, units),
            FleetStep::ReportEnded { node } => self.report_ended(node),
            FleetStep::Deliver { which, again } => {
                if let Some(sent) = pick(&mut self.reports, which, again) {
                    self.deliver(&sent);
                }
            }
            FleetStep::Reply { which, again } => {
                if let Some(reply) = pick(&mut self.replies, which, again) {
                    self.receive(reply);
                }
            }
            FleetStep::LoseReport { which } => drop(pick(&mut self.reports, which, false)),
            FleetStep::LoseReply { which } => drop(pick(&mut self.replies, which, false)),
            FleetStep::Spend { node } => self.spend(node),
            FleetStep::GiveBack { node, units } => {
                let node = &mut self.nodes[node];
                node.known.returned += units.min(node.known.held().saturating_sub(node.spent));
            }
            FleetStep::Crash { node } => {
                self.nodes[node] = FleetNode {
                    id: self.next_id,
                    day: self.today,
                    ..FleetNode::default()
                };
                self.next_id += 1;
            }
            FleetStep::Silence { node } => self.silence(node),
            FleetStep::Quota(quota) => {
                self.quota = quota;
                self.largest_quota = self.largest_quota.max(quota);
            }
            FleetStep::Midnight => self.today += 1,
            FleetStep::NextDay { node } => self.next_day(node),
            FleetStep::Failover { lost } => self.fail_over(lost),
        }
    }

    fn spend(&mut self, node: usize) {
        let node = &mut self.nodes[node];
        if node.spent < node.known.held() {
            node.spent += 1;
            *self.spent.entry(node.day).or_default() += 1;
        }
    }

    fn next_day(&mut self, node: usize) {
        let today = self.today;
        let rules = self.rules;
        let node = &mut self.nodes[node];
        if node.day == today {
            return;
        }
        if rules == LedgerRules::KeepsUnits {
            node.day = today;
            return;
        }
        let kept = if rules == LedgerRules::ReturnsSpent {
            0
        } else {
            node.spent
        };
        let left = NodeTotals {
            returned: node.known.granted.saturating_sub(kept),
            ..node.known
        };
        *node = FleetNode {
            id: node.id,
            day: today,
            ended: (node.day + 1 == today).then_some(left),
            ..FleetNode::default()
        };
    }

    fn send(&mut self, id: usize, day: usize, report: NodeReport) {
        let snapshot = self.ledger.clone();
        self.reports.push(SentReport {
            id,
            day,
            report,
            snapshot,
        });
    }

    fn report(&mut self, node: usize, units: u32) {
        let FleetNode { id, day, known, .. } = self.nodes[node];
        let report = NodeReport {
            known,
            granted: known.granted + units,
            quota: self.quota,
        };
        self.send(id, day, report);
    }

    fn report_ended(&mut self, node: usize) {
        let FleetNode { id, day, ended, .. } = self.nodes[node];
        if let Some(known) = ended {
            let report = NodeReport {
                known,
                ..NodeReport::default()
            };
            self.send(id, day - 1, report);
        }
    }

    /// The report as the ledger interprets it.
    fn understood(&self, report: NodeReport, before: NodeTotals) -> NodeReport {
        let mut understood = report;
        if self.rules == LedgerRules::Increments {
            let units = report.granted.saturating_sub(report.known.granted);
            understood.known = before.merged(report.known);
            understood.granted = before.granted + units;
        }
        if self.rules == LedgerRules::NoReassertion {
            understood.known.granted = before.granted;
        }
        understood
    }

    fn deliver(&mut self, sent: &SentReport) {
        self.commits.push(self.ledger.clone());
        self.ledger.today = self.ledger.today.max(sent.day);
        let today = self.ledger.today;
        let only_returns = sent.report.quota == 0;
        if sent.day == today || sent.day + 1 == today && only_returns {
            self.apply(sent, sent.day);
        } else if self.rules == LedgerRules::AnyDay {
            self.apply(sent, today);
        }
    }

    /// Applies a report to the rows of a day and its month.
    fn apply(&mut self, sent: &SentReport, day: usize) {
        let month = if self.rules == LedgerRules::MonthOfLedger {
            self.ledger.today / MONTH
        } else {
            day / MONTH
        };
        let seen = if self.rules == LedgerRules::OldSnapshot {
            &sent.snapshot
        } else {
            &self.ledger
        };
        let before = seen.node(day, sent.id);
        let counted = seen.of_month(month);
        let report = self.understood(sent.report, before);
        let limits_month = self.rules != LedgerRules::DayDecides;
        let mut windows = [
            WindowTotals {
                granted: seen.of_day(day),
                quota: Some(report.quota),
            },
            WindowTotals {
                granted: counted,
                quota: limits_month.then_some(MONTH_QUOTA),
            },
        ];
        let node = before.apply(&report, &mut windows);
        let units = node.granted - before.granted;
        let [of_day, mut of_month] = windows.map(|window| window.granted);
        if self.rules == LedgerRules::KeepsReturned {
            of_month = of_month.max(counted);
        }
        if self.rules == LedgerRules::MonthIncrements {
            let stated = node.granted.saturating_sub(report.known.granted);
            of_month = counted + u64::from(stated);
        }
        // The current rows, plus the changes that the report made to the rows that it had read.
        let of_day = (self.ledger.of_day(day) + of_day).saturating_sub(seen.of_day(day));
        let of_month = (self.ledger.of_month(month) + of_month).saturating_sub(counted);
        let totals = NodeTotals {
            granted: self.ledger.node(day, sent.id).granted + units,
            ..node
        };
        self.ledger.days.insert(day, of_day);
        self.ledger.months.insert(month, of_month);
        self.ledger.nodes.insert((day, sent.id), totals);
        self.replies.push(SentReply {
            id: sent.id,
            day: sent.day,
            totals,
            units,
        });
    }

    fn receive(&mut self, reply: SentReply) {
        let id = (reply.id, reply.day);
        let found = self.nodes.iter_mut().find(|node| (node.id, node.day) == id);
        let Some(node) = found else {
            return;
        };
        if self.rules == LedgerRules::Increments {
            node.known.granted += reply.units;
        } else {
            node.known = node.known.merged(reply.totals);
        }
    }

    fn silence(&mut self, node: usize) {
        if self.rules == LedgerRules::Reclaim {
            let FleetNode { id, day, .. } = self.nodes[node];
            let row = self.ledger.node(day, id);
            let left = NodeTotals {
                returned: row.granted,
                ..row
            };
            let held = u64::from(row.held());
            *self.ledger.days.entry(day).or_default() -= held;
            *self.ledger.months.entry(day / MONTH).or_default() -= held;
            self.ledger.nodes.insert((day, id), left);
        }
    }

    fn fail_over(&mut self, lost: usize) {
        let kept = self.commits.len().saturating_sub(lost);
        if let Some(older) = self.commits.get(kept).cloned() {
            self.commits.truncate(kept);
            self.forgotten += self.ledger.granted_since(&older);
            self.ledger = older;
        }
    }

    /// Every node reports its known totals.
    fn reassert(&mut self) {
        for node in 0..NODES {
            self.next_day(node);
            self.report(node, 0);
            let sent = self.reports.pop().unwrap();
            self.deliver(&sent);
            let reply = self.replies.pop().unwrap();
            self.receive(reply);
        }
    }

    /// Whether the units granted in the current day include all units that nodes hold.
    fn is_restored(&self) -> bool {
        let known = self.nodes.iter().map(|node| u64::from(node.known.held()));
        self.ledger.of_day(self.today) >= known.sum()
    }

    fn check(&self) -> Result<(), String> {
        for (day, spent) in &self.spent {
            let most = u64::from(self.largest_quota) + self.forgotten;
            let held = self.ledger.held(*day);
            if *spent > most || *spent > held + self.forgotten {
                return Err(format!(
                    "{spent} of at most {most} units of day {day} were spent; nodes hold {held}"
                ));
            }
        }
        for (month, counted) in &self.ledger.months {
            let days = month * MONTH..(month + 1) * MONTH;
            let spent: u64 = self.spent.range(days.clone()).map(|(_, spent)| spent).sum();
            let granted: u64 = days.clone().map(|day| self.ledger.of_day(day)).sum();
            let held: u64 = days.map(|day| self.ledger.held(day)).sum();
            let most = u64::from(MONTH_QUOTA) + self.forgotten;
            if *counted != granted || *counted != held || spent > most {
                return Err(format!(
                    "month {month}: {counted} counted, {granted} granted on its days, {held} held, {spent} spent"
                ));
            }
        }
        Ok(())
    }
}

fn run(rules: LedgerRules, steps: &[FleetStep]) -> Result<Fleet, String> {
    let mut fleet = Fleet::new(rules);
    for step in steps {
        fleet.take(*step);
        fleet
            .check()
            .map_err(|broken| format!("{step:?}: {broken}"))?;
    }
    Ok(fleet)
}

fn steps(most_lost: usize) -> impl Strategy<Value = Vec<FleetStep>> {
    prop::collection::vec(step(most_lost), 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn a_unit_counts_in_day_and_month_or_in_none_and_neither_quota_is_exceeded(steps in steps(0)) {
        let held = run(LedgerRules::Totals, &steps).map(|_| ());
        prop_assert!(held.is_ok(), "{:?}", held);
    }

    #[test]
    fn after_a_failover_nodes_spend_at_most_the_lost_units_more_and_reports_restore_the_total(steps in steps(3)) {
        match run(LedgerRules::Totals, &steps) {
            Ok(mut fleet) => {
                fleet.reassert();
                prop_assert!(fleet.is_restored());
                prop_assert_eq!(fleet.check(), Ok(()));
            }
            Err(broken) => prop_assert!(false, "{}", broken),
        }
    }
}

/// Whether one of several thousand schedules shows that these rules are wrong.
fn is_bug_found(rules: LedgerRules, most_lost: usize) -> bool {
    is_found(&steps(most_lost), 1_000, |steps| match run(rules, &steps) {
        Ok(mut fleet) => {
            fleet.reassert();
            !fleet.is_restored()
        }
        Err(_) => true,
    })
}

#[test]
fn the_schedules_find_every_known_bug() {
    for rules in [
        LedgerRules::Increments,
        LedgerRules::OldSnapshot,
        LedgerRules::Reclaim,
        LedgerRules::AnyDay,
        LedgerRules::KeepsUnits,
        LedgerRules::DayDecides,
        LedgerRules::KeepsReturned,
        LedgerRules::MonthIncrements,
        LedgerRules::MonthOfLedger,
        LedgerRules::ReturnsSpent,
    ] {
        assert!(is_bug_found(rules, 0), "{rules:?}");
    }
    assert!(is_bug_found(LedgerRules::NoReassertion, 3));
    assert!(!is_bug_found(LedgerRules::Totals, 3));
}
