//! Times and numbers as both engines store them.

use scoregate_base::clock::Wall;

/// A time as stored.
pub(crate) const fn millis(at: Wall) -> i64 {
    at.millis().cast_signed()
}

/// A limit, or a number that only grows, as stored.
pub(crate) fn stored<N: TryInto<i64>>(number: N) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
