//! Values of gauges.

/// A number, a size or an instant.
#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float; these numbers are far below 2^53"
)]
pub fn number_value(number: u64) -> f64 {
    number as f64
}

/// 1 if it is so, else 0.
pub fn flag_value(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}
