//! Random schedules of several nodes while the daily quota changes. Nodes receive a change late, return units that
//! they leased before, and abandon calls that the ledger may still apply.
//!
//! Once every node has returned its units after a change, no request beyond the new quota is served, and all of the
//! quota can be used. The same schedules run against rules with known bugs, and must find each bug.

use proptest::prelude::*;

use crate::clock::Day;

use super::{
    day_ledger::{DayTotals, NodeReport, NodeTotals},
    found_bugs::is_found,
    lease::DayBalance,
};

const CASES: u32 = 10_000;
const NODES: usize = 3;
const TODAY: Day = Day::from_number(20_000);

#[derive(Clone, Copy, Debug)]
enum TermsStep {
    /// Requests of a caller. Each is served unless the node must lease units first.
    Requests {
        node: usize,
        count: u32,
    },
    /// The ledger applies the report in flight, and the reply arrives.
    Exchange(usize),
    /// The ledger applies the report in flight.
    Decide(usize),
    /// The reply arrives.
    Answer(usize),
    /// The node abandons its call. The ledger may apply the report later.
    Abandon(usize),
    /// The ledger applies an abandoned report.
    DecideLate(usize),
    /// The quota changes, but only in the ledger.
    Change(u32),
    /// A node receives the newest quota.
    Learn(usize),
    /// A node that received a change returns its units.
    Return(usize),
    Crash(usize),
}

fn step() -> impl Strategy<Value = TermsStep> {
    let node = || 0..NODES;
    prop_oneof![
        24 => (node(), 1u32..8).prop_map(|(node, count)| TermsStep::Requests { node, count }),
        20 => node().prop_map(TermsStep::Exchange),
        4 => node().prop_map(TermsStep::Decide),
        4 => node().prop_map(TermsStep::Answer),
        2 => node().prop_map(TermsStep::Abandon),
        2 => (0usize..4).prop_map(TermsStep::DecideLate),
        1 => prop_oneof![Just(1_000u32), 1u32..150].prop_map(TermsStep::Change),
        6 => node().prop_map(TermsStep::Learn),
        6 => node().prop_map(TermsStep::Return),
        1 => node().prop_map(TermsStep::Crash),
    ]
}

/// The correct rules of the nodes and incorrect variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TermsRules {
    Right,
    /// Bug: nodes keep units that they leased before a change.
    Keep,
    /// Bug: nodes spend all leased units, regardless of the quota.
    SpendAll,
}

/// A quota and the number of changes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NumberedQuota {
    change: u32,
    quota: u32,
}

#[derive(Clone, Copy, Debug)]
struct TermsCall {
    id: usize,
    report: NodeReport,
    assumed: NumberedQuota,
    is_return: bool,
    /// The reply, and the number of changes at the time of the decision.
    reply: Option<(NodeTotals, u64, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct TermsNode {
    id: usize,
    balance: DayBalance,
    known: NumberedQuota,
    /// The last change for which the return of units was confirmed.
    returned_after: u32,
    must_return: bool,
    call: Option<TermsCall>,
}

struct TermsFleet {
    rules: TermsRules,
    current: NumberedQuota,
    total: DayTotals,
    rows: Vec<NodeTotals>,
    nodes: Vec<TermsNode>,
    abandoned: Vec<TermsCall>,
    spent: u64,
}

impl TermsFleet {
    fn new(rules: TermsRules) -> Self {
        let current = NumberedQuota {
            change: 0,
            quota: 1_000,
        };
        let mut fleet = Self {
            rules,
            current,
            total: DayTotals::default(),
            rows: Vec::new(),
            nodes: Vec::new(),
            abandoned: Vec::new(),
            spent: 0,
        };
        fleet.nodes = (0..NODES).map(|_| fleet.started()).collect();
        fleet
    }

    /// A new node, which reads the quota and the total from the ledger.
    fn started(&mut self) -> TermsNode {
        self.rows.push(NodeTotals::default());
        let balance = DayBalance::opened(TODAY, self.total.granted);
        let known = self.current;
        let returned_after = self.current.change;
        TermsNode {
            id: self.rows.len() - 1,
            balance,
            known,
            returned_after,
            must_return: false,
            call: None,
        }
    }

    fn take(&mut self, step: TermsStep) -> Result<(), String> {
        match step {
            TermsStep::Requests { node, count } => {
                return (0..count).try_for_each(|_| self.request(node));
            }
            TermsStep::Exchange(node) => self.exchange(node),
            TermsStep::Decide(node) => self.decide_next(node),
            TermsStep::Answer(node) => self.answer(node),
            TermsStep::Abandon(node) => {
                let call = self.nodes[node].call.take();
                self.abandoned
                    .extend(call.filter(|call| call.reply.is_none()));
            }
            TermsStep::DecideLate(which) => {
                if let Some(which) = which.checked_rem(self.abandoned.len()) {
                    let call = self.abandoned.swap_remove(which);
                    self.decide(call);
                }
            }
            TermsStep::Change(quota) => {
                self.current = NumberedQuota {
                    change: self.current.change + 1,
                    quota,
                };
            }
            TermsStep::Learn(node) => {
                let current = self.current;
                let node = &mut self.nodes[node];
                node.must_return |= node.known != current;
                node.known = current;
            }
            TermsStep::Return(node) => self.give_back(node),
            TermsStep::Crash(node) => {
                let call = self.nodes[node].call.take();
                self.abandoned
                    .extend(call.filter(|call| call.reply.is_none()));
                self.nodes[node] = self.started();
            }
        }
        Ok(())
    }

    fn request(&mut self, node: usize) -> Result<(), String> {
        let rules = self.rules;
        let current = self.current;
        let is_settled = self
            .nodes
            .iter()
            .all(|node| node.returned_after == current.change);
        let node = &mut self.nodes[node];
        let quota = if rules == TermsRules::SpendAll {
            u32::MAX
        } else {
            node.known.quota
        };
        if let Some(held) = node.balance.hold(quota) {
            node.balance = held.settle(TODAY, true);
            self.spent += 1;
            let is_allowed = !is_settled || self.spent <= u64::from(current.quota);
            return is_allowed
                .then_some(())
                .ok_or_else(|| format!("{} of {} units were spent", self.spent, current.quota));
        }
        if node.call.is_none() {
            node.balance = node.balance.without_excess(node.known.quota);
            let report = node.balance.report(node.known.quota);
            let id = node.id;
            let assumed = node.known;
            node.call = Some(TermsCall {
                id,
                report,
                assumed,
                is_return: false,
                reply: None,
            });
        }
        Ok(())
    }

    fn give_back(&mut self, node: usize) {
        let node = &mut self.nodes[node];
        if !node.must_return || node.call.is_some() {
            return;
        }
        node.must_return = false;
        if self.rules == TermsRules::Keep {
            node.returned_after = node.known.change;
            return;
        }
        let (left, report) = node.balance.release();
        node.balance = left;
        let report = report.unwrap_or(NodeReport {
            known: left.totals(),
            ..NodeReport::default()
        });
        let id = node.id;
        let assumed = node.known;
        node.call = Some(TermsCall {
            id,
            report,
            assumed,
            is_return: true,
            reply: None,
        });
    }

    /// The ledger grants nothing if the terms are outdated.
    fn decide(&mut self, mut call: TermsCall) -> TermsCall {
        let quota = if call.assumed == self.current {
            call.report.quota
        } else {
            0
        };
        let (total, row) = self.total.apply(
            self.rows[call.id],
            &NodeReport {
                quota,
                ..call.report
            },
        );
        (self.total, self.rows[call.id]) = (total, row);
        call.reply = Some((row, total.granted, self.current.change));
        call
    }

    fn exchange(&mut self, node: usize) {
        self.decide_next(node);
        self.answer(node);
    }

    fn decide_next(&mut self, node: usize) {
        if let Some(call) = self.nodes[node].call.filter(|call| call.reply.is_none()) {
            self.nodes[node].call = Some(self.decide(call));
        }
    }

    /// All nodes receive the newest quota and return their units. Then they use up the rest of the quota.
    fn finish(&mut self) -> Result<(), String> {
        for node in 0..NODES {
            self.take(TermsStep::Learn(node))?;
            self.exchange(node);
            self.give_back(node);
            self.exchange(node);
        }
        for node in (0..NODES).chain(0..NODES) {
            let mut served = None;
            while served != Some(self.spent) {
                served = Some(self.spent);
                // Three attempts: one returns units, one leases units, and one is served.
                for _ in 0..3 {
                    self.request(node)?;
                    self.exchange(node);
                }
            }
        }
        if self.total.granted < u64::from(self.current.quota) {
            return Err(format!(
                "not all of the {} units were leased",
                self.current.quota
            ));
        }
        let idle: u64 = self
            .nodes
            .iter()
            .map(|node| u64::from(node.balance.unspent()))
            .sum();
        if idle > 0 {
            return Err(format!("{idle} units were leased but not spent"));
        }
        Ok(())
    }

    fn answer(&mut self, node: usize) {
        let node = &mut self.nodes[node];
        let Some(call) = node.call.filter(|call| call.reply.is_some()) else {
            return;
        };
        let Some((totals, total, change)) = call.reply else {
            return;
        };
        node.call = None;
        node.balance = node.balance.apply(TODAY, totals, total);
        if call.is_return && call.assumed.change == change {
            node.returned_after = change;
        }
    }
}

fn run(rules: TermsRules, steps: &[TermsStep]) -> Result<(), String> {
    let mut fleet = TermsFleet::new(rules);
    steps.iter().try_for_each(|step| fleet.take(*step))?;
    fleet.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn once_nodes_returned_their_units_exactly_the_new_quota_is_served(
        steps in prop::collection::vec(step(), 1..300),
    ) {
        prop_assert_eq!(run(TermsRules::Right, &steps), Ok(()));
    }
}

#[test]
fn the_schedules_of_terms_find_every_known_bug() {
    let steps = prop::collection::vec(step(), 300..301);
    for (rules, is_bug) in [
        (TermsRules::Keep, true),
        (TermsRules::SpendAll, true),
        (TermsRules::Right, false),
    ] {
        let breaks = |steps: Vec<TermsStep>| run(rules, &steps).is_err();
        assert_eq!(is_found(&steps, 4_000, breaks), is_bug, "{rules:?}");
    }
}
