//! The ledger of daily units, and minute limits that gateways share.

pub(super) mod day_ledger;
pub(super) mod ledger_queue;
pub(super) mod minutes;
pub(super) mod report_columns;
pub(super) mod windows;
