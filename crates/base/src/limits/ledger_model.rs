//! The rows of a ledger, and correct and incorrect rules, for the random schedules of `ledger_schedules`.

use std::collections::BTreeMap;

use super::day_ledger::NodeTotals;

/// Number of days in a month, small enough that schedules contain several months.
pub const MONTH: usize = 2;

/// The correct rules of the ledger and the nodes, and incorrect variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerRules {
    Totals,
    /// Bug: requests and replies carry numbers of units instead of totals.
    Increments,
    /// Bug: the ledger uses the rows as they were when the report was sent, like a statement that waited for a lock.
    OldSnapshot,
    /// Bug: the ledger takes back the units of a node that was silent for a long time.
    Reclaim,
    /// Bug: the ledger does not adopt larger totals from a report.
    NoReassertion,
    /// Bug: the ledger applies every report to the current day.
    AnyDay,
    /// Bug: a node spends its remaining units on the next day.
    KeepsUnits,
    /// Bug: a grant is limited only by the quota of the day, not of the month.
    DayDecides,
    /// Bug: grants change the month's units, but returns do not.
    KeepsReturned,
    /// Bug: the month's units change by the difference in the report, not by the change in the node's totals.
    MonthIncrements,
    /// Bug: units count in the ledger's current month, not in the month of their day.
    MonthOfLedger,
    /// Bug: a node returns all units of yesterday, including spent units.
    ReturnsSpent,
}

/// A ledger, which opens days and never reopens one.
#[derive(Clone, Debug, Default)]
pub struct LedgerRows {
    pub today: usize,
    /// Units granted and not returned, by day and by month.
    pub days: BTreeMap<usize, u64>,
    pub months: BTreeMap<usize, u64>,
    /// Totals of a node on a day.
    pub nodes: BTreeMap<(usize, usize), NodeTotals>,
}

impl LedgerRows {
    pub fn of_day(&self, day: usize) -> u64 {
        self.days.get(&day).copied().unwrap_or_default()
    }

    pub fn of_month(&self, month: usize) -> u64 {
        self.months.get(&month).copied().unwrap_or_default()
    }

    pub fn node(&self, day: usize, id: usize) -> NodeTotals {
        self.nodes.get(&(day, id)).copied().unwrap_or_default()
    }

    /// Units of a day that nodes hold.
    pub fn held(&self, day: usize) -> u64 {
        let nodes = self.nodes.range((day, 0)..(day + 1, 0));
        nodes.map(|(_, node)| u64::from(node.held())).sum()
    }

    /// Units that are granted in these rows but not in the older rows. A failover to the older rows loses them.
    pub fn granted_since(&self, older: &Self) -> u64 {
        self.nodes
            .iter()
            .map(|((day, id), node): (&(usize, usize), &NodeTotals)| {
                node.granted.saturating_sub(older.node(*day, *id).granted)
            })
            .map(u64::from)
            .sum()
    }
}
