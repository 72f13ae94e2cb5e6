//! Runs withdrawn or corrected by an operator. Every change is recorded in the audit trail, in the same transaction.
//!
//! A withdrawn run is removed from the table of runs, so that nothing that reads runs has to know about it. Its id is
//! kept: the file's trigger ignores a new run with it, also one imported by an older program that has the file open.

use std::collections::HashSet;

use rusqlite::{Connection, Row, params};

use scoregate_base::clock::Wall;

use super::audit::{self, RunChangeKind};
use super::description_ids::DescriptionIds;
use super::rows::{self, StoredRun};
use super::suites::StoredSuites;
use super::writing::{mark, take_one};
use super::{Archive, ArchiveError, RunInsertion, Trouble, query};
use crate::hour::Hour;
use crate::run::{ChangeAuthor, ChangeReason, IdentifiedRun, RunId, Withdrawal};

/// Why runs were not changed.
#[derive(Debug, thiserror::Error)]
pub enum RunChangeError {
    /// Some of the runs cannot be changed, so none was.
    #[error("{} of the runs cannot be changed; nothing was changed", .0.len())]
    Refused(Vec<RefusedRunChange>),
    /// The archive cannot be used.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

/// A run that cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{id} {why}")]
pub struct RefusedRunChange {
    /// Its place in the request.
    pub index: usize,
    /// Its id.
    pub id: RunId,
    /// Why, and what to do.
    pub why: RunChangeObstacle,
}

/// Why a run cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "stated by the messages")]
pub enum RunChangeObstacle {
    #[error("does not exist; check the id")]
    Unknown,
    #[error("is withdrawn, which is final")]
    Withdrawn,
    #[error("is given twice; give it once")]
    Repeated,
}

/// A run as found in the archive.
struct FoundRun {
    model: i64,
    stored: StoredRun,
    record: IdentifiedRun,
}

impl Archive {
    /// Withdraws runs: all, or none. They count until the days are aggregated, as after an import.
    pub fn withdraw(
        &self,
        ids: &[RunId],
        author: &ChangeAuthor,
        now: Wall,
    ) -> Result<(), RunChangeError> {
        let at = Wall::from_millis(now.millis());
        let withdrawn = self.change(ids.iter().map(|id| (id, id)), |file, _, _, found, id| {
            let actor = author.actor.clone();
            let reason = author.reason.clone();
            remove(file, id, &found)?;
            keep(
                file,
                &Withdrawal {
                    id: id.clone(),
                    at,
                    actor,
                    reason,
                },
            )?;
            audit::record(
                file,
                now,
                author,
                RunChangeKind::Withdrawal,
                id,
                Some(&found.record),
            )?;
            Ok(())
        });
        withdrawn.map(|_| ())
    }

    /// Replaces the content of runs: of all, or none. Returns for each whether its content was different.
    pub fn correct(
        &self,
        records: &[IdentifiedRun],
        author: &ChangeAuthor,
        now: Wall,
    ) -> Result<Vec<bool>, RunChangeError> {
        let records = records.iter().map(|record| (&record.id, record));
        self.change(records, |file, described, suites, found, record| {
            let id = &record.id;
            // Times are stored in milliseconds.
            let stored = StoredRun::of(record, suites.number(file, record.run.suite())?);
            if found.stored == stored && found.record.run.model() == record.run.model() {
                return Ok(false);
            }
            remove(file, id, &found)?;
            match take_one(file, described, suites, record)? {
                RunInsertion::New => {}
                RunInsertion::AlreadyThere
                | RunInsertion::OtherContent
                | RunInsertion::Withdrawn => {
                    return Err(Trouble::Damage(format!("the run {id} cannot be replaced")));
                }
            }
            audit::record(
                file,
                now,
                author,
                RunChangeKind::Correction,
                id,
                Some(&found.record),
            )?;
            Ok(true)
        })
    }

    /// Stores withdrawals of another archive, all or, on an error, none. The run, if it is here, is withdrawn.
    pub fn take_withdrawals(
        &self,
        withdrawals: &[Withdrawal],
        actor: &str,
        now: Wall,
    ) -> Result<Vec<RunInsertion>, ArchiveError> {
        self.transact(|file, _| {
            let suites = StoredSuites::load(file)?;
            withdrawals
                .iter()
                .map(|one| take_withdrawal(file, &suites, one, actor, now))
                .collect()
        })
    }

    /// Passes every withdrawal, by id, until the callback returns false.
    pub fn each_withdrawal(
        &self,
        each: &mut dyn FnMut(Withdrawal) -> bool,
    ) -> Result<(), ArchiveError> {
        let sql = "SELECT id, at_ms, actor, reason FROM withdrawn ORDER BY id";
        let withdrawal = |row: &Row<'_>| {
            let id: String = row.get(0)?;
            let at: i64 = row.get(1)?;
            let reason: String = row.get(3)?;
            let parts = (
                RunId::new(&id),
                rows::instant(at),
                ChangeReason::new(&reason),
            );
            let (Some(id), Some(at), Ok(reason)) = parts else {
                return Err(Trouble::Damage("a withdrawal cannot be decoded".into()));
            };
            Ok(each(Withdrawal {
                id,
                at,
                actor: row.get(2)?,
                reason,
            }))
        };
        self.with(|inside| query::each(&inside.connection, sql, [], withdrawal))
    }

    /// Changes runs in one transaction, if there is no obstacle to any change.
    fn change<'i, I, T>(
        &self,
        items: impl Iterator<Item = (&'i RunId, I)>,
        mut change: impl FnMut(
            &Connection,
            &mut DescriptionIds,
            &mut StoredSuites,
            FoundRun,
            I,
        ) -> Result<T, Trouble>,
    ) -> Result<Vec<T>, RunChangeError> {
        self.transact(|file, described| {
            let mut suites = StoredSuites::load(file)?;
            let mut seen = HashSet::new();
            let mut known = Vec::new();
            let mut refused = Vec::new();
            for (index, (id, item)) in items.enumerate() {
                let why = match find(file, &suites, id)? {
                    _ if !seen.insert(id) => RunChangeObstacle::Repeated,
                    None if is_withdrawn(file, id)? => RunChangeObstacle::Withdrawn,
                    None => RunChangeObstacle::Unknown,
                    Some(found) => {
                        known.push((found, item));
                        continue;
                    }
                };
                refused.push(RefusedRunChange {
                    index,
                    id: id.clone(),
                    why,
                });
            }
            if !refused.is_empty() {
                return Ok(Err(RunChangeError::Refused(refused)));
            }
            let mut change_one = |(found, item)| change(file, described, &mut suites, found, item);
            known
                .into_iter()
                .map(&mut change_one)
                .collect::<Result<_, _>>()
                .map(Ok)
        })?
    }
}

fn find(file: &Connection, suites: &StoredSuites, id: &RunId) -> Result<Option<FoundRun>, Trouble> {
    let sql = format!("{} WHERE run.id = ?1", StoredRun::with_model());
    let found = query::all(file, &sql, [id.as_str()], |row| {
        let model = rows::model(row, 2)?;
        let stored = StoredRun::read(row, 7)?;
        let record = stored.record(id.as_str(), &model, suites)?;
        Ok(FoundRun {
            model: row.get(1)?,
            stored,
            record,
        })
    })?;
    Ok(found.into_iter().next())
}

fn is_withdrawn(file: &Connection, id: &RunId) -> rusqlite::Result<bool> {
    file.prepare_cached("SELECT 1 FROM withdrawn WHERE id = ?1")?
        .exists([id.as_str()])
}

fn remove(file: &Connection, id: &RunId, found: &FoundRun) -> rusqlite::Result<()> {
    file.prepare_cached("DELETE FROM run WHERE id = ?1")?
        .execute([id.as_str()])?;
    mark(file, found.model, Hour::of(found.record.run.at()))
}

fn keep(file: &Connection, withdrawal: &Withdrawal) -> rusqlite::Result<()> {
    let Withdrawal {
        id,
        at,
        actor,
        reason,
    } = withdrawal;
    let mut insert = file.prepare_cached(
        "INSERT INTO withdrawn (id, at_ms, actor, reason) VALUES (?1, ?2, ?3, ?4)",
    )?;
    insert.execute(params![
        id.as_str(),
        rows::milliseconds(*at),
        actor,
        reason.as_str()
    ])?;
    Ok(())
}

fn take_withdrawal(
    file: &Connection,
    suites: &StoredSuites,
    withdrawal: &Withdrawal,
    actor: &str,
    now: Wall,
) -> Result<RunInsertion, Trouble> {
    let id = &withdrawal.id;
    if is_withdrawn(file, id)? {
        return Ok(RunInsertion::AlreadyThere);
    }
    let found = find(file, suites, id)?;
    if let Some(found) = &found {
        remove(file, id, found)?;
    }
    keep(file, withdrawal)?;
    let author = ChangeAuthor {
        actor: actor.to_owned(),
        reason: withdrawal.reason.clone(),
    };
    let before = found.as_ref().map(|found| &found.record);
    audit::record(
        file,
        now,
        &author,
        RunChangeKind::ImportedWithdrawal,
        id,
        before,
    )?;
    Ok(RunInsertion::New)
}
