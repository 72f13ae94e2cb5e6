//! Opens files that commands read. A pipe or a device may never end: it has to be given as standard input.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use scoregate_base::secret::open_without_waiting;

/// Opens a regular file.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let file = open_without_waiting(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other("it is not a regular file; write - and pass the content to standard input"))
}

/// The whole text of a file, or of standard input for `-`. A longer one is an error.
pub(super) fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(max_bytes + 1).read_to_string(&mut text)?
    } else {
        open(path)?.take(max_bytes + 1).read_to_string(&mut text)?
    };
    if read as u64 > max_bytes {
        return Err(io::Error::other(format!("it is larger than {max_bytes} bytes")));
    }
    Ok(text)
}
