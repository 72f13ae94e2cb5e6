//! Writes the header values that differ between responses, one after another into one buffer.
//!
//! A response has eight of them; a buffer for each would be eight allocations.

use std::cell::RefCell;

use bytes::BytesMut;
use http::HeaderValue;

/// Initial capacity; enough for all values of a usual response.
const CAPACITY: usize = 320;

/// Number of frequent numbers that each thread keeps: midnight and the quotas of the tiers.
const FREQUENT: usize = 8;

thread_local! {
    /// Frequent numbers and their values, and the slot of the next one. One list per thread avoids locks and shared
    /// reference counts.
    static KNOWN: RefCell<([(u64, HeaderValue); FREQUENT], usize)> =
        const { RefCell::new(([const { (0, HeaderValue::from_static("0")) }; FREQUENT], 0)) };
}

/// A buffer for header values.
#[derive(Debug)]
pub(super) struct HeaderValueWriter(BytesMut);

impl HeaderValueWriter {
    pub(crate) fn new() -> Self {
        Self(BytesMut::with_capacity(CAPACITY))
    }

    /// Appends text.
    pub(super) fn text(&mut self, words: &str) -> &mut Self {
        self.0.extend_from_slice(words.as_bytes());
        self
    }

    /// Appends a number.
    pub(super) fn number(&mut self, number: impl itoa::Integer) -> &mut Self {
        self.text(itoa::Buffer::new().format(number))
    }

    /// The text appended since the last value.
    pub(super) fn value(&mut self) -> HeaderValue {
        let written = self.0.split().freeze();
        HeaderValue::from_maybe_shared(written).expect("made of our own words and numbers, visible ASCII")
    }
}

/// A number as a value. For numbers that most responses have.
pub(super) fn frequent_number(number: u64) -> HeaderValue {
    KNOWN.with_borrow_mut(|(known, next)| {
        if let Some((_, value)) = known.iter().find(|(known, _)| *known == number) {
            return value.clone();
        }
        let value = HeaderValue::from(number);
        if let Some(slot) = known.get_mut(*next) {
            *slot = (number, value.clone());
        }
        *next = (*next + 1) % FREQUENT;
        value
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_the_text_written_since_the_previous_value() {
        let mut values = HeaderValueWriter::new();
        let one = values.text("max-age=").number(60).value();
        let long = values.text(&"x".repeat(2 * CAPACITY)).value();
        let other = values.number(-7).text("").value();
        assert_eq!(
            (one, long.len(), other),
            ("max-age=60".parse().unwrap(), 2 * CAPACITY, "-7".parse().unwrap())
        );
    }

    #[test]
    fn a_frequent_number_is_always_the_one_asked_for() {
        let mut values = HeaderValueWriter::new();
        let numbers = (0..3 * FREQUENT as u64).chain([1_763_769_600, 1_763_769_600, 7, 0]);
        for number in numbers {
            assert_eq!(frequent_number(number), number.to_string());
        }
        assert_eq!(values.text("x").value(), "x");
    }
}
