//! The rows of a ledger, for the random schedules of `ledger_schedules`.

use std::collections::BTreeMap;

use super::day_ledger::{DayTotals, NodeTotals};

/// The rows of a day.
#[derive(Clone, Debug, Default)]
pub(super) struct LedgerRows {
    pub(super) total: DayTotals,
    pub(super) nodes: Vec<NodeTotals>,
}

/// A ledger, which opens days and never returns to one.
#[derive(Clone, Debug, Default)]
pub(super) struct LedgerDays {
    pub(super) today: usize,
    pub(super) days: BTreeMap<usize, LedgerRows>,
}

impl LedgerDays {
    pub(super) fn rows(&self, day: usize) -> LedgerRows {
        self.days.get(&day).cloned().unwrap_or_default()
    }
}

impl LedgerRows {
    pub(super) fn node(&self, id: usize) -> NodeTotals {
        self.nodes.get(id).copied().unwrap_or_default()
    }

    pub(super) fn set(&mut self, id: usize, totals: NodeTotals) {
        self.nodes
            .resize(self.nodes.len().max(id + 1), NodeTotals::default());
        self.nodes[id] = totals;
    }
}
