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

pub use bucket::{Bucket, Level};
pub use decide::{Balance, Ledger, Verdict};
pub use lease::{DayBalance, Drained, largest_lease};
pub use rule::{Limits, Rule, Standing};
