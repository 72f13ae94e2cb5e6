//! An output file with mode 0600. It is written under a temporary name, and renamed once it is complete and durable.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufWriter, ErrorKind},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use scoregate_store::FileReplacement;

use super::command_error::{CommandError, CommandOutcome};

/// An output file. If it is dropped before it is complete, it is removed.
pub struct OutputFile {
    replacement: FileReplacement,
    reserved: ReservedName,
}

/// The path of an empty file that reserves the name, if there is such a file. Dropping this value removes the file.
struct ReservedName(Option<PathBuf>);

impl OutputFile {
    /// Creates the file under a temporary name. Fails without `force` if a file exists at `path`.
    pub fn create(path: &Path, force: bool) -> CommandOutcome<Self> {
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

    /// A writer to the file.
    pub fn writer(&self) -> io::Result<BufWriter<File>> {
        Ok(BufWriter::new(self.replacement.file().try_clone()?))
    }

    /// Makes the file durable and renames it to its path. The writer must have been flushed.
    pub fn finish(mut self) -> io::Result<()> {
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
