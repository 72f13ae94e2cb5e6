//! Reads the lines of an untrusted file. If a line is too long or not valid UTF-8, only that line is rejected. The
//! maximum line length bounds the memory.

use std::io::{self, BufRead, Read as _};

/// A line that is not blank.
#[derive(Debug, PartialEq, Eq)]
pub struct InputLine {
    /// The line's number in the file, from 1.
    pub number: u64,
    /// The line's text, or the reason why it is invalid.
    pub text: Result<String, String>,
}

/// Iterates over the lines that are not blank.
pub struct InputLines<R> {
    reader: R,
    max_length: usize,
    number: u64,
}

impl<R: BufRead> InputLines<R> {
    /// Reads lines of at most `max_length` bytes.
    pub fn new(reader: R, max_length: usize) -> Self {
        Self {
            reader,
            max_length,
            number: 0,
        }
    }

    fn read(&mut self) -> io::Result<Option<InputLine>> {
        let mut raw = Vec::new();
        let limit = self.max_length as u64 + 1;
        let read = (&mut self.reader).take(limit).read_until(b'\n', &mut raw)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        let is_complete = raw.ends_with(b"\n") || raw.len() <= self.max_length;
        if !is_complete {
            self.reader.skip_until(b'\n')?;
        }
        let text = if is_complete {
            String::from_utf8(raw).map_err(|_| "is not UTF-8".to_owned())
        } else {
            Err(format!("is longer than {} bytes", self.max_length))
        };
        let text = text.map(|text| {
            // Some programs start a file with a byte order mark. Anywhere else it is an invisible character.
            let start = if self.number == 1 {
                text.strip_prefix('\u{feff}')
            } else {
                None
            };
            let text = start.unwrap_or(&text);
            text.trim_end_matches(['\r', '\n']).to_owned()
        });
        Ok(Some(InputLine {
            number: self.number,
            text,
        }))
    }
}

impl<R: BufRead> Iterator for InputLines<R> {
    type Item = io::Result<InputLine>;

    fn next(&mut self) -> Option<io::Result<InputLine>> {
        loop {
            match self.read().transpose()? {
                Ok(InputLine { text: Ok(text), .. }) if text.trim().is_empty() => {}
                line => return Some(line),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_LENGTH: usize = 65_536;

    fn read(bytes: &[u8]) -> Vec<(u64, Result<String, String>)> {
        let lines = InputLines::new(bytes, MAX_LENGTH).map(Result::unwrap);
        lines.map(|line| (line.number, line.text)).collect()
    }

    #[test]
    fn any_line_ending_is_accepted_and_blank_lines_are_skipped_but_counted() {
        let lines = read(b"\xef\xbb\xbfone\r\n\n  \r\nfour\nlast");
        assert_eq!(
            lines,
            [
                (1, Ok("one".into())),
                (4, Ok("four".into())),
                (5, Ok("last".into()))
            ]
        );
        assert!(read(b"").is_empty());
    }

    #[test]
    fn a_byte_order_mark_is_skipped_once_and_at_the_beginning_only() {
        let lines = read("\u{feff}\u{feff}one\n\u{feff}two".as_bytes());
        assert_eq!(
            lines,
            [(1, Ok("\u{feff}one".into())), (2, Ok("\u{feff}two".into()))]
        );
    }

    #[test]
    fn a_line_that_is_not_utf8_or_too_long_does_not_affect_the_others() {
        let long = vec![b'x'; 1 << 20];
        let lines = read(&[b"one\n\xff\xfe\n", &long[..], b"\nfour\n", &long[..]].concat());
        let lines: Vec<_> = lines
            .iter()
            .map(|(number, line)| (*number, line.as_deref()))
            .collect();
        let too_long = format!("is longer than {MAX_LENGTH} bytes");
        assert_eq!(lines[0], (1, Ok("one")));
        assert_eq!(lines[1], (2, Err(&"is not UTF-8".to_owned())));
        assert_eq!(lines[2], (3, Err(&too_long)));
        assert_eq!(lines[3], (4, Ok("four")));
        assert_eq!(lines[4], (5, Err(&too_long)));
    }

    #[test]
    fn the_longest_line_is_read() {
        let longest = "x".repeat(MAX_LENGTH);
        let lines = read(format!("{longest}\nn").as_bytes());
        assert_eq!(lines, [(1, Ok(longest)), (2, Ok("n".into()))]);
    }
}
