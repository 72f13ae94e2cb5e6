//! Days of models, numbered so that the days of a model are contiguous, and the version of their aggregates.

use crate::hour::Hour;
use crate::run::SuiteTable;

/// Version of the format of aggregates.
const SUMS: u32 = 6;
pub(super) const HOURS_OF_A_DAY: u64 = 24;
/// Days are numbered `model * DAYS + day`, so that the days of a model are contiguous. Sufficient for 2,700 years.
pub(super) const DAYS: i64 = 1_000_000;

/// Identifies the version of aggregates: they depend on the axes of the suites.
pub(super) fn summed_by(suites: &SuiteTable) -> String {
    format!("{} {SUMS}", suites.method_version())
}

/// The number of a model's day that contains an hour.
pub(super) fn day_number(model: i64, hour: Hour) -> i64 {
    let day = i64::try_from(hour.number() / HOURS_OF_A_DAY).unwrap_or(DAYS - 1);
    model * DAYS + day.min(DAYS - 1)
}
