//! The audit trail of withdrawn and corrected runs. It only grows: the file's triggers reject changes of it.

use rusqlite::{Connection, Row, params};

use crate::run::{ChangeAuthor, IdentifiedRun, RunId};
use scoregate_base::clock::Wall;
use scoregate_base::words;

use super::{Archive, ArchiveError, Trouble, query, rows};

words! {
    /// The kind of a change.
    pub enum RunChangeKind: word {
        /// A run was withdrawn.
        Withdrawal = "withdraw",
        /// The content of a run was replaced.
        Correction = "correct",
        /// The withdrawal of another archive was imported.
        ImportedWithdrawal = "import-withdrawal",
    }
}

/// A record of the audit trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunChange {
    /// Its number; later records have larger ones.
    pub number: u64,
    /// When the change was made in this archive.
    pub at: Wall,
    /// The user.
    pub actor: String,
    /// The kind.
    pub kind: RunChangeKind,
    /// The run.
    pub run: RunId,
    /// The reason.
    pub reason: String,
    /// The run's previous content as a line of JSON; none if it was not in this archive.
    pub before: Option<String>,
}

impl Archive {
    /// The newest records, newest first: of one run or of all, before a number.
    pub fn changes(
        &self,
        run: Option<&RunId>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<RunChange>, ArchiveError> {
        let before = before
            .and_then(|number| i64::try_from(number).ok())
            .unwrap_or(i64::MAX);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let of = params![before, run.map(RunId::as_str), limit];
        let sql = "SELECT number, at_ms, actor, action, run, reason, before FROM audit
            WHERE number < ?1 AND (?2 IS NULL OR run = ?2) ORDER BY number DESC LIMIT ?3";
        self.with(|inside| query::all(&inside.connection, sql, of, change))
    }
}

/// Appends a record.
pub(super) fn record(
    file: &Connection,
    at: Wall,
    author: &ChangeAuthor,
    kind: RunChangeKind,
    run: &RunId,
    before: Option<&IdentifiedRun>,
) -> rusqlite::Result<()> {
    let mut insert = file.prepare_cached(
        "INSERT INTO audit (at_ms, actor, action, run, reason, before) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let at = rows::milliseconds(at);
    let before = before.map(IdentifiedRun::write);
    insert.execute(params![
        at,
        author.actor,
        kind.word(),
        run.as_str(),
        author.reason.as_str(),
        before
    ])?;
    Ok(())
}

fn change(row: &Row<'_>) -> Result<RunChange, Trouble> {
    let action: String = row.get(3)?;
    let run: String = row.get(4)?;
    let (Some(kind), Some(run)) = (RunChangeKind::parse(&action), RunId::new(&run)) else {
        return Err(Trouble::Damage(
            "a record of the audit trail cannot be decoded".into(),
        ));
    };
    let number: i64 = row.get(0)?;
    let at: i64 = row.get(1)?;
    Ok(RunChange {
        number: number.unsigned_abs(),
        at: Wall::from_millis(at.unsigned_abs()),
        actor: row.get(2)?,
        kind,
        run,
        reason: row.get(5)?,
        before: row.get(6)?,
    })
}
