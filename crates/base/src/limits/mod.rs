//! Decides whether a request is allowed: takes limits, balances and `now`, and returns a verdict.
//!
//! Nothing here waits, takes a lock or identifies a caller, and only `NetworkLimit` has state. The limits are in `table`: the
//! minute (a token bucket that pays for work), the day (units of a UTC day, leased from a ledger, that pay for
//! delivered data) and the guard (a token bucket that pays for refusals). Balances are kept in `accounts`. Units come
//! from `store`.

mod bucket;
mod day_ledger;
mod decide;
#[cfg(test)]
mod found_bugs;
#[cfg(test)]
mod grace_schedules;
mod grace_share;
mod lease;
#[cfg(test)]
mod ledger_model;
#[cfg(test)]
mod ledger_schedules;
mod minute_lease;
mod minute_pool;
mod network_limit;
mod returned_units;
mod rule;
#[cfg(test)]
mod schedules;
mod settlement;
#[cfg(test)]
mod settlement_model;
mod table;
#[cfg(test)]
mod terms_schedules;
mod window;
mod window_balance;

pub use bucket::{BucketLevel, TokenBucket};
pub use day_ledger::{DayTotals, NodeReport, NodeTotals, WindowTotals};
pub use decide::{AccountBalance, AdmissionVerdict, LeaseAvailability};
pub use grace_share::{GraceClaim, GraceHolder, GraceShare};
pub use lease::{DayBalance, largest_lease};
pub use minute_lease::MinuteLease;
pub use minute_pool::{MinuteGrant, MinutePool, MinuteReport};
pub use network_limit::{NetworkBlock, NetworkBlocks, NetworkLimit, network};
pub use returned_units::ReturnedUnits;
pub use rule::{BadLimit, LimitChanges, LimitStatus, Limits, OwnLimits};
pub use settlement::{ConfirmedTotals, EndedDay};
pub use table::{CalendarPeriod, LimitRow, LimitRule, LimitSetting, Period, Scope};
pub use window::{BELOW_DAY, CalendarLimits, CalendarQuota, Window, WindowUnits};
pub use window_balance::WindowBalance;
