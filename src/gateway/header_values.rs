//! Writes the header values that differ from answer to answer: one behind the other, into one piece of memory.
//!
//! A value of its own would be an allocation of its own, and there are eight in each answer. Not for: which headers there
//! are (`respond`).

use bytes::BytesMut;
use http::HeaderValue;

/// Room for all values of a usual answer.
const ROOM: usize = 320;

/// The pen.
#[derive(Debug)]
pub(super) struct HeaderValueWriter(BytesMut);

impl HeaderValueWriter {
    pub(crate) fn new() -> Self {
        Self(BytesMut::with_capacity(ROOM))
    }

    /// Writes words.
    pub(super) fn words(&mut self, words: &str) -> &mut Self {
        self.0.extend_from_slice(words.as_bytes());
        self
    }

    /// Writes a number.
    pub(super) fn number(&mut self, number: impl itoa::Integer) -> &mut Self {
        self.words(itoa::Buffer::new().format(number))
    }

    /// What was written since the last value.
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
