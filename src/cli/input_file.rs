//! Opens files that commands read. Pipes and devices are accepted only as standard input, because they may never end.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use scoregate_base::secret::open_without_waiting;

use super::command_error::{CommandError, CommandOutcome};

/// An open file, or standard input.
pub struct InputFile {
    /// The path of the file, or `standard input`.
    pub name: String,
    pub reader: Box<dyn Read + Send>,
}

impl InputFile {
    /// Opens a file, or standard input for `-`.
    pub fn open(path: &Path) -> CommandOutcome<Self> {
        if path == Path::new("-") {
            return Ok(Self {
                name: "standard input".into(),
                reader: Box::new(io::stdin()),
            });
        }
        let name = path.display().to_string();
        let file = open_regular(path).map_err(|error| unreadable(&name, &error))?;
        Ok(Self {
            name,
            reader: Box::new(file),
        })
    }
}

fn open_regular(path: &Path) -> io::Result<File> {
    let file = open_without_waiting(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other(
        "it is not a regular file; write - and pass the content to standard input",
    ))
}

/// The error for a file that cannot be read.
pub fn unreadable(name: &str, error: &io::Error) -> CommandError {
    CommandError::Input(format!("{name} cannot be read: {error}"))
}

/// Reads a whole file, or standard input for `-`, as text. More than `max_bytes` bytes are an error.
pub fn read_text(path: &Path, max_bytes: u64) -> CommandOutcome<String> {
    let InputFile { name, reader } = InputFile::open(path)?;
    let mut text = String::new();
    let read = reader
        .take(max_bytes + 1)
        .read_to_string(&mut text)
        .map_err(|error| unreadable(&name, &error))?;
    if read as u64 > max_bytes {
        let problem = io::Error::other(format!("it is larger than {max_bytes} bytes"));
        return Err(unreadable(&name, &problem));
    }
    Ok(text)
}
