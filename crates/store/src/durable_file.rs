//! Files that are replaced as a whole: written under another name, synced, then renamed. A crash leaves the old file or
//! the new one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A file that is being written. Dropping it without [`FileReplacement::finish`] keeps the old file.
#[derive(Debug)]
pub(super) struct FileReplacement {
    path: PathBuf,
    half: PathBuf,
    file: File,
    is_finished: bool,
}

impl FileReplacement {
    /// Begins to replace the file at `path`, which need not exist. Only its owner can read the new one.
    pub(super) fn begin(path: &Path) -> io::Result<Self> {
        let mut half = path.as_os_str().to_owned();
        half.push(".half");
        let half = PathBuf::from(half);
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&half)?;
        Ok(Self { path: path.to_owned(), half, file, is_finished: false })
    }

    /// The new content.
    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Replaces the file. The new content is durable when this returns. Returns the open file.
    pub(super) fn finish(mut self) -> io::Result<File> {
        self.file.sync_all()?;
        let file = self.file.try_clone()?;
        fs::rename(&self.half, &self.path)?;
        self.is_finished = true;
        sync_directory(&self.path)?;
        Ok(file)
    }
}

impl Drop for FileReplacement {
    fn drop(&mut self) {
        if !self.is_finished && fs::remove_file(&self.half).is_err() {
            tracing::debug!(path = %self.half.display(), "unfinished file was already removed");
        }
    }
}

/// Makes changes of names in the directory of `path` durable.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// The checksum of a text, as files contain it.
pub(super) fn checksum(text: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(text))
}
