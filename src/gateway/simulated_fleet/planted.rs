//! Bugs that are planted between the gateways and the store, to show that the observer finds them.

use std::collections::BTreeMap;

use scoregate_base::{
    clock::Day,
    keys::ApplicationId,
    limits::{CalendarQuota, LimitRule, NodeReport, Window},
};
use scoregate_store::{LedgerExchange, LedgerExchangeReply, LedgerReport, ReportOutcome};

use super::applications::anchor_of;

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedBug {
    /// The ledger counts returned units twice.
    ReturnsTwice,
    /// The ledger takes back granted units if the reply was late or lost.
    Reclaims,
    /// Every other exchange does not name its windows.
    ForgetsWindows,
    /// Months begin a day late.
    ShiftsMonths,
    /// A process continues the number of the one before it.
    ReusesNumber,
    /// One exchange in eight finds full pools of minute limits.
    ForgetsPools,
}

impl PlantedBug {
    pub const ALL: [Self; 6] = [
        Self::ReturnsTwice,
        Self::Reclaims,
        Self::ForgetsWindows,
        Self::ShiftsMonths,
        Self::ReusesNumber,
        Self::ForgetsPools,
    ];
}

type NodeDay = (u64, ApplicationId, Day);

/// Units that a planted bug takes back without the knowledge of the node.
#[derive(Default)]
pub struct HiddenReturns {
    taken: BTreeMap<NodeDay, u32>,
    returned: BTreeMap<NodeDay, u32>,
}

impl HiddenReturns {
    /// Changes a report as the bug does. `number` counts exchanges.
    pub fn distort(&mut self, bug: PlantedBug, exchange: &mut LedgerExchange, number: u64) {
        for report in &mut exchange.reports {
            let key = (exchange.node, report.application, report.day);
            let known = &mut report.totals.known;
            let before = self.returned.entry(key).or_default();
            let more = known.returned.saturating_sub(*before);
            *before = known.returned.max(*before);
            if bug == PlantedBug::ReturnsTwice {
                *self.taken.entry(key).or_default() += more.min(known.held());
            }
            known.returned += self.taken.get(&key).copied().unwrap_or_default();
            if bug == PlantedBug::ForgetsWindows && number.is_multiple_of(2) {
                report.windows.clear();
            }
            if bug == PlantedBug::ShiftsMonths {
                shift(report);
            }
        }
    }

    /// Takes back the units that were granted in reply to `exchange`. The result is the exchange that does so.
    pub fn reclaim(
        &mut self,
        exchange: &LedgerExchange,
        reply: &LedgerExchangeReply,
    ) -> LedgerExchange {
        let mut reclaiming = exchange.clone();
        for (report, outcome) in reclaiming.reports.iter_mut().zip(&reply.outcomes) {
            let key = (exchange.node, report.application, report.day);
            let asked = report.totals.known.granted;
            report.totals = NodeReport::default();
            if let ReportOutcome::Applied { node, .. } = outcome {
                let granted = node.granted.saturating_sub(asked).min(node.held());
                *self.taken.entry(key).or_default() += granted;
                report.totals.known = *node;
                report.totals.known.returned += granted;
            }
        }
        reclaiming
    }

    /// Hides from a node what was taken back.
    pub fn hide(&self, exchange: &LedgerExchange, reply: &mut LedgerExchangeReply) {
        for (index, report) in exchange.reports.iter().enumerate() {
            let key = (exchange.node, report.application, report.day);
            let taken = self.taken.get(&key).copied().unwrap_or_default();
            if let Some(ReportOutcome::Applied { node, .. }) = reply.outcomes.get_mut(index) {
                node.returned = node.returned.saturating_sub(taken);
            }
            for units in reply.windows.get_mut(index).into_iter().flatten() {
                let named = |limit: &&CalendarQuota| limit.window.rule == units.window.rule;
                units.window = report.windows.iter().find(named).unwrap().window;
            }
        }
    }
}

/// Moves the months of applications by a day.
fn shift(report: &mut LedgerReport) {
    let before = Day::from_number(report.day.number() - 1);
    for limit in &mut report.windows {
        if limit.window.rule == LimitRule::Month {
            let anchor = anchor_of(report.application);
            let window = Window::around(before, LimitRule::Month, anchor).unwrap();
            limit.window = Window {
                start: window.start.next(),
                end: window.end.next(),
                ..window
            };
        }
    }
}
