//! JSON pointers (RFC 6901) into unparsed text. A result is the text as it was written.

use std::fmt;

use serde_json::value::RawValue;

use crate::cache::Members;

/// A location in a body. The empty pointer refers to the whole body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonPointer(Vec<String>);

/// The reason why a text is not a JSON pointer. The message is for the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPointer {
    /// The text is not empty and does not begin with a slash.
    #[error("write a JSON pointer, such as \"/data\" or \"/data/items\"; \"\" is the whole body")]
    NoSlash,
    /// The text contains a tilde that is not part of `~0` or `~1`.
    #[error("write `~` as ~0 and a `/` within a name as ~1")]
    Tilde,
}

/// The reason why a pointer cannot be resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerError {
    /// A name on the path occurs twice.
    Twice,
    /// The value is malformed.
    Malformed,
}

impl JsonPointer {
    /// A pointer to the member with this name in an object.
    pub(super) fn member(name: &str) -> Self {
        Self(vec![name.to_owned()])
    }

    /// Parses a pointer.
    pub fn parse(text: &str) -> Result<Self, BadPointer> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let tokens = text
            .strip_prefix('/')
            .ok_or(BadPointer::NoSlash)?
            .split('/');
        tokens
            .map(token)
            .collect::<Option<_>>()
            .map(Self)
            .ok_or(BadPointer::Tilde)
    }

    /// Whether a member with this name is on the path to the value.
    pub fn passes(&self, name: &str) -> bool {
        self.0.iter().any(|token| token == name)
    }

    /// Whether the pointer refers to the whole body.
    pub(super) fn is_whole(&self) -> bool {
        self.0.is_empty()
    }

    /// The value at this location in a well-formed body. `None` if there is no value.
    pub(super) fn find<'b>(
        &self,
        body: &'b RawValue,
    ) -> Result<Option<&'b RawValue>, PointerError> {
        let mut at = body;
        for token in &self.0 {
            let found = match at.get().as_bytes().first() {
                Some(b'{') => {
                    let members = Members::of(at.get()).map_err(|_| PointerError::Malformed)?;
                    members.get(token).map_err(|_| PointerError::Twice)?
                }
                Some(b'[') => index(token)
                    .map(|index| item(at, index))
                    .transpose()?
                    .flatten(),
                _ => None,
            };
            let Some(found) = found else { return Ok(None) };
            at = found;
        }
        Ok(Some(at))
    }
}

impl fmt::Display for JsonPointer {
    /// Formats the pointer as written, but the empty pointer in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_whole() {
            return f.write_str("the top");
        }
        f.write_str("`")?;
        for token in &self.0 {
            write!(f, "/{}", token.replace('~', "~0").replace('/', "~1"))?;
        }
        f.write_str("`")
    }
}

/// A decoded reference token.
fn token(text: &str) -> Option<String> {
    let mut parts = text.split('~');
    let mut decoded = parts.next()?.to_owned();
    for part in parts {
        let (stands_for, rest) = part.strip_prefix('0').map(|rest| ('~', rest)).or_else(|| {
            let rest = part.strip_prefix('1')?;
            Some(('/', rest))
        })?;
        decoded.push(stands_for);
        decoded.push_str(rest);
    }
    Some(decoded)
}

fn item(array: &RawValue, index: usize) -> Result<Option<&RawValue>, PointerError> {
    let items: Vec<&RawValue> =
        serde_json::from_str(array.get()).map_err(|_| PointerError::Malformed)?;
    Ok(items.get(index).copied())
}

/// An array index: decimal, without leading zeros.
fn index(token: &str) -> Option<usize> {
    let canonical = token == "0" || !token.starts_with('0');
    let digits = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
    (canonical && digits).then(|| token.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find<'b>(pointer: &str, body: &'b str) -> Result<Option<&'b str>, PointerError> {
        let body: &RawValue = serde_json::from_str(body).unwrap();
        Ok(JsonPointer::parse(pointer)
            .unwrap()
            .find(body)?
            .map(RawValue::get))
    }

    #[test]
    fn rfc_examples_resolve() {
        let body = r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8}"#;
        for (pointer, expected) in [
            ("", body),
            ("/foo", r#"["bar","baz"]"#),
            ("/foo/0", "\"bar\""),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
        ] {
            assert_eq!(find(pointer, body), Ok(Some(expected)), "{pointer}");
        }
    }

    #[test]
    fn the_value_is_returned_as_it_was_written() {
        let body = r#"{"d":{"\u0069tems":[ {"n":1.10} , {"n": 1E+2 } ]}}"#;
        assert_eq!(
            find("/d/items", body),
            Ok(Some(r#"[ {"n":1.10} , {"n": 1E+2 } ]"#))
        );
        assert_eq!(find("/d/items/1/n", body), Ok(Some("1E+2")));
    }

    #[test]
    fn missing_values_are_none_and_duplicates_are_rejected() {
        let body = r#"{"a":[1,2],"b":{"c":1,"c":2,"d":3},"a2":7}"#;
        for nowhere in [
            "/x",
            "/a/2",
            "/a/-",
            "/a/00",
            "/a/+1",
            "/a/",
            "/a2/0",
            "/b/x",
            "/a/99999999999999999999",
        ] {
            assert_eq!(find(nowhere, body), Ok(None), "{nowhere}");
        }
        assert_eq!(find("/b/c", body), Err(PointerError::Twice));
        assert_eq!(find("/b/d", body), Ok(Some("3")));
    }

    #[test]
    fn pointers_round_trip_and_invalid_ones_are_rejected() {
        for text in ["/data", "/a~1b/~0/0", "/"] {
            assert_eq!(
                JsonPointer::parse(text).unwrap().to_string(),
                format!("`{text}`")
            );
        }
        assert_eq!(JsonPointer::default().to_string(), "the top");
        assert_eq!(JsonPointer::parse("data"), Err(BadPointer::NoSlash));
        for bad in ["/~", "/~2", "/a~", "/~~0"] {
            assert_eq!(JsonPointer::parse(bad), Err(BadPointer::Tilde), "{bad}");
        }
    }
}
