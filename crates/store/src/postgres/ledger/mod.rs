//! The ledger of daily units, and minute limits that gateways share.

pub mod day_ledger;
pub mod ledger_queue;
pub mod minutes;
pub mod report_columns;
pub mod windows;
