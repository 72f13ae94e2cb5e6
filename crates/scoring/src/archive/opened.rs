//! An open archive.

use std::path::{Path, PathBuf};

use parking_lot::{Mutex, MutexGuard};
use rusqlite::Connection;

use scoregate_base::clock::Wall;

use super::archive_error::{ArchiveError, Trouble};
use super::day_number::summed_by;
use super::description_ids::DescriptionIds;
use super::file;
use crate::run::SuiteTable;

/// Benchmark runs on disk.
#[derive(Debug)]
pub struct Archive {
    pub(super) path: PathBuf,
    inside: Mutex<Inside>,
}

#[derive(Debug)]
pub(super) struct Inside {
    pub(super) connection: Connection,
    pub(super) described: DescriptionIds,
}

impl Archive {
    /// Opens an archive; creates it if it is missing.
    ///
    /// If another version has aggregated it, the days needed for `now` are aggregated again: that takes seconds for a
    /// large one.
    pub fn open(path: &Path, now: Wall) -> Result<Self, ArchiveError> {
        let connection =
            file::open(path, &summed_by(&SuiteTable::default())).map_err(|trouble| {
                ArchiveError {
                    path: path.to_owned(),
                    trouble,
                }
            })?;
        let inside = Mutex::new(Inside {
            connection,
            described: DescriptionIds::default(),
        });
        let archive = Self {
            path: path.to_owned(),
            inside,
        };
        archive.adopt(now)?;
        Ok(archive)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it contains no runs that count.
    pub fn is_empty(&self) -> Result<bool, ArchiveError> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM day)";
        self.with(|inside| Ok(inside.connection.query_row(sql, [], |row| row.get(0))?))
    }

    pub(super) fn inside(&self) -> MutexGuard<'_, Inside> {
        // A transaction left open by a panic was rolled back with its guard.
        self.inside.lock()
    }

    /// Runs `work` on the open file, and adds the path to its error.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&mut Inside) -> Result<T, Trouble>,
    ) -> Result<T, ArchiveError> {
        work(&mut self.inside()).map_err(|trouble| self.to_error(trouble))
    }

    pub(super) fn to_error(&self, trouble: impl Into<Trouble>) -> ArchiveError {
        ArchiveError {
            path: self.path.clone(),
            trouble: trouble.into(),
        }
    }
}
