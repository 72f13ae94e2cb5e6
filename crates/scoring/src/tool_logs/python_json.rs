//! JSON as written by Python: streamed, and with `NaN`, `Infinity` and `-Infinity`.
//!
//! These three words become strings, so that a strict parser accepts them. [`super::score`] decides whether a score may
//! be one of them. Unneeded fields are skipped without being stored.

use std::{
    collections::VecDeque,
    io::{self, BufReader, Read},
};

use serde::de::DeserializeOwned;

const BUFFER: usize = 1 << 14;
const WORDS: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];

/// Reads one value.
pub fn read_json<T: DeserializeOwned>(from: impl Read) -> Result<T, String> {
    let mut parser = serde_json::Deserializer::from_reader(PythonJson::new(from));
    let value = T::deserialize(&mut parser).map_err(|error| error.to_string())?;
    // Reads to the end, so that the checksum is verified.
    parser.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// Iterates over consecutive values, such as lines.
pub fn json_values<T: DeserializeOwned>(
    from: impl Read,
) -> impl Iterator<Item = serde_json::Result<T>> {
    serde_json::Deserializer::from_reader(PythonJson::new(from)).into_iter()
}

/// Copies JSON and adds quotes around the three words.
struct PythonJson<R> {
    from: R,
    is_string: bool,
    is_escaped: bool,
    /// A number or a word whose end has not been read yet.
    word: Vec<u8>,
    ready: VecDeque<u8>,
}

impl<R: Read> PythonJson<R> {
    fn new(from: R) -> BufReader<Self> {
        let text = Self {
            from,
            is_string: false,
            is_escaped: false,
            word: Vec::new(),
            ready: VecDeque::new(),
        };
        BufReader::with_capacity(BUFFER, text)
    }

    fn copy(&mut self, byte: u8) {
        if self.is_string {
            self.is_string = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
        } else if byte.is_ascii_alphanumeric() || b"+-.".contains(&byte) {
            self.word.push(byte);
            return;
        } else {
            self.end_word();
            self.is_string = byte == b'"';
        }
        self.ready.push_back(byte);
    }

    fn end_word(&mut self) {
        let quote = WORDS.contains(&self.word.as_slice()).then_some(b'"');
        self.ready.extend(quote);
        self.ready.extend(self.word.drain(..));
        self.ready.extend(quote);
    }
}

impl<R: Read> Read for PythonJson<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut raw = [0; BUFFER];
        while self.ready.is_empty() {
            let count = self.from.read(&mut raw)?;
            for byte in raw.iter().take(count) {
                self.copy(*byte);
            }
            if count == 0 {
                self.end_word();
                break;
            }
        }
        self.ready.read(into)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        read_json(text.as_bytes())
    }

    #[test]
    fn the_words_of_python_become_strings_and_text_is_unchanged() {
        let text = r#"{"a":NaN,"b":[Infinity,-Infinity,-1,-0.5e-3,null],"NaN":"-Infinity NaN \" I","c":"\\"}"#;
        let expected = json!({"a": "NaN", "b": ["Infinity", "-Infinity", -1, -0.5e-3, null],
            "NaN": "-Infinity NaN \" I", "c": "\\"});
        assert_eq!(read(text), Ok(expected));
        assert_eq!(read("NaN"), Ok(json!("NaN")));
        for bad in ["-", "NaNs", "{\"a\":NaN", "[1] 2"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
