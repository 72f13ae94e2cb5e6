//! The files of an import, plain or compressed, and their lines.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::iter;
use std::path::Path;
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use crate::cli::input_file::InputFile;
use crate::cli::input_lines::{InputLine, InputLines};
use scoregate_scoring::{BadRun, ExportLine, LONGEST_RUN};

const READ_BUFFER: usize = 1 << 16;
/// Bytes that show what a file is: a byte order mark and the beginning of an object.
const FIRST_BYTES: usize = 8;

/// A line of an import with its place for messages.
pub(super) struct ImportLine {
    pub(super) place: String,
    pub(super) line: Result<ExportLine, BadRun>,
}

/// An open file with its name for messages.
pub(super) struct RunFile {
    pub(super) name: String,
    pub(super) size: Option<u64>,
    file: Box<dyn Read>,
}

impl RunFile {
    /// Opens a file, or standard input for `-`.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let InputFile { name, reader, size } = InputFile::open(path)
            .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
        Ok(Self {
            name,
            size,
            file: reader,
        })
    }

    /// Its lines. Adds the bytes read to a counter. The file cannot be read after an error.
    pub(super) fn lines(
        self,
        read: &Rc<Cell<u64>>,
    ) -> Box<dyn Iterator<Item = Result<ImportLine, String>>> {
        let name = self.name;
        let counted = CountingReader {
            file: self.file,
            read: Rc::clone(read),
        };
        match text_lines(counted) {
            Ok(lines) => Box::new(lines.map(move |line| parsed(&name, line))),
            Err(error) => Box::new(iter::once(Err(format!("{name} cannot be read: {error}")))),
        }
    }
}

fn parsed(name: &str, line: io::Result<InputLine>) -> Result<ImportLine, String> {
    let line = line.map_err(|error| format!("{name} cannot be read: {error}"))?;
    let number = line.number;
    let parsed = match line.text {
        Ok(text) => match ExportLine::parse(&text) {
            // The lines after it cannot be validated.
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

fn text_lines(file: CountingReader) -> io::Result<InputLines<Box<dyn BufRead>>> {
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

/// A file that counts the bytes read.
struct CountingReader {
    file: Box<dyn Read>,
    read: Rc<Cell<u64>>,
}

impl Read for CountingReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}

/// Decompresses a gzip file, recognized by its first bytes.
fn decompressed(file: CountingReader) -> io::Result<Box<dyn BufRead>> {
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
