//! The rules of the ledger: units of one application's day, granted to nodes and returned by them.
//!
//! A node is one process, from its start to its end. All of its numbers are totals of the day that only grow, and every
//! report carries the totals that the node knows and the totals that it wants. So a report that is repeated, delayed or
//! reordered changes nothing twice:
//!
//! 1. A node spends at most `granted − returned` as it knows them, and returns a unit only after deciding never to
//!    spend it.
//! 2. After every commit, the day's total is the sum of `granted − returned` of all nodes, and never above the largest
//!    quota of the day.
//! 3. So all nodes together spend at most that quota. No clock, no failure detection and no reclaiming is involved.
//!
//! A ledger that lost commits, after a failover or a restore, learns the totals again from the reports: it takes the
//! larger of its own and the reported ones.
//!
//! Pure. An engine locks the day's total, applies one report, and commits both rows in one transaction.

/// Totals of one node for an application's day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeTotals {
    /// Units granted to the node.
    pub granted: u32,
    /// Units returned by it.
    pub returned: u32,
    /// Units of grace promised to it.
    pub promised: u32,
    /// Units of grace that it will not use.
    pub released: u32,
}

/// Totals of all nodes for an application's day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayTotals {
    /// Units granted and not returned.
    pub granted: u64,
    /// Units of grace promised and not released.
    pub promised: u64,
}

/// Known and requested totals of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeReport {
    /// The totals as the node knows them.
    pub known: NodeTotals,
    /// The requested total of granted units. At most `known.granted` requests none.
    pub granted: u32,
    /// The requested total of promised units of grace.
    pub promised: u32,
    /// The quota in force. Grants never raise the day's total above it.
    pub quota: u32,
}

impl NodeTotals {
    /// The larger of both, number by number.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        Self {
            granted: self.granted.max(other.granted),
            returned: self.returned.max(other.returned),
            promised: self.promised.max(other.promised),
            released: self.released.max(other.released),
        }
    }

    /// Units granted and not returned.
    pub fn held(self) -> u32 {
        self.granted.saturating_sub(self.returned)
    }

    /// Units of grace promised and not released.
    pub fn grace(self) -> u32 {
        self.promised.saturating_sub(self.released)
    }
}

impl DayTotals {
    /// Applies a report to these totals and to those of its node.
    #[must_use]
    pub fn apply(self, node: NodeTotals, report: &NodeReport) -> (Self, NodeTotals) {
        let known = node.merged(report.known);
        let total = self.replace(node, known);
        let unleased = u64::from(report.quota).saturating_sub(total.granted);
        let unpromised = u64::from(report.quota / 100).saturating_sub(total.promised);
        let granted = NodeTotals {
            granted: raised(known.granted, report.granted, unleased),
            promised: raised(known.promised, report.promised, unpromised),
            ..known
        };
        (total.replace(known, granted), granted)
    }

    /// The totals with one node's `before` replaced by `after`.
    fn replace(self, before: NodeTotals, after: NodeTotals) -> Self {
        let replaced = |total: u64, before: u32, after: u32| {
            total.saturating_sub(before.into()).saturating_add(after.into())
        };
        Self {
            granted: replaced(self.granted, before.held(), after.held()),
            promised: replaced(self.promised, before.grace(), after.grace()),
        }
    }
}

/// `from`, raised to `to` as far as `room` allows.
fn raised(from: u32, to: u32, room: u64) -> u32 {
    let more = u64::from(to.saturating_sub(from)).min(room);
    from.saturating_add(u32::try_from(more).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nodes_that_crash_keep_their_promises_and_all_promises_are_one_hundredth(
            steps in prop::collection::vec((0usize..3, 0u32..9, 0u32..9, any::<bool>(), 0usize..9), 1..60),
        ) {
            let (mut day, mut nodes, mut live) = (DayTotals::default(), vec![NodeTotals::default(); 3], [0, 1, 2]);
            let mut sent: Vec<(usize, NodeReport)> = Vec::new();
            for (node, wanted, released, crashes, late) in steps {
                let id: usize = live[node];
                let known = nodes[id];
                let known = NodeTotals { released: known.released + released.min(known.grace()), ..known };
                let promised = known.promised + wanted;
                sent.push((id, NodeReport { known, granted: 0, promised, quota: 1_000 }));
                // Some arrive once more, later.
                for (id, report) in [sent.last().copied(), sent.get(late).copied()].into_iter().flatten() {
                    (day, nodes[id]) = day.apply(nodes[id], &report);
                    let promised: u64 = nodes.iter().map(|node| u64::from(node.grace())).sum();
                    prop_assert_eq!(day.promised, promised);
                    prop_assert!(promised <= 10, "{} units of grace for a day of 1000", promised);
                }
                if crashes {
                    live[node] = nodes.len();
                    nodes.push(NodeTotals::default());
                }
            }
        }
    }

    fn asks(known: NodeTotals, granted: u32) -> NodeReport {
        NodeReport { known, granted, promised: 0, quota: 10 }
    }

    #[test]
    fn a_repeated_report_is_granted_once_and_a_late_one_changes_nothing() {
        let (empty, nothing) = (DayTotals::default(), NodeTotals::default());
        let first = asks(nothing, 4);
        let (total, node) = empty.apply(nothing, &first);
        assert_eq!((total.granted, node.granted), (4, 4));
        assert_eq!(total.apply(node, &first), (total, node), "the reply was lost and the report is repeated");
        let returned = NodeTotals { returned: 3, ..node };
        let (total, node) = total.apply(node, &asks(returned, 4));
        assert_eq!((total.granted, node.held()), (1, 1));
        assert_eq!(total.apply(node, &first), (total, node), "a report from before the return");
    }

    #[test]
    fn a_grant_fills_the_quota_and_a_lower_quota_takes_nothing_back() {
        let none = NodeTotals::default();
        let (total, first) = DayTotals::default().apply(none, &asks(none, 8));
        let (total, second) = total.apply(none, &asks(none, 8));
        assert_eq!((total.granted, first.granted, second.granted), (10, 8, 2));
        let lower = NodeReport { quota: 5, ..asks(first, 9) };
        assert_eq!(total.apply(first, &lower), (total, first));
    }

    #[test]
    fn a_ledger_that_lost_commits_learns_the_totals_from_reports() {
        let known = NodeTotals { granted: 7, returned: 1, promised: 0, released: 0 };
        let forgotten = NodeTotals { granted: 2, ..NodeTotals::default() };
        let total = DayTotals { granted: 5, promised: 0 };
        let (total, node) = total.apply(forgotten, &asks(known, 9));
        assert_eq!((total.granted, node), (10, NodeTotals { granted: 8, ..known }));
    }

    #[test]
    fn promises_are_one_hundredth_of_the_quota_in_total() {
        let none = NodeTotals::default();
        let report = NodeReport { known: none, granted: 0, promised: 6, quota: 1_000 };
        let (total, first) = DayTotals::default().apply(none, &report);
        let (total, second) = total.apply(none, &report);
        assert_eq!((first.promised, second.promised, total.promised), (6, 4, 10));
        let released = NodeTotals { released: 6, ..first };
        let (total, _) = total.apply(first, &NodeReport { known: released, ..report });
        assert_eq!((total.promised, total.granted), (4, 0));
    }
}
