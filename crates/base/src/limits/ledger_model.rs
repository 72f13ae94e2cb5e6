//! The rows of a ledger and its rules, right and wrong ones, for the random schedules of `ledger_schedules`.

use std::collections::BTreeMap;

use super::day_ledger::NodeTotals;

/// Days of a month, so that schedules contain several months.
pub(super) const MONTH: usize = 2;

/// The rules of the ledger and of the nodes, and wrong ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LedgerRules {
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
    /// Bug: a grant fits into the day only.
    DayDecides,
    /// Bug: the month is changed by grants and not by returns.
    KeepsReturned,
    /// Bug: the month is changed by the difference that the report states, not by the node's totals.
    MonthIncrements,
    /// Bug: units count in the month in which the ledger is, not in the month of their day.
    MonthOfLedger,
    /// Bug: a node returns all units of yesterday, also spent ones.
    ReturnsSpent,
}

/// A ledger, which opens days and never returns to one.
#[derive(Clone, Debug, Default)]
pub(super) struct LedgerRows {
    pub(super) today: usize,
    /// Units granted and not returned, by day and by month.
    pub(super) days: BTreeMap<usize, u64>,
    pub(super) months: BTreeMap<usize, u64>,
    /// Totals of a node on a day.
    pub(super) nodes: BTreeMap<(usize, usize), NodeTotals>,
}

impl LedgerRows {
    pub(super) fn of_day(&self, day: usize) -> u64 {
        self.days.get(&day).copied().unwrap_or_default()
    }

    pub(super) fn of_month(&self, month: usize) -> u64 {
        self.months.get(&month).copied().unwrap_or_default()
    }

    pub(super) fn node(&self, day: usize, id: usize) -> NodeTotals {
        self.nodes.get(&(day, id)).copied().unwrap_or_default()
    }

    /// Units that nodes hold of a day.
    pub(super) fn held(&self, day: usize) -> u64 {
        let nodes = self.nodes.range((day, 0)..(day + 1, 0));
        nodes.map(|(_, node)| u64::from(node.held())).sum()
    }

    /// Units granted by these rows and not by older ones, of which a failover leaves only the older ones.
    pub(super) fn granted_since(&self, older: &Self) -> u64 {
        let lost = |((day, id), node): (&(usize, usize), &NodeTotals)| {
            node.granted.saturating_sub(older.node(*day, *id).granted)
        };
        self.nodes.iter().map(lost).map(u64::from).sum()
    }
}
