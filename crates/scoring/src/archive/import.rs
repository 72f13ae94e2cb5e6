//! Stores runs. An import is one transaction and takes effect as a whole.

use parking_lot::MutexGuard;
use rusqlite::Connection;

use scoregate_base::clock::Wall;

use super::{
    Archive, ArchiveError, Trouble, file, reading,
    rows::{self, RunInsertion},
};
use crate::run::{IdentifiedRun, SuiteTable};

/// An import. It locks out other writers, and changes nothing unless it is committed.
#[derive(Debug)]
pub struct RunImport<'a> {
    archive: &'a Archive,
    connection: MutexGuard<'a, Connection>,
    is_changed: bool,
}

impl Archive {
    /// Begins an import.
    pub fn begin_import(&self) -> Result<RunImport<'_>, ArchiveError> {
        let connection = self.connection.lock();
        file::make_room(&connection)
            .and_then(|()| connection.execute_batch("BEGIN IMMEDIATE"))
            .map_err(|error| self.to_error(error))?;
        Ok(RunImport {
            archive: self,
            connection,
            is_changed: false,
        })
    }

    /// Imports runs.
    pub fn import(
        &self,
        records: &[IdentifiedRun],
        now: Wall,
    ) -> Result<Vec<RunInsertion>, ArchiveError> {
        let mut import = self.begin_import()?;
        let stored = records
            .iter()
            .map(|record| import.store(record))
            .collect::<Result<_, _>>()?;
        import.commit(now)?;
        Ok(stored)
    }

    /// Replaces the suite table. This counts as an import. Returns `false` if the archive already has this table.
    pub fn set_suites(&self, table: &SuiteTable, now: Wall) -> Result<bool, ArchiveError> {
        self.transact(|file| {
            if *reading::suites(file)? == *table {
                return Ok(false);
            }
            replace_suites(file, table)?;
            record_import(file, now)?;
            Ok(true)
        })
    }
}

impl RunImport<'_> {
    /// Stores a run.
    pub fn store(&mut self, record: &IdentifiedRun) -> Result<RunInsertion, ArchiveError> {
        let stored =
            rows::insert(&self.connection, record).map_err(|error| self.archive.to_error(error))?;
        self.is_changed |= stored == RunInsertion::New;
        Ok(stored)
    }

    /// Stores the suite table of an export, unless the archive has runs or already has its own table. Returns whether
    /// the archive now has this table.
    pub fn take_suites(&mut self, table: &SuiteTable) -> Result<bool, ArchiveError> {
        self.try_take_suites(table)
            .map_err(|trouble| self.archive.to_error(trouble))
    }

    fn try_take_suites(&mut self, table: &SuiteTable) -> Result<bool, Trouble> {
        let known = reading::suites(&self.connection)?;
        if *known == *table {
            return Ok(true);
        }
        if *known != SuiteTable::default() || reading::has_runs(&self.connection)? {
            return Ok(false);
        }
        replace_suites(&self.connection, table)?;
        self.is_changed = true;
        Ok(true)
    }

    /// Commits the import durably.
    pub fn commit(self, now: Wall) -> Result<(), ArchiveError> {
        let recorded = if self.is_changed {
            record_import(&self.connection, now)
        } else {
            Ok(())
        };
        recorded
            .and_then(|()| self.connection.execute_batch("COMMIT"))
            .map_err(|error| self.archive.to_error(error))
    }
}

impl Drop for RunImport<'_> {
    fn drop(&mut self) {
        if !self.connection.is_autocommit() {
            // Errors here can be ignored: the file is closed, or a previous statement already returned the error.
            drop(self.connection.execute_batch("ROLLBACK"));
        }
    }
}

/// Imports are dated in whole seconds, like responses, and each is later than the previous one.
pub fn record_import(file: &Connection, now: Wall) -> rusqlite::Result<()> {
    let at = rows::milliseconds(Wall::from_seconds(now.seconds()));
    file.execute(
        "UPDATE state SET imported = max(?1, coalesce(imported + 1000, 0))",
        [at],
    )?;
    Ok(())
}

fn replace_suites(file: &Connection, table: &SuiteTable) -> rusqlite::Result<()> {
    file.execute("UPDATE state SET suites = ?1", [table.write()])?;
    Ok(())
}
