//! The rules of the ledger. Units of an application's day are granted to nodes and returned by them. They count in all
//! windows that contain the day: the day itself and the windows of the other calendar limits.
//!
//! A node is one process, from its start to its end. All of its numbers are totals of the day, which never decrease. Every report
//! contains the node's known totals and its requested total. A repeated, delayed or reordered report therefore has no additional
//! effect:
//!
//! 1. A node spends at most the difference `granted − returned` of its known totals, and returns a unit only after it has decided
//!    never to spend it.
//! 2. After every commit, the total of a window is the sum of `granted − returned` of all nodes on its days, and never
//!    exceeds the largest quota of the window.
//! 3. Therefore all nodes together spend at most that quota. This does not depend on clocks, failure detection or
//!    reclaiming.
//! 4. A grant fits into every window, so a unit is taken in all windows or in none.
//!
//! If the ledger has lost commits in a failover or restore, it recovers the totals from the reports: it takes the
//! larger of the stored and the reported totals.
//!
//! The code is pure. An engine locks the totals of all windows in the same order in all transactions, applies reports,
//! and commits all rows in one transaction.

/// Totals of one node for an application's day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeTotals {
    /// Units granted to the node.
    pub granted: u32,
    /// Units returned by the node.
    pub returned: u32,
}

/// Totals of all nodes for an application's day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayTotals {
    /// Units granted and not returned.
    pub granted: u64,
}

/// Totals of all nodes for a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowTotals {
    /// Units granted and not returned.
    pub granted: u64,
    /// The quota in force; `None` if the window is only counted.
    pub quota: Option<u32>,
}

/// Known and requested totals of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeReport {
    /// The totals known to the node.
    pub known: NodeTotals,
    /// The requested total of granted units. A total of at most `known.granted` requests no units.
    pub granted: u32,
    /// The quota in force. Grants never raise the day's total above this quota.
    pub quota: u32,
}

impl NodeReport {
    /// Limits the request of a node that `owes` units. In addition to the owed units, the node requests at most a quarter of the
    /// `unleased` units that may still be granted in other windows, or one unit if a quarter is less.
    #[must_use]
    pub fn within(self, owes: u32, unleased: u32) -> Self {
        let most = owes.saturating_add((unleased / 4).max(1));
        let granted = self.known.granted.saturating_add(most);
        Self {
            granted: self.granted.min(granted),
            ..self
        }
    }
}

impl NodeTotals {
    /// The larger of the two values of each total.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        Self {
            granted: self.granted.max(other.granted),
            returned: self.returned.max(other.returned),
        }
    }

    /// Units granted and not returned.
    pub fn held(self) -> u32 {
        self.granted.saturating_sub(self.returned)
    }

    /// Applies a report of this node to its totals, and to the totals of the windows that contain its day.
    #[must_use]
    pub fn apply(self, report: &NodeReport, windows: &mut [WindowTotals]) -> Self {
        let known = self.merged(report.known);
        let mut unleased = u64::MAX;
        for window in windows.iter_mut() {
            window.replace(self, known);
            unleased = unleased.min(window.unleased());
        }
        let granted = Self {
            granted: raised(known.granted, report.granted, unleased),
            ..known
        };
        for window in windows {
            window.replace(known, granted);
        }
        granted
    }
}

impl DayTotals {
    /// If there are no other windows, applies a report to these totals and to the totals of its node.
    #[must_use]
    pub fn apply(self, node: NodeTotals, report: &NodeReport) -> (Self, NodeTotals) {
        let day = WindowTotals {
            granted: self.granted,
            quota: Some(report.quota),
        };
        let mut windows = [day];
        let node = node.apply(report, &mut windows);
        let [WindowTotals { granted, .. }] = windows;
        (Self { granted }, node)
    }
}

impl WindowTotals {
    /// Units that may still be granted.
    fn unleased(self) -> u64 {
        self.quota.map_or(u64::MAX, |quota| {
            u64::from(quota).saturating_sub(self.granted)
        })
    }

    /// Replaces the totals `before` of a node with `after`.
    fn replace(&mut self, before: NodeTotals, after: NodeTotals) {
        let others = self.granted.saturating_sub(before.held().into());
        self.granted = others.saturating_add(after.held().into());
    }
}

/// `from` raised towards `to`, by at most `room`.
fn raised(from: u32, to: u32, room: u64) -> u32 {
    let more = u64::from(to.saturating_sub(from)).min(room);
    from.saturating_add(u32::try_from(more).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(known: NodeTotals, granted: u32) -> NodeReport {
        NodeReport {
            known,
            granted,
            quota: 10,
        }
    }

    #[test]
    fn a_grant_fills_the_quota_and_a_lower_quota_takes_nothing_back() {
        let none = NodeTotals::default();
        let (total, first) = DayTotals::default().apply(none, &asks(none, 8));
        let (total, second) = total.apply(none, &asks(none, 8));
        assert_eq!((total.granted, first.granted, second.granted), (10, 8, 2));
        let lower = NodeReport {
            quota: 5,
            ..asks(first, 9)
        };
        assert_eq!(total.apply(first, &lower), (total, first));
    }

    fn limited(granted: u64, quota: u32) -> WindowTotals {
        WindowTotals {
            granted,
            quota: Some(quota),
        }
    }

    #[test]
    fn a_grant_fits_into_every_window_and_a_return_leaves_all() {
        let nothing = NodeTotals::default();
        let counted = WindowTotals {
            granted: 70,
            quota: None,
        };
        let mut windows = [limited(0, 10), limited(96, 100), counted];
        let node = nothing.apply(&asks(nothing, 8), &mut windows);
        assert_eq!(node.granted, 4);
        assert_eq!(windows.map(|window| window.granted), [4, 100, 74]);
        let returned = NodeTotals {
            returned: 3,
            ..node
        };
        let node = node.apply(&asks(returned, 0), &mut windows);
        assert_eq!((node, node.held()), (returned, 1));
        assert_eq!(windows.map(|window| window.granted), [1, 97, 71]);
    }
}
