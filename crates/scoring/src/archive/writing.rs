//! Stores runs, and aggregates their days.

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use scoregate_base::clock::Wall;

use super::description_ids::DescriptionIds;
use super::rows::{self, StoredRun};
use super::suites::StoredSuites;
use super::sums::DaySummation;
use super::{
    Archive, ArchiveError, DAYS, HOURS_OF_A_DAY, Trouble, day_number, file, query, summed_by,
};
use crate::hour::Hour;
use crate::method;
use crate::run::{IdentifiedRun, SuiteTable};

/// Days aggregated per transaction, outside the window.
const DAYS_AT_ONCE: usize = 2_000;

/// The result for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunInsertion {
    /// New, and stored.
    New,
    /// Already present, equal in every field.
    AlreadyThere,
    /// Another run has its id; that one stays.
    OtherContent,
    /// A run with its id was withdrawn; it stays withdrawn.
    Withdrawn,
}

impl Archive {
    /// Enlarges the page cache for many runs.
    pub fn make_room(&self) -> Result<(), ArchiveError> {
        self.with(|inside| Ok(file::make_room(&inside.connection)?))
    }

    /// Stores runs, all or, on an error, none. They are synced when this returns, and count from the next
    /// [`Archive::sum_up`] on.
    pub fn take(&self, records: &[IdentifiedRun]) -> Result<Vec<RunInsertion>, ArchiveError> {
        self.transact(|file, described| {
            let mut suites = StoredSuites::load(file)?;
            records
                .iter()
                .map(|record| take_one(file, described, &mut suites, record))
                .collect()
        })
    }

    /// Aggregates every day with new runs, and records that as an import. What a refresh at `now` reads changes in
    /// one step.
    pub fn sum_up(&self, now: Wall) -> Result<(), ArchiveError> {
        // Days that no refresh reads come first and in parts: a large import must not fill the log.
        while self.transact(|file, _| {
            let mut days = unsummed(file, |day| day < window_of(now))?;
            days.truncate(DAYS_AT_ONCE);
            sum_days(file, &days)?;
            Ok(!days.is_empty())
        })? {}
        self.with(|inside| sum_window(&mut inside.connection, now).map(|_| ()))
    }

    /// Replaces the suite table, and aggregates the runs again. Counts as an import, in one step. Returns false if the
    /// archive has this table already.
    pub fn set_suites(&self, table: &SuiteTable, now: Wall) -> Result<bool, ArchiveError> {
        self.transact(|file, _| replace_suites(file, table, now))
    }

    /// Stores the table of an export, unless the archive has runs or a table of its own. Returns whether it has this table.
    pub fn take_suites(&self, table: &SuiteTable, now: Wall) -> Result<bool, ArchiveError> {
        self.transact(|file, _| {
            let known = StoredSuites::load(file)?.table;
            let has_runs = file.prepare_cached("SELECT 1 FROM run")?.exists([])?;
            let is_unset = *known == SuiteTable::default() && !has_runs;
            Ok(*known == *table || (is_unset && replace_suites(file, table, now)?))
        })
    }

    /// Ensures that the aggregates are of this version.
    pub(super) fn adopt(&self, now: Wall) -> Result<(), ArchiveError> {
        let is_adopted = self.with(|inside| {
            let by: String =
                inside
                    .connection
                    .query_row("SELECT method FROM summed_by", [], |row| row.get(0))?;
            Ok(by == summed_by(&StoredSuites::load(&inside.connection)?.table))
        })?;
        if is_adopted {
            Ok(())
        } else {
            self.transact(|file, _| sum_again(file, window_of(now)))
        }
    }

    /// Runs `work` in a transaction, which is committed if there is no error.
    pub(super) fn transact<T>(
        &self,
        work: impl FnOnce(&Connection, &mut DescriptionIds) -> Result<T, Trouble>,
    ) -> Result<T, ArchiveError> {
        self.with(|inside| {
            let transaction = begin(&mut inside.connection)?;
            let done = work(&transaction, &mut inside.described);
            let committed = done.and_then(|done| Ok(transaction.commit().map(|()| done)?));
            // It may contain ids that were rolled back.
            committed.inspect_err(|_| inside.described = DescriptionIds::default())
        })
    }
}

/// The first day that a refresh at `now`, or later, reads.
fn window_of(now: Wall) -> i64 {
    day_number(0, Hour::of(now).minus(method::WINDOW_HOURS))
}

pub(super) fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

pub(super) fn take_one(
    file: &Connection,
    described: &mut DescriptionIds,
    suites: &mut StoredSuites,
    record: &IdentifiedRun,
) -> Result<RunInsertion, Trouble> {
    let run = &record.run;
    let (model, description) = described.numbers(file, run.model())?;
    let stored = StoredRun::of(record, suites.number(file, run.suite())?);
    let mut insert = file.prepare_cached(
        "INSERT OR IGNORE INTO run
            (model, at_ms, id, suite, description, trials, failed_trials, failure, detail)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?;
    let StoredRun {
        at_ms,
        suite,
        trials,
        failed_trials,
        failure,
        detail,
    } = &stored;
    let id = record.id.as_str();
    let row = params![
        model,
        at_ms,
        id,
        suite,
        description,
        trials,
        failed_trials,
        failure,
        detail
    ];
    if insert.execute(row)? == 1 {
        mark(file, model, Hour::of(run.at()))?;
        return Ok(RunInsertion::New);
    }
    let columns = StoredRun::COLUMNS;
    let mut known = file.prepare_cached(&format!(
        "SELECT model, description, {columns} FROM run WHERE id = ?1"
    ))?;
    let known = known
        .query_row([id], |row| {
            Ok(((row.get(0)?, row.get(1)?), StoredRun::read(row, 2)?))
        })
        .optional()?;
    Ok(match known {
        Some((numbers, known)) if numbers == (model, description) && known == stored => {
            RunInsertion::AlreadyThere
        }
        Some(_) => RunInsertion::OtherContent,
        None => RunInsertion::Withdrawn,
    })
}

/// Marks the day of a changed run: its aggregate is outdated.
pub(super) fn mark(file: &Connection, model: i64, hour: Hour) -> rusqlite::Result<()> {
    let mut mark = file.prepare_cached("INSERT OR IGNORE INTO unsummed (number) VALUES (?1)")?;
    mark.execute([day_number(model, hour)])?;
    Ok(())
}

/// Aggregates the days of the window in one step; returns their number.
pub(super) fn sum_window(connection: &mut Connection, now: Wall) -> Result<usize, Trouble> {
    let transaction = begin(connection)?;
    let days = unsummed(&transaction, |day| day >= window_of(now))?;
    sum_days(&transaction, &days)?;
    if !days.is_empty() {
        record_import(&transaction, now)?;
    }
    transaction.commit()?;
    Ok(days.len())
}

/// Whether days of the window wait for their aggregate.
pub(super) fn has_unsummed(file: &Connection, now: Wall) -> rusqlite::Result<bool> {
    file.prepare_cached("SELECT 1 FROM unsummed WHERE number % ?1 >= ?2")?
        .exists([DAYS, window_of(now)])
}

/// Imports are dated in whole seconds, as responses are, and each is later than the one before.
pub(super) fn record_import(file: &Connection, now: Wall) -> rusqlite::Result<()> {
    let at = rows::milliseconds(Wall::from_seconds(now.seconds()));
    file.execute(
        "INSERT INTO last_import (only, at_ms) VALUES (1, ?1)
         ON CONFLICT (only) DO UPDATE SET at_ms = max(excluded.at_ms, at_ms + 1000)",
        [at],
    )?;
    Ok(())
}

/// Stores the table and aggregates the days that a refresh reads; in one transaction, so that every reader sees both or
/// neither.
fn replace_suites(file: &Connection, table: &SuiteTable, now: Wall) -> Result<bool, Trouble> {
    let mut suites = StoredSuites::load(file)?;
    if *suites.table == *table {
        return Ok(false);
    }
    suites.replace(file, table)?;
    sum_again(file, window_of(now))?;
    record_import(file, now)?;
    Ok(true)
}

/// Aggregates every day of the window again.
fn sum_again(transaction: &Connection, window: i64) -> Result<(), Trouble> {
    // Old days wait for the next import; until then their outdated aggregates are not read.
    transaction.execute(
        "INSERT OR IGNORE INTO unsummed (number) SELECT number FROM day",
        [],
    )?;
    sum_days(transaction, &unsummed(transaction, |day| day >= window)?)?;
    let by = summed_by(&StoredSuites::load(transaction)?.table);
    transaction.execute("UPDATE summed_by SET method = ?1", [by])?;
    Ok(())
}

/// The numbers of these days whose aggregates are outdated.
fn unsummed(file: &Connection, is_wanted: impl Fn(i64) -> bool) -> Result<Vec<i64>, Trouble> {
    let sql = "SELECT number FROM unsummed ORDER BY number";
    let mut days: Vec<i64> = query::all(file, sql, [], |row| Ok(row.get(0)?))?;
    days.retain(|number| is_wanted(number % DAYS));
    Ok(days)
}

fn sum_days(file: &Connection, days: &[i64]) -> Result<(), Trouble> {
    let columns = StoredRun::COLUMNS;
    let suites = StoredSuites::load(file)?;
    let sql = format!(
        "SELECT description, {columns} FROM run WHERE model = ?1 AND at_ms >= ?2 AND at_ms < ?3 ORDER BY at_ms, id"
    );
    let mut put =
        file.prepare_cached("INSERT OR REPLACE INTO day (number, sum) VALUES (?1, ?2)")?;
    let mut delete = file.prepare_cached("DELETE FROM day WHERE number = ?1")?;
    let mut unmark = file.prepare_cached("DELETE FROM unsummed WHERE number = ?1")?;
    for number in days {
        let model_number = number / DAYS;
        let day = number % DAYS;
        // Aggregates contain ids of descriptions, so any description of the model can be used to read its runs.
        let model = rows::described_model(file, "model.number = ?1", model_number)?;
        let from = Hour::numbered(u64::try_from(day).unwrap_or_default() * HOURS_OF_A_DAY);
        let [from, to] =
            [from, from.plus(HOURS_OF_A_DAY)].map(|hour| rows::milliseconds(hour.start()));
        let mut summing = DaySummation::default();
        query::each(file, &sql, [model_number, from, to], |row| {
            let stored = StoredRun::read(row, 1)?;
            let run = stored.run(&model, &suites)?;
            summing.add(
                &run,
                (stored.suite, suites.table.entry(run.suite())),
                row.get(0)?,
            );
            Ok(true)
        })?;
        let sum = summing.stored();
        // All its runs may have been withdrawn or moved.
        if sum.is_empty() {
            delete.execute([number])?;
        } else {
            put.execute(params![number, sum])?;
        }
        unmark.execute([number])?;
    }
    Ok(())
}
