//! Opens files that commands read. Pipes and devices are accepted only as standard input, because they may never end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use scoregate_base::secret::open_without_waiting;

/// Opens a regular file.
fn open(path: &Path) -> io::Result<File> {
    let file = open_without_waiting(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other(
        "it is not a regular file; write - and pass the content to standard input",
    ))
}

/// An open file, or standard input.
pub(super) struct InputFile {
    /// Its path, or `standard input`.
    pub(super) name: String,
    pub(super) reader: Box<dyn Read + Send>,
    /// Its size; `None` for standard input.
    pub(super) size: Option<u64>,
}

impl InputFile {
    /// Opens a file, or standard input for `-`.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let name = input_name(path);
        if path == Path::new("-") {
            return Ok(Self {
                name,
                reader: Box::new(io::stdin()),
                size: None,
            });
        }
        let file = open(path)?;
        let size = Some(file.metadata()?.len());
        Ok(Self {
            name,
            reader: Box::new(file),
            size,
        })
    }
}

/// The name of a path in messages.
pub(super) fn input_name(path: &Path) -> String {
    if path == Path::new("-") {
        "standard input".into()
    } else {
        path.display().to_string()
    }
}

/// The whole text of a file, or of standard input for `-`. A longer text is an error.
pub(super) fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    let mut text = String::new();
    let read = InputFile::open(path)?
        .reader
        .take(max_bytes + 1)
        .read_to_string(&mut text)?;
    if read as u64 > max_bytes {
        return Err(io::Error::other(format!(
            "it is larger than {max_bytes} bytes"
        )));
    }
    Ok(text)
}
