//! Rate limits, daily quotas, their ledger, and counted requests.

mod changes_while_waiting;
mod daily_quota;
mod leases;
pub mod ledger_unreachable;
mod limits;
mod limits_until;
mod months;
mod own_limits;
mod request_costs;
mod request_totals;
mod usage;
