//! Times and numbers in the form in which both engines store them.

use scoregate_base::clock::Wall;

/// A time as a stored number.
pub const fn millis(at: Wall) -> i64 {
    at.millis().cast_signed()
}

/// A limit or a counter as a stored number.
pub fn stored<N: TryInto<i64>>(number: N) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
