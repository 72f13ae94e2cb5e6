//! Limits, balances and `now` in, a verdict out.
//!
//! Pure: nothing here waits, locks or knows a caller. Three rules: the minute (a token bucket that pays for work),
//! the day (units of a UTC day, leased from a ledger, that pay for delivered data) and the guard (a token bucket that
//! pays for refusals). Balances are kept in `accounts`; units come from `store`.

mod bucket;
mod decide;
mod lease;
mod rule;
#[cfg(test)]
mod schedules;

pub use bucket::{BucketLevel, TokenBucket};
pub use decide::{AccountBalance, AdmissionVerdict, LeaseAvailability};
pub use lease::{DayBalance, DrainedUnits, largest_lease};
pub use rule::{LimitRule, LimitStatus, Limits};
