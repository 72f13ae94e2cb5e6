//! Writes the header values that differ between responses, one after another into one buffer.
//!
//! A response has eight of them; a buffer for each would be eight allocations.

use bytes::BytesMut;
use http::HeaderValue;

/// Initial capacity; enough for all values of a usual response.
const CAPACITY: usize = 320;

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
}
