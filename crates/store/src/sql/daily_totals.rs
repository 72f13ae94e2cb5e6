//! Totals of gateway processes by day, which each engine merges once a day is closed for reports. The rules are in `usage`.

use crate::requests::REQUEST_DAYS_KEPT;
use crate::usage::USAGE_DAYS_KEPT;

/// A table of totals of processes, and one of totals of closed days.
pub(crate) struct DailyTotals {
    nodes: &'static str,
    days: &'static str,
    /// The columns that a total is of, the day first.
    pub(crate) key: &'static str,
    /// The column of the total.
    total: &'static str,
    pub(crate) days_kept: u32,
}

pub(crate) const USAGE: DailyTotals = DailyTotals {
    nodes: "usage_nodes",
    days: "usage_days",
    key: "day, application",
    total: "units",
    days_kept: USAGE_DAYS_KEPT,
};

pub(crate) const REQUESTS: DailyTotals = DailyTotals {
    nodes: "request_nodes",
    days: "request_days",
    key: "day, application, endpoint, outcome",
    total: "requests",
    days_kept: REQUEST_DAYS_KEPT,
};

impl DailyTotals {
    /// A statement with the names of tables and columns. `{r.key}` are the columns of a table that is called `r`.
    pub(crate) fn statement(&self, text: &str) -> String {
        text.replace("{r.key}", &format!("r.{}", self.key.replace(", ", ", r.")))
            .replace("{key}", self.key)
            .replace("{total}", self.total)
            .replace("{nodes}", self.nodes)
            .replace("{days}", self.days)
    }

    /// Numbers of parameters for the columns of the key, from `first`.
    pub(crate) fn key_parameters(&self, mark: char, first: usize) -> Vec<String> {
        (first..).zip(self.key.split(", ")).map(|(number, _)| format!("{mark}{number}")).collect()
    }
}
