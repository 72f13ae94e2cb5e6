//! Limits as data, balances and a `now` in, a verdict out.
//!
//! Pure: nothing here waits, locks or knows a caller. Three rules: the minute (a token bucket: pays for work), the day
//! (units of a UTC day, leased from a ledger: pays for data delivered) and the guard (a token bucket: pays for
//! refusals). Not for: where balances live (`accounts::key_directory`) or where units come from (`store`).

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
