//! Random schedules of several nodes and one ledger: reports and replies that are lost, repeated, delayed and reordered,
//! crashes, changes of the quota, midnights, and failovers that lose commits, also those that opened a day.
//!
//! The same schedules run against rules with known bugs, and must find each of them.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use super::day_ledger::{DayTotals, NodeReport, NodeTotals};
use super::ledger_model::{LedgerDays, LedgerRows};

const CASES: u32 = 20_000;
const NODES: usize = 3;

#[derive(Clone, Copy, Debug)]
enum FleetStep {
    /// A node sends a report that requests this many units more.
    Report {
        node: usize,
        units: u32,
    },
    /// The network delivers a report. With `again` it will deliver it once more.
    Deliver {
        which: usize,
        again: bool,
    },
    /// A reply arrives.
    Reply {
        which: usize,
        again: bool,
    },
    /// A report or a reply is lost.
    Lose {
        which: usize,
        reply: bool,
    },
    Spend {
        node: usize,
    },
    /// A node decides not to spend up to this many units; its next report says so.
    GiveBack {
        node: usize,
        units: u32,
    },
    /// A node ends without a shutdown, and another starts.
    Crash {
        node: usize,
    },
    /// A node is silent for long. The rules do not react to it.
    Silence {
        node: usize,
    },
    Quota(u32),
    /// A day begins. Each node notices it later.
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

fn step(failovers: u32) -> impl Strategy<Value = FleetStep> {
    let node = || 0..NODES;
    let which = || 0usize..6;
    prop_oneof![
        8 => (node(), 0u32..6).prop_map(|(node, units)| FleetStep::Report { node, units }),
        8 => (which(), any::<bool>()).prop_map(|(which, again)| FleetStep::Deliver { which, again }),
        8 => (which(), any::<bool>()).prop_map(|(which, again)| FleetStep::Reply { which, again }),
        2 => (which(), any::<bool>()).prop_map(|(which, reply)| FleetStep::Lose { which, reply }),
        12 => node().prop_map(|node| FleetStep::Spend { node }),
        2 => (node(), 1u32..6).prop_map(|(node, units)| FleetStep::GiveBack { node, units }),
        1 => node().prop_map(|node| FleetStep::Crash { node }),
        1 => node().prop_map(|node| FleetStep::Silence { node }),
        4 => prop_oneof![
            1 => prop_oneof![0u32..12, Just(10u32)].prop_map(FleetStep::Quota),
            1 => Just(FleetStep::Midnight),
            2 => node().prop_map(|node| FleetStep::NextDay { node }),
        ],
        failovers => (1usize..4).prop_map(|lost| FleetStep::Failover { lost }),
    ]
}

/// The rules of the ledger, and wrong ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LedgerRules {
    Totals,
    /// Bug: requests and replies carry numbers of units instead of totals.
    Increments,
    /// Bug: decides on the rows as they were when the report was sent, as a statement does that waited for a lock.
    OldSnapshot,
    /// Bug: takes back the units of a node that was silent for long.
    Reclaim,
    /// Bug: does not take the larger totals of a report.
    NoReassertion,
    /// Bug: applies a report to the current day, whatever its day is.
    AnyDay,
    /// Bug: a node spends what is left of its units on the next day.
    KeepsUnits,
}

#[derive(Clone, Debug)]
struct SentReport {
    id: usize,
    day: usize,
    report: NodeReport,
    /// The rows when it was sent.
    snapshot: LedgerRows,
}

#[derive(Clone, Copy, Debug)]
struct SentReply {
    id: usize,
    day: usize,
    totals: NodeTotals,
    /// Units granted by this reply's report.
    units: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct FleetNode {
    id: usize,
    day: usize,
    known: NodeTotals,
    spent: u32,
}

struct Fleet {
    rules: LedgerRules,
    quota: u32,
    largest_quota: u32,
    /// The day of all clocks.
    today: usize,
    ledger: LedgerDays,
    commits: Vec<LedgerDays>,
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
            quota: 10,
            largest_quota: 10,
            today: 0,
            ledger: LedgerDays::default(),
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
            FleetStep::Lose { which, reply: true } => drop(pick(&mut self.replies, which, false)),
            FleetStep::Lose {
                which,
                reply: false,
            } => drop(pick(&mut self.reports, which, false)),
            FleetStep::Spend { node } => {
                let node = &mut self.nodes[node];
                if node.spent < node.known.held() {
                    node.spent += 1;
                    *self.spent.entry(node.day).or_default() += 1;
                }
            }
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
            FleetStep::Midnight => self.today += 1,
            FleetStep::NextDay { node } => {
                let today = self.today;
                let rules = self.rules;
                let node = &mut self.nodes[node];
                let is_kept = rules == LedgerRules::KeepsUnits || node.day == today;
                let empty = FleetNode {
                    id: node.id,
                    ..FleetNode::default()
                };
                *node = FleetNode {
                    day: today,
                    ..if is_kept { *node } else { empty }
                };
            }
            FleetStep::Silence { node } => self.silence(node),
            FleetStep::Quota(quota) => {
                self.quota = quota;
                self.largest_quota = self.largest_quota.max(quota);
            }
            FleetStep::Failover { lost } => self.fail_over(lost),
        }
    }

    fn report(&mut self, node: usize, units: u32) {
        let FleetNode { id, day, known, .. } = self.nodes[node];
        let report = NodeReport {
            known,
            granted: known.granted + units,
            quota: self.quota,
        };
        self.reports.push(SentReport {
            id,
            day,
            report,
            snapshot: self.ledger.rows(day),
        });
    }

    fn deliver(&mut self, sent: &SentReport) {
        self.commits.push(self.ledger.clone());
        self.ledger.today = self.ledger.today.max(sent.day);
        let day = if self.rules == LedgerRules::AnyDay {
            self.ledger.today
        } else {
            sent.day
        };
        if day < self.ledger.today {
            return;
        }
        let mut rows = self.ledger.rows(day);
        let before = rows.node(sent.id);
        let (total, after) = match self.rules {
            LedgerRules::Totals
            | LedgerRules::Reclaim
            | LedgerRules::AnyDay
            | LedgerRules::KeepsUnits => rows.total.apply(before, &sent.report),
            LedgerRules::NoReassertion => {
                let known = NodeTotals {
                    granted: before.granted,
                    ..sent.report.known
                };
                rows.total.apply(
                    before,
                    &NodeReport {
                        known,
                        ..sent.report
                    },
                )
            }
            LedgerRules::Increments => {
                let units = sent.report.granted - sent.report.known.granted;
                let known = before.merged(sent.report.known);
                let report = NodeReport {
                    known,
                    granted: before.granted + units,
                    ..sent.report
                };
                rows.total.apply(before, &report)
            }
            LedgerRules::OldSnapshot => {
                let old = sent.snapshot.node(sent.id);
                let (total, node) = sent.snapshot.total.apply(old, &sent.report);
                let units = node.granted - old.granted;
                let granted = rows.total.granted + total.granted - sent.snapshot.total.granted;
                let after = NodeTotals {
                    granted: before.granted + units,
                    ..node
                };
                (DayTotals { granted }, after)
            }
        };
        rows.total = total;
        rows.set(sent.id, after);
        self.ledger.days.insert(day, rows);
        self.replies.push(SentReply {
            id: sent.id,
            day: sent.day,
            totals: after,
            units: after.granted - before.granted,
        });
    }

    fn receive(&mut self, reply: SentReply) {
        let Some(node) = self
            .nodes
            .iter_mut()
            .find(|node| (node.id, node.day) == (reply.id, reply.day))
        else {
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
            let mut rows = self.ledger.rows(day);
            let row = rows.node(id);
            rows.total.granted -= u64::from(row.held());
            rows.set(
                id,
                NodeTotals {
                    returned: row.granted,
                    ..row
                },
            );
            self.ledger.days.insert(day, rows);
        }
    }

    fn fail_over(&mut self, lost: usize) {
        let kept = self.commits.len().saturating_sub(lost);
        let Some(older) = self.commits.get(kept).cloned() else {
            return;
        };
        self.commits.truncate(kept);
        for (day, rows) in &self.ledger.days {
            for (id, node) in rows.nodes.iter().enumerate() {
                self.forgotten += u64::from(
                    node.granted
                        .saturating_sub(older.rows(*day).node(id).granted),
                );
            }
        }
        self.ledger = older;
    }

    /// Every node reports what it knows.
    fn reassert(&mut self) {
        for node in 0..NODES {
            self.take(FleetStep::NextDay { node });
            self.report(node, 0);
            let sent = self.reports.pop().unwrap();
            self.deliver(&sent);
            let reply = self.replies.pop().unwrap();
            self.receive(reply);
        }
    }

    /// Units granted in the current day, and units that nodes hold.
    fn granted_and_known(&self) -> (u64, u64) {
        let known = self
            .nodes
            .iter()
            .map(|node| u64::from(node.known.held()))
            .sum();
        (self.ledger.rows(self.today).total.granted, known)
    }

    fn check(&self) -> Result<(), String> {
        let most = u64::from(self.largest_quota) + self.forgotten;
        if let Some((day, spent)) = self.spent.iter().find(|(_, spent)| **spent > most) {
            return Err(format!("{spent} units of day {day} were spent of {most}"));
        }
        for (day, rows) in &self.ledger.days {
            let held: u64 = rows.nodes.iter().map(|node| u64::from(node.held())).sum();
            if rows.total.granted != held {
                return Err(format!(
                    "the total of day {day} is {}, nodes hold {held}",
                    rows.total.granted
                ));
            }
        }
        Ok(())
    }
}

fn pick<T: Clone>(from: &mut Vec<T>, which: usize, again: bool) -> Option<T> {
    let index = which.checked_rem(from.len())?;
    Some(if again {
        from[index].clone()
    } else {
        from.swap_remove(index)
    })
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

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn nodes_never_spend_more_than_the_quota(steps in prop::collection::vec(step(0), 1..150)) {
        let held = run(LedgerRules::Totals, &steps).map(|_| ());
        prop_assert!(held.is_ok(), "{:?}", held);
    }

    #[test]
    fn after_a_failover_nodes_spend_at_most_the_lost_units_more_and_reports_restore_the_total(
        steps in prop::collection::vec(step(1), 1..150),
    ) {
        match run(LedgerRules::Totals, &steps) {
            Ok(mut fleet) => {
                fleet.reassert();
                let (granted, known) = fleet.granted_and_known();
                prop_assert!(granted >= known);
                prop_assert_eq!(fleet.check(), Ok(()));
            }
            Err(broken) => prop_assert!(false, "{}", broken),
        }
    }
}

/// Whether one of this many schedules shows that these rules are wrong.
fn is_found(rules: LedgerRules, failovers: u32, schedules: u32) -> bool {
    let mut runner = TestRunner::deterministic();
    let steps = prop::collection::vec(step(failovers), 1..150);
    (0..schedules).any(|_| {
        let steps = steps.new_tree(&mut runner).unwrap().current();
        let Ok(mut fleet) = run(rules, &steps) else {
            return true;
        };
        fleet.reassert();
        let (granted, known) = fleet.granted_and_known();
        granted < known
    })
}

#[test]
fn the_schedules_find_every_known_bug() {
    for rules in [
        LedgerRules::Increments,
        LedgerRules::OldSnapshot,
        LedgerRules::Reclaim,
    ] {
        assert!(is_found(rules, 0, 1_000), "{rules:?}");
    }
    for rules in [LedgerRules::AnyDay, LedgerRules::KeepsUnits] {
        assert!(is_found(rules, 0, 20_000), "{rules:?}");
    }
    assert!(is_found(LedgerRules::NoReassertion, 1, 1_000));
    assert!(!is_found(LedgerRules::Totals, 1, 1_000));
}
