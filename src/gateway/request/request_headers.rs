//! The header fields of a request: the common fields, and the set of all name lengths. One pass over all fields
//! measures them and finds the common fields. Stages look for a dozen other fields, most of which are absent. If no
//! name has the length of the requested name, the field is absent. This check needs no hash and no lookup.

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{AUTHORIZATION, HOST},
};

/// A static name, which need not be parsed for each request.
pub const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The first two values of a field.
pub type FirstTwo<'r> = [Option<&'r HeaderValue>; 2];

#[derive(Clone, Copy, Debug)]
pub struct RequestHeaders<'r> {
    map: &'r HeaderMap,
    /// One bit per name length. The last bit covers all lengths of 63 or more.
    lengths: u64,
    /// Size of all fields in HTTP/1.1 format.
    size: usize,
    pub(crate) host: FirstTwo<'r>,
    pub(crate) authorization: FirstTwo<'r>,
    pub(crate) api_key: FirstTwo<'r>,
}

impl<'r> RequestHeaders<'r> {
    pub(crate) fn new(map: &'r HeaderMap) -> Self {
        let [host, authorization, api_key] = [[None; 2]; 3];
        let mut headers = Self {
            map,
            lengths: 0,
            size: 0,
            host,
            authorization,
            api_key,
        };
        for (name, value) in map {
            let length = name.as_str().len();
            headers.lengths |= bit(length);
            headers.size += length + value.len() + ": \r\n".len();
            headers.keep(length, name, value);
        }
        headers
    }

    /// Keeps the value if it belongs to a common field.
    #[inline]
    fn keep(&mut self, length: usize, name: &HeaderName, value: &'r HeaderValue) {
        let kept = match length {
            4 if *name == HOST => &mut self.host,
            9 if *name == X_API_KEY => &mut self.api_key,
            13 if *name == AUTHORIZATION => &mut self.authorization,
            _ => return,
        };
        if let Some(free) = kept.iter_mut().find(|kept| kept.is_none()) {
            *free = Some(value);
        }
    }

    pub(crate) fn map(&self) -> &'r HeaderMap {
        self.map
    }

    /// Size in HTTP/1.1 format, with one space after the colon and none after the value.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Returns `false` only if the field is certainly absent.
    #[inline]
    pub(crate) fn may_have(&self, name: &HeaderName) -> bool {
        self.lengths & bit(name.as_str().len()) != 0
    }

    pub(crate) fn has(&self, name: &HeaderName) -> bool {
        self.may_have(name) && self.map.contains_key(name)
    }

    /// The first two values of a field.
    #[inline]
    pub(crate) fn first_two(&self, name: &HeaderName) -> FirstTwo<'r> {
        if self.may_have(name) {
            self.looked_up(name)
        } else {
            [None, None]
        }
    }

    fn looked_up(&self, name: &HeaderName) -> FirstTwo<'r> {
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
            map.append(
                name.parse::<HeaderName>().unwrap(),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        let headers = RequestHeaders::new(&map);
        for (name, values) in [
            ("a", [Some("1"), None]),
            ("host", [Some("2"), Some("3")]),
            (&long, [Some("4"), None]),
            ("b", [None, None]),
            ("te", [None, None]),
            (&"y".repeat(64), [None, None]),
        ] {
            let name = name.parse::<HeaderName>().unwrap();
            let found = headers
                .first_two(&name)
                .map(|value| value.map(|value| value.to_str().unwrap()));
            assert_eq!(found, values, "{name}");
            assert_eq!(headers.has(&name), values[0].is_some(), "{name}");
        }
        assert_eq!(
            headers.size(),
            "a: 1\r\nhost: 2\r\nhost: 3\r\n: 4\r\n".len() + long.len()
        );
    }

    #[test]
    fn the_fields_of_every_request_are_found_by_their_names() {
        let mut map = HeaderMap::new();
        for (name, value) in [
            ("hosu", "1"),
            ("x-api-kez", "2"),
            ("x-api-key", "3"),
            ("authorizatiom", "4"),
        ] {
            map.append(
                name.parse::<HeaderName>().unwrap(),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        for value in ["5", "6", "7"] {
            map.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        let headers = RequestHeaders::new(&map);
        for (kept, name) in [
            (headers.host, &HOST),
            (headers.api_key, &X_API_KEY),
            (headers.authorization, &AUTHORIZATION),
        ] {
            assert_eq!(kept, headers.first_two(name), "{name}");
        }
        assert_eq!(
            headers
                .authorization
                .map(|value| value.unwrap().to_str().unwrap()),
            ["5", "6"]
        );
    }
}
