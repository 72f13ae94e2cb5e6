//! The search through all states, and the properties that every state must have.

#![expect(
    clippy::print_stdout,
    reason = "prints the figures for a page in tests/results"
)]

use std::collections::{HashSet, VecDeque};

use super::{DAYS, LAST, ModelFleet, NODES, SettlementModel, SettlementRules, SettlementStep};

const NEVER_OVER: &str = "no quota is exceeded";
const COUNTED: &str = "a window counts the units held for its days";
const SETTLED: &str = "nodes hold exactly the spent units of a settled day";
const BOUNDED: &str = "a crash costs at most one lease and one request in each day";
const WHOLE: &str = "a whole month can be spent although a reply was lost before midnight";

type Holds = fn(&SettlementModel, &ModelFleet) -> bool;
const PROPERTIES: [(&str, Holds); 4] = [
    (NEVER_OVER, |model, fleet| {
        let of_days = (0..DAYS).map(|on| fleet.spent_on(on..on + 1));
        of_days.max() <= Some(model.day) && fleet.spent_on(0..LAST) <= model.month
    }),
    (COUNTED, |_, fleet| {
        let month: u64 = (0..LAST).map(|on| fleet.held(on)).sum();
        (0..DAYS).all(|on| fleet.days[on] == fleet.held(on)) && fleet.month == month
    }),
    (SETTLED, |_, fleet| fleet.is_settled()),
    (BOUNDED, |_, fleet| fleet.lost() <= 2),
];

/// The result of a breadth-first search.
#[derive(Default)]
struct Explored {
    states: usize,
    /// Steps to the last state.
    depth: usize,
    broken: Option<&'static str>,
    /// Whether a state has the property [`WHOLE`].
    is_whole: bool,
}

impl SettlementModel {
    fn steps() -> Vec<SettlementStep> {
        let mut steps = vec![
            SettlementStep::Midnight,
            SettlementStep::Return,
            SettlementStep::Crash,
        ];
        for node in 0..NODES {
            steps.extend([
                SettlementStep::Lease(node),
                SettlementStep::LeaseAhead(node),
                SettlementStep::Deliver(node),
                SettlementStep::Reply(node),
                SettlementStep::Lose(node),
                SettlementStep::Request(node),
                SettlementStep::OpenDay(node),
                SettlementStep::Settle(node),
            ]);
            steps.extend([true, false].map(|kept| SettlementStep::End { node, kept }));
        }
        steps
    }

    fn next(&self, fleet: &ModelFleet, step: SettlementStep) -> Option<ModelFleet> {
        let mut next = fleet.clone();
        next.faults += u32::from(step.is_fault());
        self.take(&mut next, step)?;
        (next.faults <= self.faults).then_some(next)
    }

    /// Visits all states until one breaks a property. If `only` is given, only this property is checked.
    fn explore(&self, only: Option<&str>) -> Explored {
        let mut first = ModelFleet::default();
        for (id, node) in first.nodes.iter_mut().enumerate() {
            node.id = id;
        }
        let mut found = Explored::default();
        let mut known = HashSet::from([first.clone()]);
        let mut queue = VecDeque::from([(first, 0)]);
        while let Some((fleet, depth)) = queue.pop_front() {
            found.depth = depth;
            found.is_whole |= fleet.is_whole(self.month);
            let mut properties = PROPERTIES
                .iter()
                .filter(|(name, _)| only.is_none_or(|only| only == *name));
            if let Some((property, _)) = properties.find(|(_, holds)| !holds(self, &fleet)) {
                found.broken = Some(property);
                break;
            }
            for step in Self::steps() {
                let next = self.next(&fleet, step);
                if let Some(next) = next.filter(|next| !known.contains(next)) {
                    known.insert(next.clone());
                    queue.push_back((next, depth + 1));
                }
            }
        }
        found.states = known.len();
        found
    }
}

fn model(rules: SettlementRules, [day, month, faults]: [u32; 3]) -> SettlementModel {
    SettlementModel {
        rules,
        day,
        month,
        faults,
    }
}

#[test]
fn in_all_orders_days_are_settled_and_no_quota_is_exceeded() {
    let is_full = std::env::var_os("SCOREGATE_FULL").is_some();
    let size = if is_full { [2, 3, 1] } else { [1, 1, 1] };
    let found = model(SettlementRules::Correct, size).explore(None);
    println!("{} states, at most {} steps", found.states, found.depth);
    assert_eq!(found.broken, None);
    assert!(found.is_whole, "{WHOLE}");
}

#[test]
fn each_wrong_rule_breaks_a_property() {
    for (rules, property, [quota, faults]) in [
        (SettlementRules::ForgetsLostReply, SETTLED, [1, 1]),
        (SettlementRules::ForgetsAhead, SETTLED, [1, 0]),
        (SettlementRules::ForgetsHeldUnit, SETTLED, [1, 1]),
        (SettlementRules::ReturnsHeld, NEVER_OVER, [1, 0]),
        (SettlementRules::KeepsUnits, NEVER_OVER, [1, 0]),
        (SettlementRules::Reclaims, NEVER_OVER, [1, 1]),
        (SettlementRules::DayDecides, NEVER_OVER, [1, 0]),
        (SettlementRules::KeepsReturned, COUNTED, [1, 0]),
        (SettlementRules::ReusesNumber, NEVER_OVER, [1, 1]),
        (SettlementRules::ClosesYesterday, WHOLE, [1, 1]),
    ] {
        let found = model(rules, [quota, quota, faults]).explore(Some(property));
        println!("{rules:?}: {} steps, {} states", found.depth, found.states);
        let broken = found.broken.or((!found.is_whole).then_some(WHOLE));
        assert_eq!(broken, Some(property), "{rules:?}");
    }
}
