//! An exhaustive model of leases and the settlement of days: all orders of the steps of two gateways and their ledger, over a
//! month of two days and the day after it. Longer random schedules with failovers are in `ledger_schedules`.
//!
//! A step applies the functions of `limits`. For each safeguard, there is a deliberately incorrect set of rules without it, which must break a property.

mod search;

use crate::clock::Day;

use super::{
    day_ledger::{NodeReport, NodeTotals, WindowTotals},
    lease::DayBalance,
    settlement::{ConfirmedTotals, EndedDay},
};

const NODES: usize = 2;
/// The first two days form the month. On the last day, nothing is leased.
const DAYS: usize = 3;
const LAST: usize = DAYS - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SettlementRules {
    Correct,
    /// A process forgets that a reply was lost.
    ForgetsLostReply,
    /// Units that were leased ahead are forgotten if their day has no request.
    ForgetsAhead,
    /// A request that ends after midnight returns nothing.
    ForgetsHeldUnit,
    /// The last report returns units of requests in flight.
    ReturnsHeld,
    /// Units of yesterday are spent.
    KeepsUnits,
    /// The ledger takes back the units of a node whose call failed.
    Reclaims,
    /// Grants need not fit into the month.
    DayDecides,
    /// Returns are not subtracted from the month.
    KeepsReturned,
    /// A new process reuses the number of the process that crashed.
    ReusesNumber,
    /// The ledger ignores reports about yesterday.
    ClosesYesterday,
}

/// A call of a node: its report, and the reply if the ledger has applied it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NodeCall {
    day: Day,
    report: NodeReport,
    reply: Option<NodeTotals>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct ModelNode {
    id: usize,
    balance: DayBalance,
    confirmed: ConfirmedTotals,
    ended: Option<EndedDay>,
    ahead: Option<(DayBalance, ConfirmedTotals)>,
    call: Option<NodeCall>,
    /// The day of the request in flight.
    held: Option<Day>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct ModelFleet {
    today: usize,
    nodes: [ModelNode; NODES],
    /// Totals of each process by day. The process that starts after a crash has the last number.
    rows: [[NodeTotals; DAYS]; NODES + 1],
    spent: [[u32; DAYS]; NODES + 1],
    days: [u64; DAYS],
    month: u64,
    /// Whether the first day ended with the outcome of a call unknown.
    is_uncertain: bool,
    /// Number of lost replies, requests without data, returns and crashes.
    faults: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SettlementStep {
    Lease(usize),
    LeaseAhead(usize),
    /// The ledger applies the report of the call, even if it was already applied.
    Deliver(usize),
    Reply(usize),
    Lose(usize),
    Request(usize),
    /// The request in flight ends. Its unit is spent if `kept`.
    End {
        node: usize,
        kept: bool,
    },
    /// The first node returns idle units once a day, as after a change of terms.
    Return,
    OpenDay(usize),
    Settle(usize),
    /// The first node ends without a shutdown, and another begins.
    Crash,
    Midnight,
}

#[derive(Clone)]
struct SettlementModel {
    rules: SettlementRules,
    day: u32,
    month: u32,
    faults: u32,
}

fn number(day: Day) -> usize {
    day.number() as usize
}

fn day(number: usize) -> Day {
    Day::from_number(u32::try_from(number).unwrap())
}

impl SettlementStep {
    const fn is_fault(self) -> bool {
        matches!(
            self,
            Self::Lose(_) | Self::End { kept: false, .. } | Self::Return | Self::Crash
        )
    }
}

impl ModelNode {
    fn calls(&mut self, day: Day, report: NodeReport) {
        let reply = None;
        self.call = Some(NodeCall { day, report, reply });
    }

    /// Whether the node has nothing left to do for past days.
    fn is_settled(&self, today: usize) -> bool {
        let call = self.call.map(|call| call.day);
        number(self.balance.day()) == today
            && self.ended.and_then(EndedDay::report).is_none()
            && ![call, self.held]
                .into_iter()
                .flatten()
                .any(|day| number(day) < today)
    }
}

impl SettlementModel {
    fn is(&self, rules: SettlementRules) -> bool {
        self.rules == rules
    }

    fn deliver(&self, fleet: &mut ModelFleet, node: usize) -> Option<()> {
        let id = fleet.nodes[node].id;
        let mut call = fleet.nodes[node].call?;
        let on = number(call.day);
        let is_yesterday = on + 1 == fleet.today;
        if is_yesterday && (call.report.quota > 0 || self.is(SettlementRules::ClosesYesterday)) {
            return self.lose(fleet, node);
        }
        let is_limited = !self.is(SettlementRules::DayDecides);
        let mut windows = [
            (fleet.days[on], Some(call.report.quota)),
            (fleet.month, is_limited.then_some(self.month)),
        ]
        .map(|(granted, quota)| WindowTotals { granted, quota });
        let row = &mut fleet.rows[id][on];
        *row = row.apply(&call.report, &mut windows);
        call.reply = Some(*row);
        fleet.nodes[node].call = Some(call);
        let [of_day, of_month] = windows.map(|window| window.granted);
        fleet.days[on] = of_day;
        if on < LAST {
            let is_return = of_month < fleet.month;
            if !(is_return && self.is(SettlementRules::KeepsReturned)) {
                fleet.month = of_month;
            }
        }
        Some(())
    }

    fn reply(node: &mut ModelNode) -> Option<()> {
        let call = node.call?;
        let totals = call.reply?;
        node.call = None;
        // Units of other nodes are left out: no property depends on them.
        let granted = totals.held().into();
        let confirmed = ConfirmedTotals::new(totals);
        if call.day == node.balance.day() {
            node.balance = node.balance.apply(call.day, totals, granted);
            node.confirmed = confirmed;
        } else if call.day > node.balance.day() {
            let ahead = DayBalance::opened(call.day, 0).apply(call.day, totals, granted);
            node.ahead = Some((ahead, confirmed));
        } else if let Some(ended) = node.ended.as_mut().filter(|ended| ended.day() == call.day) {
            *ended = ended.apply(totals, granted);
        }
        Some(())
    }

    fn lose(&self, fleet: &mut ModelFleet, node: usize) -> Option<()> {
        let node = &mut fleet.nodes[node];
        let call = node.call.take()?;
        if self.is(SettlementRules::Reclaims) {
            let row = &mut fleet.rows[node.id][fleet.today];
            let held = u64::from(row.held());
            row.returned = row.granted;
            fleet.days[fleet.today] -= held;
            fleet.month -= held;
        }
        if self.is(SettlementRules::ForgetsLostReply) {
            return Some(());
        }
        if call.day == node.balance.day() {
            node.confirmed = node.confirmed.without_reply();
        } else if call.day > node.balance.day() {
            let empty = (DayBalance::opened(call.day, 0), ConfirmedTotals::default());
            let (ahead, confirmed) = node.ahead.unwrap_or(empty);
            node.ahead = Some((ahead, confirmed.without_reply()));
        } else if let Some(ended) = node.ended.as_mut().filter(|ended| ended.day() == call.day) {
            *ended = ended.without_reply();
        }
        Some(())
    }

    fn end(&self, fleet: &mut ModelFleet, node: usize, kept: bool) -> Option<()> {
        let node = &mut fleet.nodes[node];
        let held = node.held.take()?;
        fleet.spent[node.id][number(held)] += u32::from(kept);
        node.balance = node.balance.settle(held, kept);
        let ended = node.ended.as_mut().filter(|ended| ended.day() == held);
        if let Some(ended) = ended
            && !self.is(SettlementRules::ForgetsHeldUnit)
        {
            *ended = ended.settle(kept);
        }
        Some(())
    }

    fn open_day(&self, node: &mut ModelNode, today: Day) {
        let mut ended = node.balance;
        if self.is(SettlementRules::ReturnsHeld) {
            ended = ended.settle(ended.day(), false);
        }
        node.ended = Some(EndedDay::new(ended, node.confirmed));
        let ahead = node.ahead.take();
        let is_kept = !self.is(SettlementRules::ForgetsAhead);
        let empty = (ended.on(today), ConfirmedTotals::default());
        (node.balance, node.confirmed) = ahead.filter(|_| is_kept).unwrap_or(empty);
        if self.is(SettlementRules::KeepsUnits) {
            let units = ended.leased() - ended.spent();
            node.balance = node.balance.grant(today, units, 0, units.into());
        }
    }

    fn settle(node: &mut ModelNode) -> Option<()> {
        let ended = node.ended?;
        let report = ended.report()?;
        node.calls(ended.day(), report);
        Some(())
    }

    fn crash(&self, fleet: &mut ModelFleet) {
        let [node, _] = &mut fleet.nodes;
        let reused = self.is(SettlementRules::ReusesNumber);
        *node = ModelNode {
            id: if reused { node.id } else { NODES },
            balance: DayBalance::opened(day(fleet.today), 0),
            ..ModelNode::default()
        };
    }

    fn lease(&self, node: &mut ModelNode) -> Option<()> {
        let report = node.balance.report(self.day);
        let is_wanted = report.granted > report.known.granted;
        (node.call.is_none() && is_wanted && number(node.balance.day()) < LAST)
            .then(|| node.calls(node.balance.day(), report))
    }

    fn lease_ahead(&self, node: &mut ModelNode) -> Option<()> {
        let next = node.balance.day().next();
        let report = DayBalance::opened(next, 0).report_ahead(self.day);
        let is_due = number(next) < LAST && node.ahead.is_none() && node.call.is_none();
        is_due.then(|| node.calls(next, report))
    }

    fn request(&self, node: &mut ModelNode) -> Option<()> {
        let held = node.balance.hold(self.day);
        node.balance = held.filter(|_| node.held.is_none())?;
        node.held = Some(node.balance.day());
        Some(())
    }

    fn begin_day(&self, fleet: &mut ModelFleet, node: usize) -> Option<()> {
        let today = fleet.today;
        let node = &mut fleet.nodes[node];
        let is_due = number(node.balance.day()) < today;
        let is_open = is_due && today < LAST && node.call.is_none();
        fleet.is_uncertain |= is_open && node.confirmed.is_uncertain();
        is_due.then(|| self.open_day(node, day(today)))
    }

    fn return_idle(fleet: &mut ModelFleet) -> Option<()> {
        let [node, _] = &mut fleet.nodes;
        let is_first = node.balance.totals().returned == 0;
        is_first.then(|| node.balance = node.balance.without_idle())
    }

    /// Ends the day. An outage ends before the next midnight, so every node is settled by then.
    fn end_day(fleet: &mut ModelFleet) -> Option<()> {
        let today = fleet.today;
        let is_due = fleet.nodes.iter().all(|node| node.is_settled(today));
        (is_due && today < LAST).then(|| fleet.today += 1)
    }

    /// Applies a step. `None` if it is not possible.
    fn take(&self, fleet: &mut ModelFleet, step: SettlementStep) -> Option<()> {
        match step {
            SettlementStep::Lease(node) => self.lease(&mut fleet.nodes[node]),
            SettlementStep::LeaseAhead(node) => self.lease_ahead(&mut fleet.nodes[node]),
            SettlementStep::Deliver(node) => self.deliver(fleet, node),
            SettlementStep::Reply(node) => Self::reply(&mut fleet.nodes[node]),
            SettlementStep::Lose(node) => self.lose(fleet, node),
            SettlementStep::Request(node) => self.request(&mut fleet.nodes[node]),
            SettlementStep::End { node, kept } => self.end(fleet, node, kept),
            SettlementStep::Return => Self::return_idle(fleet),
            SettlementStep::OpenDay(node) => self.begin_day(fleet, node),
            SettlementStep::Settle(node) => {
                let node = &mut fleet.nodes[node];
                node.call.is_none().then(|| Self::settle(node))?
            }
            SettlementStep::Crash => {
                let is_first = fleet.has_first_nodes();
                (is_first && fleet.today < LAST).then(|| self.crash(fleet))
            }
            SettlementStep::Midnight => Self::end_day(fleet),
        }
    }
}

impl ModelFleet {
    /// Whether no node has crashed.
    fn has_first_nodes(&self) -> bool {
        self.nodes.iter().all(|node| node.id < NODES)
    }

    /// Whether the month's whole quota was spent even though a reply was lost before midnight.
    fn is_whole(&self, quota: u32) -> bool {
        let is_over = self.today == LAST && self.has_first_nodes();
        is_over && self.is_uncertain && self.spent_on(0..LAST) == quota
    }

    /// Units of a day that a process may hold once it has settled the day; `None` until then.
    fn due(&self, id: usize, on: usize) -> Option<u32> {
        let node = self.nodes.iter().find(|node| node.id == id)?;
        let is_over = on < number(node.balance.day()) && node.is_settled(self.today);
        is_over.then(|| self.spent[id][on])
    }

    fn spent_on(&self, days: std::ops::Range<usize>) -> u32 {
        self.spent
            .iter()
            .map(|spent| spent[days.clone()].iter().sum::<u32>())
            .sum()
    }

    fn held(&self, on: usize) -> u64 {
        self.rows.iter().map(|row| u64::from(row[on].held())).sum()
    }

    fn is_settled(&self) -> bool {
        let pairs = (0..=NODES).flat_map(|id| (0..DAYS).map(move |on| (id, on)));
        pairs
            .filter_map(|(id, on)| Some((self.due(id, on)?, self.rows[id][on])))
            .all(|(spent, row)| row.held() == spent)
    }

    /// The largest number of units that the crash lost from one day.
    fn lost(&self) -> u32 {
        (0..NODES)
            .filter(|id| self.nodes.iter().all(|node| node.id != *id))
            .filter_map(|id| {
                (0..DAYS)
                    .map(|on| self.rows[id][on].held().saturating_sub(self.spent[id][on]))
                    .max()
            })
            .max()
            .unwrap_or(0)
    }
}
