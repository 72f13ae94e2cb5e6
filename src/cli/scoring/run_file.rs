//! Reads the lines of imported files, which may be compressed.

use std::{
    io::{self, BufRead, BufReader, Read},
    iter,
};

use flate2::bufread::MultiGzDecoder;

use crate::cli::{
    input_file::InputFile,
    input_lines::{InputLine, InputLines},
};
use scoregate_scoring::{BadRun, ExportLine, LONGEST_RUN};

const READ_BUFFER: usize = 1 << 16;
/// Number of bytes from which the kind of a file is determined: a byte order mark and the beginning of an object.
const FIRST_BYTES: usize = 8;

/// A line of an import, with its position for error messages.
pub struct ImportLine {
    pub place: String,
    pub line: Result<ExportLine, BadRun>,
}

/// The lines of a file. After an error no more lines can be read.
pub fn lines(file: InputFile) -> Box<dyn Iterator<Item = Result<ImportLine, String>>> {
    let InputFile { name, reader } = file;
    match text_lines(reader) {
        Ok(lines) => Box::new(lines.map(move |line| parsed(&name, line))),
        Err(error) => Box::new(iter::once(Err(format!("{name} cannot be read: {error}")))),
    }
}

fn parsed(name: &str, line: io::Result<InputLine>) -> Result<ImportLine, String> {
    let line = line.map_err(|error| format!("{name} cannot be read: {error}"))?;
    let number = line.number;
    let parsed = match line.text {
        Ok(text) => match ExportLine::parse(&text) {
            // Without the suite table, the lines after it cannot be validated.
            Err(bad) if ExportLine::is_suites(&text) => {
                return Err(format!("{name} cannot be read: line {number}: {bad}"));
            }
            parsed => parsed,
        },
        Err(problem) => Err(BadRun {
            field: "line".into(),
            problem,
        }),
    };
    Ok(ImportLine {
        place: format!("{name}:{number}"),
        line: parsed,
    })
}

fn text_lines(file: Box<dyn Read + Send>) -> io::Result<InputLines<Box<dyn BufRead>>> {
    let mut text = decompressed(file)?;
    let start = text.fill_buf()?;
    let start = start
        .strip_prefix("\u{feff}".as_bytes())
        .unwrap_or(start)
        .trim_ascii_start();
    let is_array = start.starts_with(b"[");
    if is_array || start.starts_with(b"{\n") || start.starts_with(b"{\r\n") {
        let found = if is_array {
            "it is a JSON array"
        } else {
            "its first run has several lines"
        };
        let filter = if is_array { ".[]" } else { "." };
        return Err(io::Error::other(format!(
            "{found}; write one run per line, as `jq -c '{filter}'` does"
        )));
    }
    Ok(InputLines::new(text, LONGEST_RUN))
}

/// Decompresses a gzip file, recognized by its first bytes.
fn decompressed(file: Box<dyn Read + Send>) -> io::Result<Box<dyn BufRead>> {
    const GZIP: [u8; 2] = [0x1F, 0x8B];
    let mut file = BufReader::with_capacity(READ_BUFFER, file);
    let mut first = Vec::with_capacity(FIRST_BYTES);
    (&mut file)
        .take(FIRST_BYTES as u64)
        .read_to_end(&mut first)?;
    let is_gzip = first.starts_with(&GZIP);
    let complete = BufReader::with_capacity(READ_BUFFER, io::Cursor::new(first).chain(file));
    if is_gzip {
        return Ok(Box::new(BufReader::with_capacity(
            READ_BUFFER,
            MultiGzDecoder::new(complete),
        )));
    }
    Ok(Box::new(complete))
}
