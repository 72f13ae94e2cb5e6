//! Usage: units delivered to each application on each UTC day, for reports.
//!
//! Usage is stored with a delay, so nothing may be decided by it: quotas follow the ledger. Reports of a node are totals
//! that only grow, so one that is repeated, late or out of order changes nothing. A day is open for reports for two days
//! after it ended; then the totals of its nodes are merged.

use scoregate_base::clock::Day;
use scoregate_base::keys::ApplicationId;

use super::StoreFuture;

/// Number of days that are open for reports, the current one included.
pub const USAGE_DAYS_OPEN: u32 = 3;
/// Number of days for which usage is kept, the current one included.
pub(crate) const USAGE_DAYS_KEPT: u32 = 400;

/// Units delivered to an application on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageTotal {
    /// The day.
    pub day: Day,
    /// The application.
    pub application: ApplicationId,
    /// The units.
    pub units: u64,
}

/// A query of usage, added up over all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageQuery {
    /// The first day.
    pub first: Day,
    /// The last day.
    pub last: Day,
    /// The applications; `None` for all.
    pub applications: Option<Vec<ApplicationId>>,
    /// Maximum number of totals.
    pub limit: usize,
}

/// The reply to a query of usage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageList {
    /// The totals, newest day first, and of each day the largest first.
    pub totals: Vec<UsageTotal>,
    /// Number of matching totals, those above the limit included.
    pub matching: u64,
    /// The sum of their units.
    pub units: u64,
}

impl UsageQuery {
    /// All applications on one day.
    pub const fn on(day: Day, limit: usize) -> Self {
        Self {
            first: day,
            last: day,
            applications: None,
            limit,
        }
    }
}

/// Units delivered per application and day, for reports. The rules are in `usage`.
pub trait UsageStore: Send + Sync + 'static {
    /// Stores totals of a node durably, at most one for each application and day. A total that is lower than the stored
    /// one changes nothing, nor does one of a day that is no longer open for reports.
    fn record_usage(&self, node: u64, totals: Vec<UsageTotal>) -> StoreFuture<'_, ()>;

    /// Usage added up over all nodes.
    fn usage(&self, query: UsageQuery) -> StoreFuture<'_, UsageList>;
}
