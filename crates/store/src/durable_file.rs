//! Files that are replaced as a whole: they are written under another name, synced, then renamed. A crash leaves either
//! the old file or the new one. This module also defines the file names of a SQLite database.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// The end of the name of an unfinished file.
pub const HALF: &str = ".half";
/// The write-ahead log of a database: changes that are committed but not yet in the database file.
pub const LOG: &str = "-wal";
/// The index of the log in shared memory.
pub const INDEX: &str = "-shm";

/// A file that is being written. Dropping it without [`FileReplacement::finish`] keeps the old file.
#[derive(Debug)]
pub struct FileReplacement {
    path: PathBuf,
    half: PathBuf,
    file: File,
    is_finished: bool,
}

impl FileReplacement {
    /// Begins to replace the file at `path`, which need not exist. The unfinished file has a name that ends with
    /// `suffix`. Only its owner can read it. A leftover file with that name is removed first, because a link must not
    /// be followed.
    pub fn begin(path: &Path, suffix: &str) -> io::Result<Self> {
        let half = with_suffix(path, suffix);
        remove(&half)?;
        let file = new_private_file(&half)?;
        Ok(Self {
            path: path.to_owned(),
            half,
            file,
            is_finished: false,
        })
    }

    /// The new content.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Replaces the file. The new content is durable when this returns. Returns the open file.
    pub fn finish(mut self) -> io::Result<File> {
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

/// Creates a file accessible to its owner only; an existing one, even a symbolic link, is an error.
pub fn new_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

/// Makes renames and deletions in the directory of `path` durable.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// Removes a file if it exists.
pub fn remove(path: &Path) -> io::Result<()> {
    if_found(fs::remove_file(path)).map(drop)
}

/// The path with a suffix added to its name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Removes a database and its log files.
pub fn remove_database(path: &Path) -> io::Result<()> {
    ["", LOG, INDEX, "-journal"]
        .iter()
        .try_for_each(|suffix| remove(&with_suffix(path, suffix)))
}

/// The result of an operation on a file; `None` if the file does not exist.
pub fn if_found<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        done => done.map(Some),
    }
}
