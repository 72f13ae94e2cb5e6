//! The header fields of a request, and which lengths their names have.
//!
//! The stages look for a dozen fields, most of which a request does not have. A field whose name has a length that no name
//! has is not there: that costs no hash and no lookup. Not for: what the fields say.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestHeaders<'r> {
    map: &'r HeaderMap,
    /// A bit for each length that a name has; one for all lengths of 63 and more.
    lengths: u64,
    /// The bytes of all fields as clients write them.
    size: usize,
}

impl<'r> RequestHeaders<'r> {
    pub(super) fn of(map: &'r HeaderMap) -> Self {
        let (mut lengths, mut size) = (0, 0);
        for (name, value) in map {
            let length = name.as_str().len();
            lengths |= bit(length);
            size += length + value.len() + ": \r\n".len();
        }
        Self { map, lengths, size }
    }

    /// As the codec gave them.
    pub(super) fn map(&self) -> &'r HeaderMap {
        self.map
    }

    /// Their bytes as clients write them: one space after a field's colon, none behind its value.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// `false` if there is no such field.
    #[inline]
    pub(super) fn may_have(&self, name: &HeaderName) -> bool {
        self.lengths & bit(name.as_str().len()) != 0
    }

    /// Whether there is such a field.
    pub(super) fn has(&self, name: &HeaderName) -> bool {
        self.may_have(name) && self.map.contains_key(name)
    }

    /// The first and the second value of a field.
    #[inline]
    pub(super) fn first_two(&self, name: &HeaderName) -> [Option<&'r HeaderValue>; 2] {
        if self.may_have(name) { self.looked_up(name) } else { [None, None] }
    }

    fn looked_up(&self, name: &HeaderName) -> [Option<&'r HeaderValue>; 2] {
        let mut values = self.map.get_all(name).iter();
        [values.next(), values.next()]
    }
}

fn bit(length: usize) -> u64 {
    1 << length.min(63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found_and_what_is_not_is_not() {
        let long = "x".repeat(70);
        let mut map = HeaderMap::new();
        for (name, value) in [("a", "1"), ("host", "2"), ("host", "3"), (&long, "4")] {
            map.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
        }
        let headers = RequestHeaders::of(&map);
        for (name, values) in [
            ("a", [Some("1"), None]),
            ("host", [Some("2"), Some("3")]),
            (&long, [Some("4"), None]),
            ("b", [None, None]),
            ("te", [None, None]),
            (&"y".repeat(64), [None, None]),
        ] {
            let name = name.parse::<HeaderName>().unwrap();
            let found = headers.first_two(&name).map(|value| value.map(|value| value.to_str().unwrap()));
            assert_eq!(found, values, "{name}");
            assert_eq!(headers.has(&name), values[0].is_some(), "{name}");
        }
        assert_eq!(headers.size(), "a: 1\r\nhost: 2\r\nhost: 3\r\n: 4\r\n".len() + long.len());
    }
}
