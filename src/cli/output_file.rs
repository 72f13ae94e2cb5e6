//! An output file with mode 0600: written under a temporary name, and renamed once it is complete and durable.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use scoregate_store::FileReplacement;

use super::command_error::{CommandError, CommandOutcome};

/// The file. Dropped before it is complete, it is removed.
pub(super) struct OutputFile {
    replacement: FileReplacement,
    reserved: ReservedName,
}

/// The path of an empty file that reserves the name, if there is one. Dropping it removes the file.
struct ReservedName(Option<PathBuf>);

impl OutputFile {
    /// Creates it under a temporary name. Without `force`, no file may exist at its path.
    pub(super) fn create(path: &Path, force: bool) -> CommandOutcome<Self> {
        let shown = path.display();
        if !force {
            create_private(path).map_err(|error| {
                CommandError::Input(if error.kind() == ErrorKind::AlreadyExists {
                    format!("{shown} exists; use another name, or --force to overwrite it")
                } else {
                    format!("{shown} cannot be created: {error}")
                })
            })?;
        }
        let reserved = ReservedName((!force).then(|| path.to_owned()));
        let suffix = format!(".{}.part", std::process::id());
        let replacement = FileReplacement::begin(path, &suffix).map_err(|error| {
            CommandError::Input(format!("{shown}{suffix} cannot be created: {error}"))
        })?;
        Ok(Self {
            replacement,
            reserved,
        })
    }

    /// Writes to it.
    pub(super) fn writer(&self) -> io::Result<BufWriter<File>> {
        Ok(BufWriter::new(self.replacement.file().try_clone()?))
    }

    /// Makes it durable and renames it to its path. The writer must have been flushed.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.replacement.finish()?;
        self.reserved.0 = None;
        Ok(())
    }
}

impl Drop for ReservedName {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            drop(std::fs::remove_file(path));
        }
    }
}

fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}
