//! Requests and replies of the ledger of daily units. Each names the application, the day and the node, so that several
//! machines can lease units from one ledger.
//!
//! The rules are in `limits::day_ledger`; how much to request is decided in `limits`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use scoregate_base::{
    clock::Day,
    keys::ApplicationId,
    limits::{
        CalendarQuota, GraceClaim, GraceShare, MinuteGrant, MinuteReport, NodeReport, NodeTotals,
        OwnLimits, WindowUnits,
    },
};

use super::StoreFuture;

/// Units that were delivered on grace but not charged before the server stopped.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct OwedUnits {
    /// The process that delivered them.
    pub node: u64,
    /// The application that used the units.
    pub application: ApplicationId,
    /// The day of the units.
    pub day: Day,
    /// The total that counts as granted to the process.
    pub granted: u32,
    /// The part of `granted` that the ledger did not grant: units on grace.
    pub owed: u32,
    /// The application's quota when the units were delivered; 0 if unknown.
    pub quota: u32,
}

/// A share of a day's grace, as recorded by its holder.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct HeldGraceShare {
    /// The day.
    pub day: Day,
    /// The share.
    pub share: GraceShare,
    /// Identifies the holder and the processes that took over from it.
    pub token: u64,
    /// Number of the current process in this sequence.
    pub life: u32,
}

/// The reports of one node, at most one for each application and day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerExchange {
    /// The node: a number unique to each start of each gateway.
    pub node: u64,
    /// The current day according to the node's clock. An engine with its own clock opens a day once both clocks have
    /// reached it.
    pub today: Day,
    /// The reports.
    pub reports: Vec<LedgerReport>,
}

/// The application's tier and its own limits, from which the limits in a report were derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssumedTerms {
    /// The application's tier.
    pub tier: Arc<str>,
    /// The application's own limits.
    pub own: OwnLimits,
}

/// A report about one day of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerReport {
    /// The application.
    pub application: ApplicationId,
    /// The day: today or tomorrow. A report that only returns units may also be about yesterday: units not spent before
    /// midnight no longer count in any window.
    pub day: Day,
    /// The node's known and requested totals.
    pub totals: NodeReport,
    /// The windows in force that contain the day, other than the day itself. Their quotas limit the grant.
    pub windows: Vec<CalendarQuota>,
    /// The node's minute tokens, if nodes share minute limits and the tokens are to change.
    pub minute: Option<MinuteReport>,
    /// If set, an engine with several gateways grants nothing unless these terms are in force.
    pub terms: Option<AssumedTerms>,
}

impl LedgerReport {
    /// Whether the ledger accepts the report on this day.
    pub(crate) fn is_open(&self, today: Day) -> bool {
        let only_returns = self.totals.quota == 0;
        self.day == today || self.day == today.next() || (only_returns && self.day.next() == today)
    }

    /// The report that returns units from grants whose replies were lost. The units appear in the reply to `last`, the node's
    /// last report about the units of the day.
    pub fn of_unknown_units(last: &Self, outcome: &ReportOutcome) -> Option<Self> {
        let ReportOutcome::Applied { node, .. } = outcome else {
            return None;
        };
        let kept = last.totals.known.held();
        let known = NodeTotals {
            returned: node.granted.saturating_sub(kept),
            ..*node
        };
        let totals = NodeReport {
            known,
            ..NodeReport::default()
        };
        // A report about tokens may omit units that are charged later.
        let is_last = last.minute.is_none();
        (is_last && node.held() > kept).then(|| Self::of_units(last.application, last.day, totals))
    }

    /// A report about units of the day only, whatever the terms.
    pub const fn of_units(application: ApplicationId, day: Day, totals: NodeReport) -> Self {
        Self {
            application,
            day,
            totals,
            windows: Vec::new(),
            minute: None,
            terms: None,
        }
    }
}

/// The reply to an exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerExchangeReply {
    /// The current day. It never goes back.
    pub today: Day,
    /// The outcomes, in the order of the reports.
    pub outcomes: Vec<ReportOutcome>,
    /// The windows that the reports named, in the order of the reports. Empty if there are none.
    pub windows: Vec<Vec<WindowUnits>>,
    /// The grants of minute tokens, in the order of the reports. Empty if the engine shares no minute limits.
    pub minutes: Vec<Option<MinuteGrant>>,
}

/// The outcome of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportOutcome {
    /// The report was applied.
    Applied {
        /// The totals of the node.
        node: NodeTotals,
        /// Units of the day that were granted to all nodes together and not returned.
        granted: u64,
        /// The terms in force differ from those that the report assumed, so nothing was granted.
        has_outdated_terms: bool,
    },
    /// The day is neither today nor tomorrow, and the report does more than return yesterday's units. Nothing was
    /// changed.
    Closed,
    /// The application does not exist.
    UnknownApplication,
}

/// The ledger of daily units. Its rules are in `limits::day_ledger`.
pub trait Ledger: Send + Sync + 'static {
    /// The current day; `None` before the first exchange. Earlier days are closed.
    fn day(&self) -> StoreFuture<'_, Option<Day>>;

    /// Applies the reports of a node. They are durable when this returns. A failed exchange may have been applied; it
    /// can be repeated.
    fn exchange(&self, exchange: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply>;

    /// Claims a share of a day's grace, or confirms a held share. `None` if no share is free, or if the held share must
    /// no longer be used. A failed claim may have been applied; it can be repeated.
    fn claim_grace(&self, _claim: GraceClaim) -> StoreFuture<'_, Option<GraceShare>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Whether a live gateway other than this node holds a share of the day's grace.
    fn others_hold_grace(&self, _day: Day, _node: u64) -> StoreFuture<'_, bool> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Returns a share on which no units are owed.
    fn return_grace(&self, _share: HeldGraceShare) -> StoreFuture<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Opens the connections that callers' requests need, unless they are open. Returns the reason if a reachable store refuses
    /// this gateway, and an error if the store does not answer.
    fn refusal(&self) -> StoreFuture<'_, Option<String>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Deletes a batch of outdated records, merges usage and requests of closed days, and returns the number of changed
    /// records.
    fn delete_outdated(&self) -> StoreFuture<'_, u64> {
        Box::pin(std::future::ready(Ok(0)))
    }
}
