//! Writes the header values that differ between responses, one after another into one buffer.
//!
//! A response has eight of them; a buffer for each would be eight allocations.

use bytes::BytesMut;
use http::HeaderValue;

/// Initial capacity; enough for all values of a usual response.
const ROOM: usize = 320;

/// A buffer for header values.
#[derive(Debug)]
pub(super) struct HeaderValueWriter(BytesMut);

impl HeaderValueWriter {
    pub(crate) fn new() -> Self {
        Self(BytesMut::with_capacity(ROOM))
    }

    /// Appends text.
    pub(super) fn words(&mut self, words: &str) -> &mut Self {
        self.0.extend_from_slice(words.as_bytes());
        self
    }

    /// Appends a number.
    pub(super) fn number(&mut self, number: impl itoa::Integer) -> &mut Self {
        self.words(itoa::Buffer::new().format(number))
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
    fn values_are_what_was_written_since_the_one_before_however_much_it_is() {
        let mut pen = HeaderValueWriter::new();
        let one = pen.words("max-age=").number(60).value();
        let long = pen.words(&"x".repeat(2 * ROOM)).value();
        let other = pen.number(-7).words("").value();
        assert_eq!(
            (one, long.len(), other),
            ("max-age=60".parse().unwrap(), 2 * ROOM, "-7".parse().unwrap())
        );
    }
}
