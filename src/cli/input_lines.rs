//! The lines of a file that somebody else wrote: each is text of a bounded length, or is told to be none.
//!
//! Memory stays flat whatever the file holds. Not for: what stands in a line.

use std::io::{self, BufRead, Read as _};

/// A line that is not empty.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InputLine {
    /// Its number in the file, from 1.
    pub(super) number: u64,
    /// How many bytes of the file end with it.
    pub(super) bytes: u64,
    /// What stands in it, or why that cannot be said.
    pub(super) text: Result<String, String>,
}

/// Reads lines.
pub(super) struct InputLines<R> {
    from: R,
    longest: usize,
    number: u64,
    bytes: u64,
}

impl<R: BufRead> InputLines<R> {
    /// The lines of this, none of them longer than so many bytes.
    pub(super) fn of(from: R, longest: usize) -> Self {
        Self { from, longest, number: 0, bytes: 0 }
    }

    fn read(&mut self) -> io::Result<Option<InputLine>> {
        let (mut raw, most) = (Vec::new(), self.longest as u64 + 1);
        let read = (&mut self.from).take(most).read_until(b'\n', &mut raw)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        self.bytes += read as u64;
        let is_whole = raw.ends_with(b"\n") || raw.len() <= self.longest;
        if !is_whole {
            self.bytes += self.from.skip_until(b'\n')? as u64;
        }
        let text = if is_whole {
            String::from_utf8(raw).map_err(|_| "is not UTF-8".to_owned())
        } else {
            Err(format!("is longer than {} bytes", self.longest))
        };
        let text = text.map(|text| {
            // Some programs begin a file with a mark of its encoding.
            let text = if self.number == 1 { text.trim_start_matches('\u{feff}') } else { &text };
            text.trim_end_matches(['\r', '\n']).to_owned()
        });
        Ok(Some(InputLine { number: self.number, bytes: self.bytes, text }))
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

    const LONGEST: usize = 65_536;

    fn read(bytes: &[u8]) -> Vec<(u64, Result<String, String>)> {
        let told = |line: InputLine| (line.number, line.text);
        InputLines::of(bytes, LONGEST).map(|line| told(line.unwrap())).collect()
    }

    #[test]
    fn lines_end_in_any_way_and_empty_ones_are_passed_over_but_counted() {
        let told = read(b"\xef\xbb\xbfone\r\n\n  \r\nfour\nlast");
        assert_eq!(told, [(1, Ok("one".into())), (4, Ok("four".into())), (5, Ok("last".into()))]);
        assert!(read(b"").is_empty());
    }

    #[test]
    fn a_line_that_is_no_text_or_far_too_long_costs_only_itself() {
        let long = vec![b'x'; 1 << 20];
        let told = read(&[b"one\n\xff\xfe\n", &long[..], b"\nfour\n", &long[..]].concat());
        let words: Vec<_> = told.iter().map(|(number, line)| (*number, line.as_deref())).collect();
        let too_long = format!("is longer than {LONGEST} bytes");
        assert_eq!(words[0], (1, Ok("one")));
        assert_eq!(words[1], (2, Err(&"is not UTF-8".to_owned())));
        assert_eq!(words[2], (3, Err(&too_long)));
        assert_eq!(words[3], (4, Ok("four")));
        assert_eq!(words[4], (5, Err(&too_long)));
    }

    #[test]
    fn the_longest_line_is_read_and_its_bytes_are_counted() {
        let text = [vec![b'x'; LONGEST], b"\nn".to_vec()].concat();
        let lines: Vec<InputLine> = InputLines::of(&text[..], LONGEST).map(Result::unwrap).collect();
        assert_eq!(lines[0].text.as_ref().map(String::len), Ok(LONGEST));
        assert_eq!(lines[1].bytes, text.len() as u64);
    }
}
