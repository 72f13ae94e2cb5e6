//! An output file with mode 0600: written under a temporary name, and renamed once it is complete and durable.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::control::CommandError;

/// The file. Dropped before it is complete, it is removed.
pub(super) struct OutputFile {
    path: PathBuf,
    part_path: PathBuf,
    part: File,
    /// Set if `path` is an empty file of ours, which reserves the name.
    is_reserved: bool,
    is_complete: bool,
}

impl OutputFile {
    /// Creates it under a temporary name. Without `force` nothing may have its path.
    pub(super) fn create(path: &Path, force: bool) -> Result<Self, CommandError> {
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
        let mut part_path = path.as_os_str().to_owned();
        part_path.push(format!(".{}.part", std::process::id()));
        let part_path = PathBuf::from(part_path);
        match create_private(&part_path) {
            Ok(part) => {
                Ok(Self { path: path.to_owned(), part_path, part, is_reserved: !force, is_complete: false })
            }
            Err(error) => {
                if !force {
                    drop(std::fs::remove_file(path));
                }
                Err(CommandError::Input(format!("{} cannot be created: {error}", part_path.display())))
            }
        }
    }

    /// Writes to it.
    pub(super) fn writer(&self) -> io::Result<BufWriter<File>> {
        Ok(BufWriter::new(self.part.try_clone()?))
    }

    /// Makes it durable and gives it its path. The writer must have been flushed.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.part.sync_all()?;
        std::fs::rename(&self.part_path, &self.path)?;
        let directory = self.path.parent().filter(|directory| !directory.as_os_str().is_empty());
        File::open(directory.unwrap_or_else(|| Path::new(".")))?.sync_all()?;
        self.is_complete = true;
        Ok(())
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.is_complete {
            return;
        }
        drop(std::fs::remove_file(&self.part_path));
        if self.is_reserved {
            drop(std::fs::remove_file(&self.path));
        }
    }
}

fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}
