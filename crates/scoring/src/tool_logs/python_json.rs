//! JSON as Python writes it: streamed, with limits, and with `NaN`, `Infinity` and `-Infinity`.
//!
//! These three words become strings, so that a strict parser accepts them. Whether a score may be one of them is decided
//! in [`super::score`]. Fields that are not needed are skipped without being stored.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufReader, Read};

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::StreamDeserializer;
use serde_json::de::IoRead;

/// Maximum nesting. The parser refuses 128 levels of a needed field; a skipped one costs a byte for each level.
const DEEPEST: usize = 1_000;
/// Maximum length of a string, in bytes: an image of an agent's screen is below it.
const LONGEST_STRING: u64 = 64 << 20;
/// Maximum number of entries of an object that is stored.
const MOST_ENTRIES: usize = 10_000;
/// Maximum length of a key of an object that is stored, in bytes.
const LONGEST_KEY: usize = 1_000;
const BUFFER: usize = 1 << 14;

/// Values that follow each other, such as lines.
pub(super) type JsonValues<'a, T> =
    StreamDeserializer<'a, IoRead<BufReader<PythonJson<Box<dyn Read + 'a>>>>, T>;

/// Reads one value of at most this many bytes.
pub(super) fn read_json<T: DeserializeOwned>(from: impl Read, longest: u64) -> Result<T, String> {
    let text = BufReader::with_capacity(BUFFER, PythonJson::new(from, longest));
    let mut parser = serde_json::Deserializer::from_reader(text);
    let value = T::deserialize(&mut parser).map_err(|error| error.to_string())?;
    // Reads to the end, so that a checksum is compared.
    parser.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// Iterates over values that follow each other, of at most this many bytes together.
pub(super) fn json_values<'a, T: DeserializeOwned>(
    from: impl Read + 'a,
    longest: u64,
) -> JsonValues<'a, T> {
    let from: Box<dyn Read + 'a> = Box::new(from);
    let text = BufReader::with_capacity(BUFFER, PythonJson::new(from, longest));
    serde_json::Deserializer::from_reader(text).into_iter()
}

/// An object with a limited number of entries.
#[derive(Debug)]
pub(super) struct LimitedMap<T>(pub(super) BTreeMap<String, T>);

impl<T> Default for LimitedMap<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for LimitedMap<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Self::default())
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for LimitedMap<T> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Self, A::Error> {
        while let Some((key, value)) = entries.next_entry::<String, T>()? {
            if key.len() > LONGEST_KEY || self.0.len() >= MOST_ENTRIES {
                return Err(A::Error::custom(format!(
                    "an object has more than {MOST_ENTRIES} entries, or a key longer than {LONGEST_KEY} bytes"
                )));
            }
            self.0.insert(key, value);
        }
        Ok(self)
    }
}

/// The position in the text.
#[derive(Clone, Copy, PartialEq)]
enum TextPlace {
    Between,
    /// After a minus sign, which is not yet copied.
    Minus,
    /// In one of the three words.
    Word,
    String,
    Escape,
}

/// Copies JSON, and quotes the three words.
pub(super) struct PythonJson<R> {
    from: R,
    place: TextPlace,
    depth: usize,
    string: u64,
    left: u64,
    longest: u64,
    ready: Vec<u8>,
    taken: usize,
    is_finished: bool,
}

impl<R: Read> PythonJson<R> {
    fn new(from: R, longest: u64) -> Self {
        Self {
            from,
            place: TextPlace::Between,
            depth: 0,
            string: 0,
            left: longest,
            longest,
            ready: Vec::new(),
            taken: 0,
            is_finished: false,
        }
    }

    fn refill(&mut self) -> io::Result<()> {
        let mut raw = [0; BUFFER];
        let count = loop {
            match self.from.read(&mut raw) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => break done?,
            }
        };
        self.ready.clear();
        self.taken = 0;
        if count == 0 {
            self.is_finished = true;
            match self.place {
                TextPlace::Word => self.ready.push(b'"'),
                TextPlace::Minus => self.ready.push(b'-'),
                TextPlace::Between | TextPlace::String | TextPlace::Escape => {}
            }
            return Ok(());
        }
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            invalid(format!(
                "is longer than the maximum of {} bytes",
                self.longest
            ))
        })?;
        for byte in raw.iter().take(count) {
            self.copy(*byte)?;
        }
        Ok(())
    }

    fn copy(&mut self, byte: u8) -> io::Result<()> {
        match self.place {
            TextPlace::String | TextPlace::Escape => {
                self.string += 1;
                if self.string > LONGEST_STRING {
                    return Err(invalid(format!(
                        "a string is longer than {LONGEST_STRING} bytes"
                    )));
                }
                let is_escaped = self.place == TextPlace::Escape;
                self.place = match byte {
                    b'\\' if !is_escaped => TextPlace::Escape,
                    b'"' if !is_escaped => TextPlace::Between,
                    _ => TextPlace::String,
                };
                self.ready.push(byte);
                return Ok(());
            }
            TextPlace::Word if byte.is_ascii_alphabetic() => {
                self.ready.push(byte);
                return Ok(());
            }
            TextPlace::Word => self.ready.push(b'"'),
            TextPlace::Minus if byte == b'I' => {
                self.ready.extend(b"\"-I");
                self.place = TextPlace::Word;
                return Ok(());
            }
            TextPlace::Minus => self.ready.push(b'-'),
            TextPlace::Between => {}
        }
        self.place = TextPlace::Between;
        match byte {
            b'"' => (self.place, self.string) = (TextPlace::String, 0),
            b'-' => {
                self.place = TextPlace::Minus;
                return Ok(());
            }
            b'N' | b'I' => {
                self.place = TextPlace::Word;
                self.ready.push(b'"');
            }
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth > DEEPEST {
                    return Err(invalid(format!(
                        "is nested more than {DEEPEST} levels deep"
                    )));
                }
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.ready.push(byte);
        Ok(())
    }
}

impl<R: Read> Read for PythonJson<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.taken >= self.ready.len() && !self.is_finished {
            self.refill()?;
        }
        let rest = self.ready.get(self.taken..).unwrap_or_default();
        let count = rest.len().min(into.len());
        for (to, from) in into.iter_mut().zip(rest) {
            *to = *from;
        }
        self.taken += count;
        Ok(count)
    }
}

pub(super) fn invalid(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Nothing {}

    fn read(text: &str) -> Result<Value, String> {
        read_json(text.as_bytes(), 1 << 30)
    }

    #[test]
    fn the_words_of_python_become_strings_and_text_is_unchanged() {
        let text = r#"{"a":NaN,"b":[Infinity,-Infinity,-1,-0.5e-3,null],"NaN":"-Infinity NaN \" I","c":"\\"}"#;
        let expected = json!({"a": "NaN", "b": ["Infinity", "-Infinity", -1, -0.5e-3, null],
            "NaN": "-Infinity NaN \" I", "c": "\\"});
        assert_eq!(read(text), Ok(expected));
        assert_eq!(read("NaN"), Ok(json!("NaN")));
        assert!(read("-").is_err() && read("{\"a\":NaN").is_err() && read("[1] 2").is_err());
    }

    #[test]
    fn text_that_is_too_long_or_too_deep_is_refused() {
        assert!(
            read_json::<Value>(&b"[1,2,3]"[..], 6)
                .unwrap_err()
                .contains("maximum of 6 bytes")
        );
        let deep = format!("{{\"a\":{}", "[".repeat(2_000));
        assert!(
            read_json::<Nothing>(deep.as_bytes(), 1 << 20)
                .unwrap_err()
                .contains("levels deep")
        );
        let long = Read::chain(&b"{\"a\":\""[..], io::repeat(b'x'));
        let refused = read_json::<Nothing>(long, 1 << 30).unwrap_err();
        assert!(refused.contains("a string is longer than"), "{refused}");
        let wide: Vec<String> = (0..=MOST_ENTRIES)
            .map(|number| format!("\"{number}\":1"))
            .collect();
        let refused =
            read_json::<LimitedMap<u8>>(format!("{{{}}}", wide.join(",")).as_bytes(), 1 << 20);
        assert!(refused.unwrap_err().contains("more than 10000 entries"));
    }
}
