//! Values of gauges.

/// The gauge value of a number, a size or a time.
#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge is a float; these numbers are far below 2^53"
)]
pub fn number_value(number: u64) -> f64 {
    number as f64
}

/// The gauge value of a flag: 1 for true, 0 for false.
pub fn flag_value(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}
