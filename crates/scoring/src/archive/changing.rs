//! Runs withdrawn or corrected by an operator. Every change is recorded in the audit trail, in the same transaction.
//!
//! A withdrawn run is removed from the table of runs, so that nothing that reads runs has to know about it. Its id is
//! kept: the file's trigger ignores a new run with it, also one imported by an older program that has the file open.

use std::collections::HashSet;

use rusqlite::{Connection, params};

use scoregate_base::clock::Wall;

use super::super::hour::Hour;
use super::super::run::{ChangeReason, IdentifiedRun, RunId, Withdrawal};
use super::audit::{self, ChangeAuthor, RunChangeKind};
use super::description_ids::DescriptionIds;
use super::rows::{self, StoredRun};
use super::suites::StoredSuites;
use super::writing::{begin, mark, take_one};
use super::{Archive, ArchiveError, Damage, RunInsertion, Trouble};

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
    why: RunChangeObstacle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum RunChangeObstacle {
    #[error("does not exist; check the id")]
    Unknown,
    #[error("is withdrawn, which is final")]
    Withdrawn,
    #[error("is given twice; give it once")]
    Repeated,
}

/// A change of one run, or the obstacle to it.
type OneChange<T> = Result<Result<T, RunChangeObstacle>, Trouble>;

/// A run as found in the archive.
struct FoundRun {
    model: i64,
    stored: StoredRun,
    record: IdentifiedRun,
}

impl Archive {
    /// Withdraws runs: all, or none. They count until the days are aggregated, as after an import.
    pub fn withdraw(&self, ids: &[RunId], author: &ChangeAuthor, now: Wall) -> Result<(), RunChangeError> {
        let at = Wall::from_millis(now.millis());
        let mut seen = HashSet::new();
        let withdrawn = self.change(ids.iter(), |file, _, suites, id| {
            if !seen.insert(id) {
                return Ok(Err(RunChangeObstacle::Repeated));
            }
            let Some(found) = find(file, suites, id)? else { return Ok(Err(obstacle(file, id)?)) };
            let (actor, reason) = (author.actor.clone(), author.reason.clone());
            remove(file, id, &found)?;
            keep(file, &Withdrawal { id: id.clone(), at, actor, reason })?;
            audit::record(file, now, author, RunChangeKind::Withdrawal, id, Some(&found.record))?;
            Ok(Ok(()))
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
        let mut seen = HashSet::new();
        self.change(records.iter(), |file, described, suites, record| {
            let id = &record.id;
            if !seen.insert(id) {
                return Ok(Err(RunChangeObstacle::Repeated));
            }
            let Some(found) = find(file, suites, id)? else { return Ok(Err(obstacle(file, id)?)) };
            // Times are stored in milliseconds.
            let stored = StoredRun::of(record, suites.number(file, record.run.suite())?);
            if found.stored == stored && found.record.run.model() == record.run.model() {
                return Ok(Ok(false));
            }
            remove(file, id, &found)?;
            match take_one(file, described, suites, record)? {
                RunInsertion::New => {}
                RunInsertion::AlreadyThere | RunInsertion::OtherContent | RunInsertion::Withdrawn => {
                    return Err(Damage(format!("the run {id} cannot be replaced")).into());
                }
            }
            audit::record(file, now, author, RunChangeKind::Correction, id, Some(&found.record))?;
            Ok(Ok(true))
        })
    }

    /// Stores withdrawals of another archive, all or, on an error, none. The run, if it is here, is withdrawn.
    pub fn take_withdrawals(
        &self,
        withdrawals: &[Withdrawal],
        actor: &str,
        now: Wall,
    ) -> Result<Vec<RunInsertion>, ArchiveError> {
        let take = || {
            let inside = &mut *self.inside();
            let transaction = begin(&mut inside.connection)?;
            let suites = StoredSuites::load(&transaction)?;
            let taken: Result<Vec<RunInsertion>, Trouble> = withdrawals
                .iter()
                .map(|one| take_withdrawal(&transaction, &suites, one, actor, now))
                .collect();
            let taken = taken?;
            transaction.commit()?;
            Ok(taken)
        };
        take().map_err(|trouble| self.to_error(trouble))
    }

    /// Passes every withdrawal, by id, until the callback returns false.
    pub fn each_withdrawal(&self, each: &mut dyn FnMut(Withdrawal) -> bool) -> Result<(), ArchiveError> {
        let inside = self.inside();
        each_withdrawal(&inside.connection, each).map_err(|trouble| self.to_error(trouble))
    }

    /// Changes runs in one transaction, which is committed if there is no obstacle to any change.
    fn change<'i, I, T>(
        &self,
        items: impl Iterator<Item = &'i I>,
        mut change: impl FnMut(&Connection, &mut DescriptionIds, &mut StoredSuites, &'i I) -> OneChange<T>,
    ) -> Result<Vec<T>, RunChangeError>
    where
        I: ChangedRun + 'i,
    {
        let inside = &mut *self.inside();
        let (connection, described) = (&mut inside.connection, &mut inside.described);
        let change_all = || {
            let transaction = begin(connection)?;
            let mut suites = StoredSuites::load(&transaction)?;
            let (mut changed, mut refused) = (Vec::new(), Vec::new());
            for (index, item) in items.enumerate() {
                match change(&transaction, described, &mut suites, item)? {
                    Ok(one) => changed.push(one),
                    Err(why) => refused.push(RefusedRunChange { index, id: item.id().clone(), why }),
                }
            }
            if refused.is_empty() {
                transaction.commit()?;
            }
            Ok((changed, refused))
        };
        let outcome = change_all();
        // It may contain ids that were rolled back.
        *described = DescriptionIds::default();
        let (changed, refused) = outcome.map_err(|trouble| self.to_error(trouble))?;
        if refused.is_empty() { Ok(changed) } else { Err(RunChangeError::Refused(refused)) }
    }
}

/// An item of a request to change runs.
trait ChangedRun {
    fn id(&self) -> &RunId;
}

impl ChangedRun for RunId {
    fn id(&self) -> &RunId {
        self
    }
}

impl ChangedRun for IdentifiedRun {
    fn id(&self) -> &RunId {
        &self.id
    }
}

fn find(file: &Connection, suites: &StoredSuites, id: &RunId) -> Result<Option<FoundRun>, Trouble> {
    let columns = StoredRun::COLUMNS;
    let mut found = file.prepare_cached(&format!(
        "SELECT run.model, model.id, name, provider, price_input, price_output, {columns}
         FROM run JOIN model ON model.number = run.model JOIN description ON description.number = run.description
         WHERE run.id = ?1"
    ))?;
    let mut rows = found.query([id.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let model_id: String = row.get(1)?;
    let (model, stored) = (rows::model(&model_id, row, 2)??, StoredRun::read(row, 6)?);
    let record = stored.record(id.as_str(), &model, suites)?;
    Ok(Some(FoundRun { model: row.get(0)?, stored, record }))
}

/// Why a run that was not found cannot be changed.
fn obstacle(file: &Connection, id: &RunId) -> rusqlite::Result<RunChangeObstacle> {
    let is_withdrawn = is_withdrawn(file, id)?;
    Ok(if is_withdrawn { RunChangeObstacle::Withdrawn } else { RunChangeObstacle::Unknown })
}

fn is_withdrawn(file: &Connection, id: &RunId) -> rusqlite::Result<bool> {
    let mut known = file.prepare_cached("SELECT EXISTS (SELECT 1 FROM withdrawn WHERE id = ?1)")?;
    known.query_row([id.as_str()], |row| row.get(0))
}

fn remove(file: &Connection, id: &RunId, found: &FoundRun) -> rusqlite::Result<()> {
    file.prepare_cached("DELETE FROM run WHERE id = ?1")?.execute([id.as_str()])?;
    mark(file, found.model, Hour::of(found.record.run.at()))
}

fn keep(file: &Connection, withdrawal: &Withdrawal) -> rusqlite::Result<()> {
    let Withdrawal { id, at, actor, reason } = withdrawal;
    let mut insert =
        file.prepare_cached("INSERT INTO withdrawn (id, at_ms, actor, reason) VALUES (?1, ?2, ?3, ?4)")?;
    insert.execute(params![id.as_str(), rows::milliseconds(*at), actor, reason.as_str()])?;
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
    let author = ChangeAuthor { actor: actor.to_owned(), reason: withdrawal.reason.clone() };
    let before = found.as_ref().map(|found| &found.record);
    audit::record(file, now, &author, RunChangeKind::ImportedWithdrawal, id, before)?;
    Ok(RunInsertion::New)
}

fn each_withdrawal(file: &Connection, each: &mut dyn FnMut(Withdrawal) -> bool) -> Result<(), Trouble> {
    let mut all = file.prepare("SELECT id, at_ms, actor, reason FROM withdrawn ORDER BY id")?;
    let mut found = all.query([])?;
    while let Some(row) = found.next()? {
        let (id, at, reason): (String, i64, String) = (row.get(0)?, row.get(1)?, row.get(3)?);
        let at = u64::try_from(at).map(Wall::from_millis).ok();
        let (Some(id), Some(at), Ok(reason)) = (RunId::new(&id), at, ChangeReason::new(&reason)) else {
            return Err(Damage("a withdrawal cannot be decoded".into()).into());
        };
        if !each(Withdrawal { id, at, actor: row.get(2)?, reason }) {
            break;
        }
    }
    Ok(())
}
