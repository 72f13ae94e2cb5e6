//! Deletes runs and incidents for an operator, with the reason.

use rusqlite::{Connection, params};

use scoregate_base::clock::Wall;

use super::{
    Archive, ArchiveError, Trouble, import::record_import, incident_records, opened::begin, query,
    rows,
};
use crate::run::ChangeAuthor;

impl Archive {
    /// Deletes runs and incidents. If some ids are unknown, deletes nothing and returns these ids. A deleted run is
    /// moved to the table of deleted runs, and may be imported again. A deleted incident gets a final revision, and is
    /// not published again.
    pub fn delete(
        &self,
        ids: &[String],
        author: &ChangeAuthor,
        now: Wall,
    ) -> Result<Vec<String>, ArchiveError> {
        self.with(|connection| {
            let transaction = begin(connection)?;
            let mut unknown = Vec::new();
            for id in ids {
                let is_deleted = delete_run(&transaction, id, author, now)?
                    || incident_records::retract(&transaction, id, author, now)?;
                if !is_deleted {
                    unknown.push(id.clone());
                }
            }
            if unknown.is_empty() {
                // This makes servers compute a new snapshot, as after an import.
                record_import(&transaction, now)?;
                transaction.commit()?;
            }
            Ok(unknown)
        })
    }
}

/// Returns `false` if there is no such run.
fn delete_run(
    file: &Connection,
    id: &str,
    author: &ChangeAuthor,
    now: Wall,
) -> Result<bool, Trouble> {
    let sql = format!("SELECT {} FROM run WHERE id = ?1", rows::COLUMNS);
    let Some(record) = query::all(file, &sql, [id], rows::record)?.pop() else {
        return Ok(false);
    };
    let at = rows::milliseconds(now);
    let reason = author.reason.as_str();
    file.execute(
        "INSERT INTO deleted (id, at, actor, reason, run) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![id, at, author.actor, reason, record.write()],
    )?;
    file.execute("DELETE FROM run WHERE id = ?1", [id])?;
    Ok(true)
}
