//! Random schedules of several nodes over days and months: reports and replies that are lost, repeated, delayed and
//! reordered, crashes, midnights and ends of months. Nodes return the units of yesterday that they did not spend.
//!
//! The same schedules run against rules with known bugs, and must find each of them.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use super::day_ledger::{NodeReport, NodeTotals, WindowTotals};

const CASES: u32 = 20_000;
const NODES: usize = 3;
/// Days of a month, so that schedules contain several.
const MONTH: usize = 2;
const DAY_QUOTA: u32 = 6;
const MONTH_QUOTA: u32 = 9;

#[derive(Clone, Copy, Debug)]
enum WindowStep {
    /// A node sends a report that requests this many units more.
    Report {
        node: usize,
        units: u32,
    },
    /// A node sends a report that returns units of yesterday.
    ReportEnded {
        node: usize,
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
    /// A report is lost.
    Lose {
        which: usize,
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
    /// A day begins. Each node notices it later.
    Midnight,
    /// A node's clock shows the current day.
    NextDay {
        node: usize,
    },
}

fn step() -> impl Strategy<Value = WindowStep> {
    let node = || 0..NODES;
    let which = || 0usize..6;
    prop_oneof![
        8 => (node(), 0u32..6).prop_map(|(node, units)| WindowStep::Report { node, units }),
        3 => node().prop_map(|node| WindowStep::ReportEnded { node }),
        10 => (which(), any::<bool>()).prop_map(|(which, again)| WindowStep::Deliver { which, again }),
        8 => (which(), any::<bool>()).prop_map(|(which, again)| WindowStep::Reply { which, again }),
        1 => which().prop_map(|which| WindowStep::Lose { which }),
        12 => node().prop_map(|node| WindowStep::Spend { node }),
        2 => (node(), 1u32..6).prop_map(|(node, units)| WindowStep::GiveBack { node, units }),
        1 => node().prop_map(|node| WindowStep::Crash { node }),
        1 => Just(WindowStep::Midnight),
        4 => node().prop_map(|node| WindowStep::NextDay { node }),
    ]
}

/// The rules of the ledger and of the nodes, and wrong ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WindowRules {
    Right,
    /// Bug: a grant fits into the day only.
    DayDecides,
    /// Bug: the month is changed by grants and not by returns.
    KeepsReturned,
    /// Bug: the month is changed by the difference that the report states, not by that of the node's totals.
    Increments,
    /// Bug: units count in the month in which the ledger is, not in that of their day.
    MonthOfLedger,
    /// Bug: a node returns all units of yesterday, also spent ones.
    ReturnsSpent,
}

#[derive(Clone, Copy, Debug)]
struct SentUnits {
    id: usize,
    day: usize,
    report: NodeReport,
}

#[derive(Clone, Copy, Debug, Default)]
struct WindowNode {
    id: usize,
    day: usize,
    known: NodeTotals,
    spent: u32,
    /// Yesterday, without the units that were not spent.
    ended: Option<NodeTotals>,
}

struct WindowFleet {
    rules: WindowRules,
    /// The day of all clocks, and that of the ledger.
    today: usize,
    opened: usize,
    days: BTreeMap<usize, u64>,
    months: BTreeMap<usize, u64>,
    rows: BTreeMap<(usize, usize), NodeTotals>,
    nodes: [WindowNode; NODES],
    next_id: usize,
    reports: Vec<SentUnits>,
    replies: Vec<SentUnits>,
    spent: BTreeMap<usize, u64>,
}

impl WindowFleet {
    fn new(rules: WindowRules) -> Self {
        Self {
            rules,
            today: 0,
            opened: 0,
            days: BTreeMap::new(),
            months: BTreeMap::new(),
            rows: BTreeMap::new(),
            nodes: std::array::from_fn(|id| WindowNode {
                id,
                ..WindowNode::default()
            }),
            next_id: NODES,
            reports: Vec::new(),
            replies: Vec::new(),
            spent: BTreeMap::new(),
        }
    }

    fn take(&mut self, step: WindowStep) {
        match step {
            WindowStep::Report { node, units } => self.report(node, units),
            WindowStep::ReportEnded { node } => self.report_ended(node),
            WindowStep::Deliver { which, again } => {
                if let Some(sent) = pick(&mut self.reports, which, again) {
                    self.deliver(sent);
                }
            }
            WindowStep::Reply { which, again } => {
                if let Some(reply) = pick(&mut self.replies, which, again) {
                    self.receive(reply);
                }
            }
            WindowStep::Lose { which } => drop(pick(&mut self.reports, which, false)),
            WindowStep::Spend { node } => self.spend(node),
            WindowStep::GiveBack { node, units } => {
                let node = &mut self.nodes[node];
                node.known.returned += units.min(node.known.held().saturating_sub(node.spent));
            }
            WindowStep::Crash { node } => {
                self.nodes[node] = WindowNode {
                    id: self.next_id,
                    day: self.today,
                    ..WindowNode::default()
                };
                self.next_id += 1;
            }
            WindowStep::Midnight => self.today += 1,
            WindowStep::NextDay { node } => self.next_day(node),
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
        let kept = if rules == WindowRules::ReturnsSpent {
            0
        } else {
            node.spent
        };
        let left = NodeTotals {
            returned: node.known.granted.saturating_sub(kept),
            ..node.known
        };
        *node = WindowNode {
            id: node.id,
            day: today,
            ended: (node.day + 1 == today).then_some(left),
            ..WindowNode::default()
        };
    }

    fn report(&mut self, node: usize, units: u32) {
        let WindowNode { id, day, known, .. } = self.nodes[node];
        let report = NodeReport {
            known,
            granted: known.granted + units,
            quota: DAY_QUOTA,
        };
        self.reports.push(SentUnits { id, day, report });
    }

    fn report_ended(&mut self, node: usize) {
        let WindowNode { id, day, ended, .. } = self.nodes[node];
        if let Some(known) = ended {
            let report = NodeReport {
                known,
                ..NodeReport::default()
            };
            let day = day - 1;
            self.reports.push(SentUnits { id, day, report });
        }
    }

    fn deliver(&mut self, sent: SentUnits) {
        let SentUnits { id, day, report } = sent;
        self.opened = self.opened.max(day);
        let is_yesterday = day + 1 == self.opened;
        let only_returns = report.quota == 0;
        if day < self.opened && !(is_yesterday && only_returns) {
            return;
        }
        let month = if self.rules == WindowRules::MonthOfLedger {
            self.opened / MONTH
        } else {
            day / MONTH
        };
        let before = self.rows.get(&(day, id)).copied().unwrap_or_default();
        let counted = self.months.get(&month).copied().unwrap_or_default();
        let limit = |quota: u32| (self.rules != WindowRules::DayDecides).then_some(quota);
        let mut windows = [
            WindowTotals {
                granted: self.days.get(&day).copied().unwrap_or_default(),
                quota: Some(report.quota),
            },
            WindowTotals {
                granted: counted,
                quota: limit(MONTH_QUOTA),
            },
        ];
        let after = before.apply(&report, &mut windows);
        let [of_day, of_month] = windows.map(|window| window.granted);
        let of_month = match self.rules {
            WindowRules::KeepsReturned => counted.max(of_month),
            WindowRules::Increments => {
                counted + u64::from(after.granted.saturating_sub(report.known.granted))
            }
            WindowRules::Right
            | WindowRules::DayDecides
            | WindowRules::MonthOfLedger
            | WindowRules::ReturnsSpent => of_month,
        };
        self.days.insert(day, of_day);
        self.months.insert(month, of_month);
        self.rows.insert((day, id), after);
        let reply = NodeReport {
            known: after,
            ..report
        };
        self.replies.push(SentUnits {
            id,
            day,
            report: reply,
        });
    }

    fn receive(&mut self, reply: SentUnits) {
        let id = (reply.id, reply.day);
        let found = self.nodes.iter_mut().find(|node| (node.id, node.day) == id);
        if let Some(node) = found {
            node.known = node.known.merged(reply.report.known);
        }
    }

    fn check(&self) -> Result<(), String> {
        for (month, counted) in &self.months {
            let days = month * MONTH..(month + 1) * MONTH;
            let spent: u64 = self.spent.range(days.clone()).map(|(_, spent)| spent).sum();
            if spent > MONTH_QUOTA.into() {
                return Err(format!("{spent} units of month {month} were spent"));
            }
            let of_days: u64 = self.days.range(days.clone()).map(|(_, units)| units).sum();
            let rows = self.rows.range((days.start, 0)..(days.end, 0));
            let held: u64 = rows.map(|(_, node)| u64::from(node.held())).sum();
            if *counted != of_days || *counted != held || held < spent {
                return Err(format!(
                    "month {month}: {counted} counted, {of_days} in its days, {held} held, {spent} spent"
                ));
            }
        }
        let over = self
            .spent
            .iter()
            .find(|(_, spent)| **spent > DAY_QUOTA.into());
        over.map_or(Ok(()), |(day, spent)| {
            Err(format!("{spent} units of day {day} were spent"))
        })
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

fn run(rules: WindowRules, steps: &[WindowStep]) -> Result<(), String> {
    let mut fleet = WindowFleet::new(rules);
    for step in steps {
        fleet.take(*step);
        fleet
            .check()
            .map_err(|broken| format!("{step:?}: {broken}"))?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn a_unit_counts_in_day_and_month_or_in_none_and_neither_is_exceeded(
        steps in prop::collection::vec(step(), 1..150),
    ) {
        prop_assert_eq!(run(WindowRules::Right, &steps), Ok(()));
    }
}

/// Whether one of a thousand schedules shows that these rules are wrong.
fn is_found(rules: WindowRules) -> bool {
    let mut runner = TestRunner::deterministic();
    let steps = prop::collection::vec(step(), 1..150);
    (0..1_000).any(|_| run(rules, &steps.new_tree(&mut runner).unwrap().current()).is_err())
}

#[test]
fn the_schedules_of_windows_find_every_known_bug() {
    for rules in [
        WindowRules::DayDecides,
        WindowRules::KeepsReturned,
        WindowRules::Increments,
        WindowRules::MonthOfLedger,
        WindowRules::ReturnsSpent,
    ] {
        assert!(is_found(rules), "{rules:?}");
    }
    assert!(!is_found(WindowRules::Right));
}
