//! The rows of a ledger, for the random schedules of `ledger_schedules`.

use std::collections::BTreeMap;

use super::day_ledger::NodeTotals;

/// Days of a month, so that schedules contain several months.
pub(super) const MONTH: usize = 2;

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
