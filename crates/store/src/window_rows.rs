//! Rows of calendar windows longer than a day, as an engine read them for the reports of one transaction. Reports are
//! applied one after another, since reports about several days may change the same row.
//!
//! Every report changes all rows that contain its day, so a row is correct even if no limit has used it so far. Only
//! windows that a report names limit the grant. The rule is in `limits::day_ledger`.

use std::collections::BTreeMap;

use crate::{LedgerExchangeReply, LedgerReport, ReportOutcome};
use scoregate_base::{
    clock::Day,
    limits::{CalendarQuota, LimitRule, NodeTotals, Scope, Window, WindowTotals, WindowUnits},
};

/// Identifies a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WindowKey {
    /// The application, or its owner.
    pub scope: String,
    /// The name of the limit.
    pub kind: String,
    pub start: Day,
    pub end: Day,
}

/// The units of a window.
#[derive(Clone, Copy, Debug)]
struct WindowRow {
    granted: u64,
    is_changed: bool,
}

/// The rows.
#[derive(Debug, Default)]
pub struct WindowRows {
    rows: BTreeMap<WindowKey, WindowRow>,
}

/// The total of a day that was closed after a restore. Returns do not change it: windows do not count such a day.
const CLOSED: u64 = 4_294_967_295;

/// A report after it was applied.
#[derive(Debug)]
pub struct AppliedReport {
    /// The total of the day.
    pub granted: u64,
    /// The totals of the node.
    pub node: NodeTotals,
    /// The windows that the report named.
    pub windows: Vec<WindowUnits>,
    /// Nothing was granted: the report assumes outdated terms.
    is_outdated: bool,
}

/// The reply to a report.
#[derive(Debug)]
pub struct ReportReply {
    outcome: ReportOutcome,
    windows: Vec<WindowUnits>,
}

impl From<ReportOutcome> for ReportReply {
    fn from(outcome: ReportOutcome) -> Self {
        Self {
            outcome,
            windows: Vec::new(),
        }
    }
}

impl AppliedReport {
    /// The reply.
    pub fn reply(self) -> ReportReply {
        let outcome = ReportOutcome::Applied {
            node: self.node,
            granted: self.granted,
            has_outdated_terms: self.is_outdated,
        };
        ReportReply {
            outcome,
            windows: self.windows,
        }
    }
}

impl LedgerExchangeReply {
    /// Appends the reply to the next report.
    pub(crate) fn push(&mut self, reply: ReportReply) {
        self.outcomes.push(reply.outcome);
        self.windows.push(reply.windows);
    }
}

impl WindowKey {
    /// The key of a window's row, for an application with this owner. `None` for an owner's window if the application has no owner.
    pub fn new(report: &LedgerReport, owner: Option<&str>, window: &Window) -> Option<Self> {
        let scope = match window.rule.row().scope {
            Scope::Application => report.application.to_string(),
            Scope::Owner => owner?.to_owned(),
        };
        Some(Self {
            scope,
            kind: window.rule.name().into(),
            start: window.start,
            end: window.end,
        })
    }
}

impl WindowRows {
    /// Adds a row. `is_changed` is set for a row that is not stored yet.
    pub fn insert(&mut self, key: WindowKey, granted: u64, is_changed: bool) {
        let row = WindowRow {
            granted,
            is_changed,
        };
        self.rows.insert(key, row);
    }

    /// Whether a row was read.
    pub fn contains(&self, key: &WindowKey) -> bool {
        self.rows.contains_key(key)
    }

    /// Applies a node's report about an application with this owner; `granted` units of the report's day have been granted so
    /// far. A report with outdated terms is granted nothing.
    pub fn apply(
        &mut self,
        report: &LedgerReport,
        owner: Option<&str>,
        is_outdated: bool,
        granted: u64,
        node: NodeTotals,
    ) -> AppliedReport {
        // The application may have been assigned to its owner after the rows were read.
        let is_outdated = is_outdated
            || !report.windows.iter().all(|limit| {
                let key = WindowKey::new(report, owner, &limit.window);
                key.is_none_or(|key| self.contains(&key))
            });
        let quota = if is_outdated { 0 } else { report.totals.quota };
        let mut totals = vec![WindowTotals {
            granted,
            quota: Some(quota),
        }];
        let mut rows = self.containing(report, owner);
        totals.extend(rows.iter().map(|(key, row)| WindowTotals {
            granted: row.granted,
            quota: limiting(report, key).map(|limit| limit.quota),
        }));
        let node = node.apply(&report.totals, &mut totals);
        let mut totals = totals.into_iter().map(|total| total.granted);
        let total = totals.next().unwrap_or(granted).min(CLOSED);
        let granted = if granted == CLOSED { CLOSED } else { total };
        let mut windows = Vec::new();
        for ((key, row), total) in rows.iter_mut().zip(totals) {
            row.is_changed |= row.granted != total;
            row.granted = total;
            windows.extend(limiting(report, key).map(|limit| WindowUnits {
                window: limit.window,
                granted: total,
            }));
        }
        AppliedReport {
            granted,
            node,
            windows,
            is_outdated,
        }
    }

    /// The window rows that count the units of the report's day.
    fn containing(
        &mut self,
        report: &LedgerReport,
        owner: Option<&str>,
    ) -> Vec<(&WindowKey, &mut WindowRow)> {
        let application = report.application.to_string();
        self.rows
            .iter_mut()
            .filter(|(key, _)| key.scope == application || Some(key.scope.as_str()) == owner)
            .filter(|(key, _)| key.start <= report.day && report.day < key.end)
            .collect()
    }

    /// The rows to store, with their granted units.
    pub fn changed(&self) -> impl Iterator<Item = (&WindowKey, u64)> {
        self.rows
            .iter()
            .filter(|(_, row)| row.is_changed)
            .map(|(key, row)| (key, row.granted))
    }
}

/// The quota that the report states for this window, if any.
fn limiting<'r>(report: &'r LedgerReport, key: &WindowKey) -> Option<&'r CalendarQuota> {
    let window = Window {
        rule: LimitRule::parse(&key.kind)?,
        start: key.start,
        end: key.end,
    };
    report.windows.iter().find(|limit| limit.window == window)
}
