//! Writes the header values that differ between responses, first on the stack and then into an allocation of the exact
//! size. Frequent values are cached.

use std::cell::RefCell;

use http::HeaderValue;

/// Capacity in bytes. The longest value is 90 bytes.
const CAPACITY: usize = 128;

/// Number of values of each kind that a thread keeps. This is more than the number of lifetimes, limits and times of
/// midnight in use at once.
const KEPT: usize = 64;

thread_local! {
    /// The cached values of each kind. One table per thread avoids locks and shared reference counts.
    static FREQUENT: RefCell<[FrequentValues; NumberField::ALL]> =
        const { RefCell::new([const { FrequentValues::new() }; NumberField::ALL]) };
}

/// A header value that many responses share, and that consists of a number and constant text.
#[derive(Clone, Copy, Debug)]
pub enum NumberField {
    /// Only the number.
    Plain,
    /// `Cache-Control` of a document.
    MaxAge,
    /// `Cache-Status` of a hit.
    TimeToLive,
}

impl NumberField {
    const ALL: usize = Self::TimeToLive as usize + 1;

    /// The constant text before the number.
    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::MaxAge => "private, max-age=",
            Self::TimeToLive => "scoregate; hit; ttl=",
        }
    }

    /// The constant text after the number. A client may use a document for one more day if the service fails.
    const fn suffix(self) -> &'static str {
        match self {
            Self::MaxAge => ", stale-if-error=86400",
            Self::Plain | Self::TimeToLive => "",
        }
    }

    /// The value for a number. Meant for numbers that recur in most responses.
    pub(crate) fn value(self, number: u64) -> HeaderValue {
        FREQUENT.with_borrow_mut(|kinds| match kinds.get_mut(self as usize) {
            Some(kept) => kept.get(self, number),
            None => self.written(number),
        })
    }

    fn written(self, number: u64) -> HeaderValue {
        HeaderValueWriter::default()
            .text(self.prefix())
            .number(number)
            .text(self.suffix())
            .value()
    }
}

/// Recently written values. Each number has one possible place.
#[derive(Debug)]
struct FrequentValues([(u64, Option<HeaderValue>); KEPT]);

impl FrequentValues {
    const fn new() -> Self {
        Self([const { (0, None) }; KEPT])
    }

    fn get(&mut self, field: NumberField, number: u64) -> HeaderValue {
        let Some(place) = self.0.get_mut(place(number)) else {
            return field.written(number);
        };
        match place {
            (known, Some(value)) if *known == number => value.clone(),
            _ => {
                place.0 = number;
                place.1.insert(field.written(number)).clone()
            }
        }
    }
}

/// The place of a number. The bits are mixed because quotas and midnights are multiples of high powers of two.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the remaining bits are an index below KEPT"
)]
const fn place(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - KEPT.ilog2())) as usize
}

/// Builds a header value from constant words and numbers.
#[derive(Debug)]
pub struct HeaderValueWriter {
    bytes: [u8; CAPACITY],
    length: usize,
}

impl Default for HeaderValueWriter {
    fn default() -> Self {
        Self {
            bytes: [0; CAPACITY],
            length: 0,
        }
    }
}

impl HeaderValueWriter {
    /// Appends text.
    #[inline]
    pub(crate) fn text(&mut self, words: &str) -> &mut Self {
        let end = self.length + words.len();
        let place = self
            .bytes
            .get_mut(self.length..end)
            .expect("every value fits into the buffer");
        place.copy_from_slice(words.as_bytes());
        self.length = end;
        self
    }

    /// Appends a number.
    #[inline]
    pub(crate) fn number(&mut self, number: impl itoa::Integer) -> &mut Self {
        self.text(itoa::Buffer::new().format(number))
    }

    /// Returns the text appended since the last value.
    pub(crate) fn value(&mut self) -> HeaderValue {
        let written = self
            .bytes
            .get(..std::mem::take(&mut self.length))
            .unwrap_or_default();
        HeaderValue::from_bytes(written).expect("constant words and numbers are visible ASCII")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_the_text_written_since_the_previous_value() {
        let mut values = HeaderValueWriter::default();
        let one = values.text("max-age=").number(60).value();
        let long = values.text(&"x".repeat(CAPACITY)).value();
        let other = values.number(-7).text("").value();
        assert_eq!(
            (one, long.len(), other),
            (
                "max-age=60".parse().unwrap(),
                CAPACITY,
                "-7".parse().unwrap()
            )
        );
    }

    #[test]
    fn the_numbers_of_one_response_have_places_of_their_own() {
        let numbers = [
            1_000,
            10_000,
            100_000,
            1_000_000_000,
            1_763_769_600,
            1_763_856_000,
        ]
        .map(place);
        let distinct: std::collections::BTreeSet<_> = numbers.iter().collect();
        assert_eq!(distinct.len(), numbers.len(), "{numbers:?}");
    }

    #[test]
    fn a_frequent_value_has_always_the_number_and_the_text_asked_for() {
        let mut values = HeaderValueWriter::default();
        let numbers = (0..3 * KEPT as u64).chain([1_763_769_600, 1_763_769_600, 7, 0, u64::MAX]);
        for number in numbers {
            assert_eq!(NumberField::Plain.value(number), number.to_string());
            assert_eq!(
                NumberField::MaxAge.value(number),
                format!("private, max-age={number}, stale-if-error=86400")
            );
            assert_eq!(
                NumberField::TimeToLive.value(number),
                format!("scoregate; hit; ttl={number}")
            );
        }
        assert_eq!(values.text("x").value(), "x");
    }
}
