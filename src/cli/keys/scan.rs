//! `scoregate keys scan`: finds keys of this service in files, for pre-commit hooks and other scanners. Only the format
//! of a key is checked, so neither a server nor a store is needed.

use std::{
    io::{self, BufRead as _, BufReader, Read},
    path::PathBuf,
};

use clap::Args;
use serde_json::json;

use crate::config::Config;
use scoregate_base::keys::{KeyForm, shown_prefix};

use crate::cli::{
    command_error::{CommandError, CommandOutcome, input_is_fine},
    exit::Exit,
    input_file::{InputFile, unreadable},
    printer,
};

pub const AFTER_HELP: &str = "Examples:\n  scoregate keys scan src/main.py .env\n  \
git diff --cached | scoregate keys scan -\n\n\
Prints FILE:LINE:COLUMN and the first characters of each key. Columns are bytes, from 1. The exit code is 1 if a key was\n\
found, 0 if not, and 2 if a file or the settings cannot be read. The prefix of keys is keys.prefix in\n\
--config FILE, or SCOREGATE_KEYS_PREFIX.";

#[derive(Debug, Args)]
pub struct ScanArgs {
    /// Files to scan; `-` for standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// A key found in the text, with its 1-based position.
#[derive(Debug, PartialEq, Eq)]
struct SeenKey {
    line: u64,
    column: u64,
    shown: String,
}

/// Adds each key in `text` to `found`. Keeps one line in memory at a time, since a key contains no line break.
fn scan(form: &KeyForm, text: impl Read, found: &mut Vec<SeenKey>) -> io::Result<()> {
    let mut text = BufReader::new(text);
    let mut line = Vec::new();
    let mut number = 0;
    while text.read_until(b'\n', &mut line)? > 0 {
        number += 1;
        found.extend(form.find_in(&line).map(|(at, key)| SeenKey {
            line: number,
            column: at as u64 + 1,
            shown: shown_prefix(key).to_owned(),
        }));
        line.clear();
    }
    Ok(())
}

pub fn run(config: &Config, args: &ScanArgs, is_json: bool) -> CommandOutcome {
    let form = KeyForm::new(&config.key_prefix, false);
    let mut listed = Vec::new();
    let mut is_found = false;
    let mut is_unread = false;
    for path in &args.files {
        let file = path.display().to_string();
        let mut found = Vec::new();
        let scanned = InputFile::open(path).and_then(|InputFile { name, reader }| {
            scan(&form, reader, &mut found).map_err(|error| unreadable(&name, &error))
        });
        is_found |= !found.is_empty();
        for SeenKey {
            line,
            column,
            shown,
        } in found
        {
            if is_json {
                listed.push(json!({"file": file, "line": line, "column": column, "prefix": shown}));
            } else {
                printer::data(&format!("{file}:{line}:{column}: {shown}\n"))?;
            }
        }
        if let Err(error) = scanned {
            printer::message(&format!("error: {error}"));
            is_unread = true;
        }
    }
    if is_json {
        printer::json(&json!({"keys": listed}))?;
    }
    if is_unread {
        return Err(CommandError::Reported(Exit::Fault));
    }
    input_is_fine(!is_found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(form: &KeyForm, text: &[u8]) -> Vec<(u64, u64)> {
        let mut keys = Vec::new();
        scan(form, text, &mut keys).unwrap();
        assert!(keys.iter().all(|key| key.shown.len() == 12));
        keys.iter().map(|key| (key.line, key.column)).collect()
    }

    #[test]
    fn each_key_is_found_with_line_and_column() {
        let form = KeyForm::new("sg_live", false);
        let one = form.mint().unwrap();
        let other = form.mint().unwrap();
        let one = one.expose();
        let other = other.expose();
        let text = format!("xx{one}\n\n \u{e4}{other}{one}\r\n{other}");
        assert_eq!(
            found(&form, text.as_bytes()),
            [(1, 3), (3, 4), (3, 48), (4, 1)]
        );
        let broken = one.replace("sg_live", "sg_life");
        assert_eq!(found(&form, broken.as_bytes()), []);
        let after_bytes = [b"\xff\n".as_slice(), one.as_bytes()].concat();
        assert_eq!(found(&form, &after_bytes), [(2, 1)]);
    }
}
