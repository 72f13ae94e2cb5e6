//! The header fields of a request, with a set of the lengths of their names.
//!
//! Stages look for a dozen fields, most of which are absent. A field whose name's length does not occur is absent;
//! that check needs no hash and no lookup.

use http::{HeaderMap, HeaderName, HeaderValue};

#[derive(Clone, Copy, Debug)]
pub(super) struct RequestHeaders<'r> {
    map: &'r HeaderMap,
    /// One bit per length of a name; one bit for all lengths from 63 on.
    lengths: u64,
    /// Size of all fields as HTTP/1.1 text.
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

    pub(super) fn map(&self) -> &'r HeaderMap {
        self.map
    }

    /// Size as HTTP/1.1 text, with one space after the colon and none after the value.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// `false` if the field is certainly absent.
    #[inline]
    pub(super) fn may_have(&self, name: &HeaderName) -> bool {
        self.lengths & bit(name.as_str().len()) != 0
    }

    pub(super) fn has(&self, name: &HeaderName) -> bool {
        self.may_have(name) && self.map.contains_key(name)
    }

    /// The first two values of a field.
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
    fn present_names_are_found_and_absent_ones_are_not() {
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
