//! The records of incidents, and the scan position of each model. Records are never changed, only added.

use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Params, Row, params};

use scoregate_base::{clock::Wall, routes::ModelId};

use super::{Archive, ArchiveError, Trouble, file, opened::begin, query, rows};
use crate::{
    hour::Hour,
    incident_scan::incident::{
        Incident, IncidentHistory, IncidentRecord, KnownIncident, RevisedIncident, ScanPosition,
    },
    run::{ChangeAuthor, RunId},
};

/// The result of scanning one model, to be recorded.
#[derive(Clone, Debug)]
pub struct IncidentScanRecord {
    pub model: ModelId,
    /// The position at which the scan began.
    pub before: ScanPosition,
    /// The position at which the scan ended.
    pub after: ScanPosition,
    pub revised: Vec<RevisedIncident>,
    /// The newest run of the model.
    pub last_run: RunId,
    /// The time of the newest run.
    pub last_run_at: Wall,
}

impl Archive {
    /// Records the results of scans with the date `at`. If there is an error, records nothing. If another process
    /// scanned a model in the meantime, the result for that model is skipped, because that process has recorded it.
    /// Nothing is recorded during an import, because the next snapshot scans the same runs again.
    pub(crate) fn record_incidents(
        &self,
        scans: &[IncidentScanRecord],
        at: Wall,
    ) -> Result<(), ArchiveError> {
        let scans: Vec<_> = scans
            .iter()
            .filter(|scan| scan.before != scan.after || !scan.revised.is_empty())
            .collect();
        if scans.is_empty() {
            return Ok(());
        }
        self.with(|connection| {
            // A snapshot must not wait for the end of an import.
            connection.busy_timeout(Duration::ZERO)?;
            let recorded = record_scans(connection, &scans, at);
            connection.busy_timeout(file::PATIENCE)?;
            recorded
        })
    }

    /// Passes every record to `each`, ordered by opening and revision, until it returns `false`.
    pub fn each_incident_record(
        &self,
        each: &mut dyn FnMut(IncidentRecord) -> bool,
    ) -> Result<(), ArchiveError> {
        let sql = "SELECT record FROM incident_record ORDER BY opened, incident, revision";
        self.with(|file| query::each(file, sql, [], |row| Ok(each(record(row)?))))
    }
}

/// The records and the scan position of a model.
pub fn history(file: &Connection, model: &str) -> Result<IncidentHistory, Trouble> {
    let mut incidents: Vec<KnownIncident> = Vec::new();
    let condition = "model = ?1 ORDER BY opened, incident, revision";
    for record in records(file, condition, [model])? {
        let newest = KnownIncident {
            retracted: record.retraction.map(|_| record.recorded),
            incident: record.incident,
            revision: record.revision,
        };
        match incidents.last_mut() {
            Some(known) if is_same(&known.incident, &newest.incident) => *known = newest,
            Some(_) | None => incidents.push(newest),
        }
    }
    Ok(IncidentHistory {
        incidents,
        position: position(file, model)?,
    })
}

/// Adds a final revision to an incident. Returns `false` if the incident does not exist or already has one.
pub fn retract(
    file: &Connection,
    id: &str,
    author: &ChangeAuthor,
    now: Wall,
) -> Result<bool, Trouble> {
    let newest = records(file, "incident = ?1 ORDER BY revision", [id])?.pop();
    let Some(newest) = newest.filter(|newest| newest.retraction.is_none()) else {
        return Ok(false);
    };
    let retraction = IncidentRecord {
        revision: newest.revision + 1,
        recorded: Wall::from_millis(now.millis()),
        retraction: Some(author.clone()),
        ..newest
    };
    insert(file, &retraction)?;
    Ok(true)
}

fn is_same(one: &Incident, other: &Incident) -> bool {
    one.kind == other.kind && one.opened == other.opened
}

fn record_scans(
    connection: &mut Connection,
    scans: &[&IncidentScanRecord],
    at: Wall,
) -> Result<(), Trouble> {
    let transaction = match begin(connection) {
        // An import is running. When it ends, another snapshot follows.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => return Ok(()),
        begun => begun?,
    };
    for scan in scans {
        record_scan(&transaction, scan, at)?;
    }
    Ok(transaction.commit()?)
}

fn record_scan(file: &Connection, scan: &IncidentScanRecord, at: Wall) -> Result<(), Trouble> {
    if position(file, scan.model.as_str())? != scan.before {
        return Ok(());
    }
    for RevisedIncident { incident, revision } in &scan.revised {
        let record = IncidentRecord {
            model: scan.model.clone(),
            revision: *revision,
            incident: incident.clone(),
            recorded: at,
            last_run: scan.last_run.clone(),
            last_run_at: scan.last_run_at,
            retraction: None,
        };
        insert(file, &record)?;
    }
    let Some(hour) = scan.after.hour.map(stored_hour) else {
        return Ok(());
    };
    let mut replace = file.prepare_cached(
        "INSERT OR REPLACE INTO incident_scan (model, round, hour) VALUES (?1, ?2, ?3)",
    )?;
    replace.execute(params![
        scan.model.as_str(),
        scan.after.round.map(stored_hour),
        hour
    ])?;
    Ok(())
}

fn stored_hour(hour: Hour) -> i64 {
    rows::milliseconds(hour.start())
}

/// An existing revision is kept: a snapshot that was begun before a deletion would use the same number for its own
/// revision.
fn insert(file: &Connection, record: &IncidentRecord) -> rusqlite::Result<()> {
    let text = serde_json::to_string(record).expect("it contains only text and finite numbers");
    let mut insert = file.prepare_cached(
        "INSERT OR IGNORE INTO incident_record (incident, revision, model, opened, record) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    insert.execute(params![
        record.id(),
        record.revision,
        record.model.as_str(),
        rows::milliseconds(record.incident.opened),
        text
    ])?;
    Ok(())
}

pub fn position(file: &Connection, model: &str) -> Result<ScanPosition, Trouble> {
    let stored: Option<(Option<i64>, i64)> = file
        .prepare_cached("SELECT round, hour FROM incident_scan WHERE model = ?1")?
        .query_row([model], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((round, hour)) = stored else {
        return Ok(ScanPosition::default());
    };
    Ok(ScanPosition {
        round: round.map(hour_at).transpose()?,
        hour: Some(hour_at(hour)?),
    })
}

fn hour_at(at: i64) -> Result<Hour, Trouble> {
    Ok(Hour::of(rows::instant(at)?))
}

/// The records that a condition selects.
fn records(
    file: &Connection,
    condition: &str,
    of: impl Params,
) -> Result<Vec<IncidentRecord>, Trouble> {
    let sql = format!("SELECT record FROM incident_record WHERE {condition}");
    query::all(file, &sql, of, record)
}

fn record(row: &Row<'_>) -> Result<IncidentRecord, Trouble> {
    serde_json::from_str(row.get_ref(0)?.as_str()?)
        .map_err(|_| Trouble::Damage("a record of an incident cannot be decoded".into()))
}
