//! `scoregate keys scan`: finds keys of this service in files, for pre-commit hooks and other scanners. Only their form is
//! checked: no server or store is needed.

use std::io::{self, Read};
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::config::Config;
use scoregate_base::keys::{KeyForm, shown_prefix};

use crate::cli::exit::Exit;
use crate::cli::input_file::InputFile;
use crate::cli::printer;

pub(super) const AFTER_HELP: &str = "Examples:\n  scoregate keys scan src/main.py .env\n  \
git diff --cached | scoregate keys scan -\n\n\
Prints FILE:LINE:COLUMN and the first characters of each key. Columns are bytes, from 1. The exit code is 1 if a key was\n\
found, 0 if not, and 2 if a file or the settings cannot be read. The prefix of keys is keys.prefix of\n\
--config FILE, or SCOREGATE_KEYS_PREFIX.";

/// Bytes read at a time.
const BLOCK: u64 = 64 * 1024;

#[derive(Debug, Args)]
pub(super) struct ScanArgs {
    /// Files to scan; `-` for standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// A key in a text, with its position from 1.
#[derive(Debug, PartialEq, Eq)]
struct SeenKey {
    line: u64,
    column: u64,
    shown: String,
}

/// Finds keys in a text of any length, of which one block is in memory.
struct KeyScanner<'f, R> {
    form: &'f KeyForm,
    reader: R,
    block: Vec<u8>,
    line: u64,
    column: u64,
}

impl<'f, R: Read> KeyScanner<'f, R> {
    fn new(form: &'f KeyForm, reader: R) -> Self {
        Self {
            form,
            reader,
            block: Vec::new(),
            line: 1,
            column: 1,
        }
    }

    /// Passes on each key.
    fn each(mut self, mut show: impl FnMut(SeenKey)) -> io::Result<()> {
        while let Some(keys) = self.next_keys()? {
            keys.into_iter().for_each(&mut show);
        }
        Ok(())
    }

    /// The keys in the next block; `None` after the last one.
    fn next_keys(&mut self) -> io::Result<Option<Vec<SeenKey>>> {
        if (&mut self.reader)
            .take(BLOCK)
            .read_to_end(&mut self.block)?
            == 0
        {
            return Ok(None);
        }
        let block = std::mem::take(&mut self.block);
        let mut passed = 0;
        let mut seen = Vec::new();
        for (at, key) in self.form.find_in(&block) {
            self.pass(block.get(passed..at));
            passed = at;
            seen.push(SeenKey {
                line: self.line,
                column: self.column,
                shown: shown_prefix(key).to_owned(),
            });
        }
        // The rest is shorter than a key, and may be the beginning of a key.
        let end = block.len().saturating_sub(self.form.length() - 1);
        self.pass(block.get(passed..end));
        self.block
            .extend_from_slice(block.get(passed.max(end)..).unwrap_or_default());
        Ok(Some(seen))
    }

    /// Moves the position to the end of these bytes.
    fn pass(&mut self, bytes: Option<&[u8]>) {
        for byte in bytes.unwrap_or_default() {
            (self.line, self.column) = if *byte == b'\n' {
                (self.line + 1, 1)
            } else {
                (self.line, self.column + 1)
            };
        }
    }
}

pub(super) fn run(config: &Config, args: &ScanArgs, is_json: bool) -> Exit {
    let form = KeyForm::new(&config.key_prefix, false);
    let mut listed = Vec::new();
    let mut is_found = false;
    let mut is_unread = false;
    for path in &args.files {
        let file = path.display().to_string();
        let show = |SeenKey {
                        line,
                        column,
                        shown,
                    }| {
            is_found = true;
            if is_json {
                listed.push(json!({"file": file, "line": line, "column": column, "prefix": shown}));
            } else {
                printer::data(&format!("{file}:{line}:{column}: {shown}\n"));
            }
        };
        let scanned =
            InputFile::open(path).and_then(|file| KeyScanner::new(&form, file.reader).each(show));
        if let Err(error) = scanned {
            printer::message(&format!("error: {file} cannot be read: {error}"));
            is_unread = true;
        }
    }
    if is_json {
        printer::json(&json!({"keys": listed}));
    }
    match (is_unread, is_found) {
        (true, _) => Exit::Fault,
        (false, true) => Exit::Input,
        (false, false) => Exit::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one byte at a time, then all, as a pipe may.
    struct SlowReader<'b>(&'b [u8], usize);

    impl Read for SlowReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let step = self.1.min(buffer.len());
            self.0.read(&mut buffer[..step])
        }
    }

    fn scan(form: &KeyForm, text: &[u8], step: usize) -> Vec<(u64, u64)> {
        let mut scanner = KeyScanner::new(form, SlowReader(text, step));
        let mut found = Vec::new();
        while let Some(keys) = scanner.next_keys().unwrap() {
            assert!(
                scanner.block.len() < form.length() && keys.iter().all(|key| key.shown.len() == 12)
            );
            found.extend(keys.iter().map(|key| (key.line, key.column)));
        }
        found
    }

    #[test]
    fn keys_are_found_once_with_line_and_column_wherever_blocks_end() {
        let form = KeyForm::new("sg_live", false);
        let one = form.mint().unwrap();
        let other = form.mint().unwrap();
        let one = one.expose();
        let other = other.expose();
        for filling in [
            0, 1, 65_480, 65_492, 65_500, 65_535, 65_536, 65_537, 200_000,
        ] {
            let text = format!(
                "{}{one}\n\n \u{e4}{other}{one}\r\n{other}",
                "x".repeat(filling)
            );
            let column = filling as u64 + 1;
            let expected = [(1, column), (3, 4), (3, 48), (4, 1)];
            for step in [7, 1 << 20] {
                assert_eq!(
                    scan(&form, text.as_bytes(), step),
                    expected,
                    "{filling} {step}"
                );
            }
        }
        let broken = one.replace("sg_live", "sg_life");
        assert_eq!(scan(&form, broken.as_bytes(), 9), []);
        assert_eq!(
            scan(&form, &[b"\xff\n".as_slice(), one.as_bytes()].concat(), 9),
            [(2, 1)]
        );
    }
}
