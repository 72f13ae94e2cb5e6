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
}

/// Totals of all nodes for an application's day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayTotals {
    /// Units granted and not returned.
    pub granted: u64,
}

/// Known and requested totals of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeReport {
    /// The totals as the node knows them.
    pub known: NodeTotals,
    /// The requested total of granted units. At most `known.granted` requests none.
    pub granted: u32,
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
        }
    }

    /// Units granted and not returned.
    pub fn held(self) -> u32 {
        self.granted.saturating_sub(self.returned)
    }
}

impl DayTotals {
    /// Applies a report to these totals and to those of its node.
    #[must_use]
    pub fn apply(self, node: NodeTotals, report: &NodeReport) -> (Self, NodeTotals) {
        let known = node.merged(report.known);
        let total = self.replace(node, known);
        let unleased = u64::from(report.quota).saturating_sub(total.granted);
        let granted = NodeTotals {
            granted: raised(known.granted, report.granted, unleased),
            ..known
        };
        (total.replace(known, granted), granted)
    }

    /// The totals with one node's `before` replaced by `after`.
    fn replace(self, before: NodeTotals, after: NodeTotals) -> Self {
        let others = self.granted.saturating_sub(before.held().into());
        Self {
            granted: others.saturating_add(after.held().into()),
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

    fn asks(known: NodeTotals, granted: u32) -> NodeReport {
        NodeReport {
            known,
            granted,
            quota: 10,
        }
    }

    #[test]
    fn a_repeated_report_is_granted_once_and_a_late_one_changes_nothing() {
        let empty = DayTotals::default();
        let nothing = NodeTotals::default();
        let first = asks(nothing, 4);
        let (total, node) = empty.apply(nothing, &first);
        assert_eq!((total.granted, node.granted), (4, 4));
        assert_eq!(
            total.apply(node, &first),
            (total, node),
            "the reply was lost and the report is repeated"
        );
        let returned = NodeTotals {
            returned: 3,
            ..node
        };
        let (total, node) = total.apply(node, &asks(returned, 4));
        assert_eq!((total.granted, node.held()), (1, 1));
        assert_eq!(
            total.apply(node, &first),
            (total, node),
            "a report from before the return"
        );
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

    #[test]
    fn a_ledger_that_lost_commits_learns_the_totals_from_reports() {
        let known = NodeTotals {
            granted: 7,
            returned: 1,
        };
        let forgotten = NodeTotals {
            granted: 2,
            ..NodeTotals::default()
        };
        let total = DayTotals { granted: 5 };
        let (total, node) = total.apply(forgotten, &asks(known, 9));
        assert_eq!(
            (total.granted, node),
            (
                10,
                NodeTotals {
                    granted: 8,
                    ..known
                }
            )
        );
    }
}
