//! The records of incidents, and the position of the scan of each model. Records only grow: the file's triggers reject
//! changes of them.

use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};

use scoregate_base::clock::Wall;
use scoregate_base::routes::ModelId;

use super::writing::record_import;
use super::{Archive, ArchiveError, RunInsertion, Trouble, query, rows};
use crate::figures::Severity;
use crate::hour::Hour;
use crate::incident_scan::incident::{
    Incident, IncidentHistory, IncidentKind, IncidentRecord, KnownIncident, RevisedIncident,
    ScanPosition,
};
use crate::run::{ChangeAuthor, ChangeReason, RunId};

const COLUMNS: &str =
    "model, revision, kind, severity, opened_ms, resolved_ms, baseline, mean, lowest, recorded_ms,
    last_run, last_run_ms, retracted_by, reason, method";

/// The result of the scan of one model, to be recorded.
#[derive(Clone, Debug)]
pub(crate) struct IncidentScanRecord {
    pub model: ModelId,
    /// The position that the scan began with.
    pub before: ScanPosition,
    /// The position that it ended with.
    pub after: ScanPosition,
    pub revised: Vec<RevisedIncident>,
    /// The newest run of the model.
    pub last_run: (RunId, Wall),
}

/// Why an incident was not retracted.
#[derive(Debug, thiserror::Error)]
pub enum IncidentRetractionError {
    /// There is no such incident.
    #[error("the incident {0} does not exist; `scoregate scoring incidents list` shows the ids")]
    Unknown(String),
    /// It is retracted already.
    #[error("the incident {0} is retracted, which is final")]
    Retracted(String),
    /// The archive cannot be used.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

impl Archive {
    /// Records the results of scans, dated `at`: all, or on an error none. A result whose model was scanned by another
    /// process meanwhile is left out: that process has recorded it.
    pub(crate) fn record_incidents(
        &self,
        scans: &[IncidentScanRecord],
        at: Wall,
    ) -> Result<(), ArchiveError> {
        let is_new =
            |scan: &&IncidentScanRecord| scan.before != scan.after || !scan.revised.is_empty();
        let scans: Vec<_> = scans.iter().filter(is_new).collect();
        if scans.is_empty() {
            return Ok(());
        }
        self.transact(|file, _| {
            scans
                .into_iter()
                .try_for_each(|scan| record_scan(file, scan, at))
        })
    }

    /// Retracts an incident, which is then not published.
    pub fn retract_incident(
        &self,
        id: &str,
        author: &ChangeAuthor,
        now: Wall,
    ) -> Result<(), IncidentRetractionError> {
        self.transact(|file, _| {
            let mut known = records(file, "WHERE incident = ?1 ORDER BY revision", [id])?;
            if known.iter().any(|record| record.retraction.is_some()) {
                return Ok(Err(IncidentRetractionError::Retracted(id.to_owned())));
            }
            let Some(newest) = known.pop() else {
                return Ok(Err(IncidentRetractionError::Unknown(id.to_owned())));
            };
            let retraction = IncidentRecord {
                revision: newest.revision + 1,
                recorded: Wall::from_millis(now.millis()),
                retraction: Some(author.clone()),
                ..newest
            };
            insert(file, &retraction)?;
            // Servers make a new snapshot, as after an import.
            record_import(file, now)?;
            Ok(Ok(()))
        })?
    }

    /// Stores records of another archive, all or, on an error, none. New ones count as an import.
    pub fn take_incidents(
        &self,
        records: &[IncidentRecord],
        now: Wall,
    ) -> Result<Vec<RunInsertion>, ArchiveError> {
        self.transact(|file, _| {
            let taken: Result<Vec<_>, _> = records
                .iter()
                .map(|record| take_record(file, record))
                .collect();
            let taken = taken?;
            if taken.contains(&RunInsertion::New) {
                record_import(file, now)?;
            }
            Ok(taken)
        })
    }

    /// Stores scan positions of another archive, all or, on an error, none. The newer position of a model counts.
    pub fn take_scan_positions(
        &self,
        positions: &[(ModelId, ScanPosition)],
    ) -> Result<Vec<RunInsertion>, ArchiveError> {
        self.transact(|file, _| {
            positions
                .iter()
                .map(|(model, position)| advance(file, model, *position))
                .collect()
        })
    }

    /// Passes every record, by opening and revision, until the callback returns false.
    pub fn each_incident_record(
        &self,
        each: &mut dyn FnMut(IncidentRecord) -> bool,
    ) -> Result<(), ArchiveError> {
        let sql =
            format!("SELECT {COLUMNS} FROM incident_record ORDER BY opened_ms, incident, revision");
        self.with(|inside| query::each(&inside.connection, &sql, [], |row| Ok(each(record(row)?))))
    }

    /// Passes the scan position of every model, by id, until the callback returns false.
    pub fn each_scan_position(
        &self,
        each: &mut dyn FnMut(&ModelId, ScanPosition) -> bool,
    ) -> Result<(), ArchiveError> {
        let sql = "SELECT model, round_ms, hour_ms FROM incident_scan ORDER BY model";
        let position = |row: &Row<'_>| {
            let model: String = row.get(0)?;
            let damage =
                || Trouble::Damage(format!("the scan position of {model:?} cannot be decoded"));
            let position = stored_position(row.get(1)?, row.get(2)?)?;
            Ok(each(&ModelId::new(&model).ok_or_else(damage)?, position))
        };
        self.with(|inside| query::each(&inside.connection, sql, [], position))
    }
}

/// The records and the position of a model.
pub(super) fn history(file: &Connection, model: &str) -> Result<IncidentHistory, Trouble> {
    let mut incidents: Vec<KnownIncident> = Vec::new();
    for record in records(
        file,
        "WHERE model = ?1 ORDER BY opened_ms, kind, revision",
        [model],
    )? {
        let IncidentRecord {
            revision,
            incident,
            recorded,
            retraction,
            ..
        } = record;
        let is_same = |known: &&mut KnownIncident| {
            (known.incident.kind, known.incident.opened) == (incident.kind, incident.opened)
        };
        let retracted = retraction.map(|_| recorded);
        match incidents.last_mut().filter(is_same) {
            // A retraction is final.
            Some(known) => {
                // An earlier program states no method in a later revision.
                let method = incident.method.or(known.incident.method.take());
                let incident = Incident { method, ..incident };
                *known = KnownIncident {
                    incident,
                    revision,
                    retracted: known.retracted.or(retracted),
                };
            }
            None => incidents.push(KnownIncident {
                incident,
                revision,
                retracted,
            }),
        }
    }
    Ok(IncidentHistory {
        incidents,
        position: position(file, model)?.unwrap_or_default(),
    })
}

fn position(file: &Connection, model: &str) -> Result<Option<ScanPosition>, Trouble> {
    let mut known =
        file.prepare_cached("SELECT round_ms, hour_ms FROM incident_scan WHERE model = ?1")?;
    let known = known
        .query_row([model], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    known
        .map(|(round, hour)| stored_position(round, hour))
        .transpose()
}

fn stored_position(round: Option<i64>, hour: i64) -> Result<ScanPosition, Trouble> {
    let hour_of = |at: i64| Ok::<Hour, Trouble>(Hour::of(instant(at)?));
    Ok(ScanPosition {
        round: round.map(hour_of).transpose()?,
        hour: Some(hour_of(hour)?),
    })
}

fn record_scan(file: &Connection, scan: &IncidentScanRecord, at: Wall) -> Result<(), Trouble> {
    if position(file, scan.model.as_str())?.unwrap_or_default() != scan.before {
        return Ok(());
    }
    for RevisedIncident { incident, revision } in &scan.revised {
        let record = IncidentRecord {
            model: scan.model.clone(),
            revision: *revision,
            incident: incident.clone(),
            recorded: at,
            last_run: scan.last_run.clone(),
            retraction: None,
        };
        insert(file, &record)?;
    }
    advance(file, &scan.model, scan.after)?;
    Ok(())
}

/// Inserts a record; returns false if the revision exists.
fn insert(file: &Connection, record: &IncidentRecord) -> rusqlite::Result<bool> {
    let IncidentRecord {
        model,
        revision,
        incident,
        recorded,
        last_run: (last_run, last_run_at),
        retraction,
    } = record;
    let Incident {
        kind,
        severity,
        opened,
        resolved,
        lowest,
        mean,
        baseline,
        method,
    } = incident;
    let mut insert = file.prepare_cached(&format!(
        "INSERT OR IGNORE INTO incident_record (incident, {COLUMNS})
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"
    ))?;
    let inserted = insert.execute(params![
        record.id(),
        model.as_str(),
        revision,
        kind.word(),
        severity.word(),
        rows::milliseconds(*opened),
        resolved.map(rows::milliseconds),
        baseline,
        mean,
        lowest,
        rows::milliseconds(*recorded),
        last_run.as_str(),
        rows::milliseconds(*last_run_at),
        retraction
            .as_ref()
            .map(|retraction| retraction.actor.as_str()),
        retraction
            .as_ref()
            .map(|retraction| retraction.reason.as_str()),
        method,
    ])?;
    Ok(inserted == 1)
}

fn take_record(file: &Connection, new: &IncidentRecord) -> Result<RunInsertion, Trouble> {
    if insert(file, new)? {
        return Ok(RunInsertion::New);
    }
    let known = records(
        file,
        "WHERE incident = ?1 AND revision = ?2",
        params![new.id(), new.revision],
    )?;
    Ok(if known.contains(new) {
        RunInsertion::AlreadyThere
    } else {
        RunInsertion::OtherContent
    })
}

/// Moves the position of a model forwards.
fn advance(file: &Connection, model: &ModelId, to: ScanPosition) -> Result<RunInsertion, Trouble> {
    let known = position(file, model.as_str())?;
    let newest = known.map_or(to, |known| known.newest(to));
    let Some(hour) = newest.hour.filter(|_| known != Some(newest)) else {
        return Ok(RunInsertion::AlreadyThere);
    };
    let mut replace = file.prepare_cached(
        "INSERT OR REPLACE INTO incident_scan (model, round_ms, hour_ms) VALUES (?1, ?2, ?3)",
    )?;
    let at = |hour: Hour| rows::milliseconds(hour.start());
    replace.execute(params![model.as_str(), newest.round.map(at), at(hour)])?;
    Ok(RunInsertion::New)
}

fn instant(at: i64) -> Result<Wall, Trouble> {
    rows::instant(at).ok_or_else(|| Trouble::Damage("an instant cannot be decoded".into()))
}

/// The records that a clause selects.
fn records(
    file: &Connection,
    clause: &str,
    of: impl Params,
) -> Result<Vec<IncidentRecord>, Trouble> {
    query::all(
        file,
        &format!("SELECT {COLUMNS} FROM incident_record {clause}"),
        of,
        record,
    )
}

/// Decodes the columns.
fn record(row: &Row<'_>) -> Result<IncidentRecord, Trouble> {
    let model: String = row.get(0)?;
    let kind: String = row.get(2)?;
    let severity: String = row.get(3)?;
    let last_run: String = row.get(10)?;
    let last_run_at: i64 = row.get(11)?;
    let damage = || Trouble::Damage("a record of an incident cannot be decoded".into());
    let kind = IncidentKind::parse(&kind);
    let severity = Severity::parse(&severity);
    let retraction = match (row.get(12)?, row.get::<_, Option<String>>(13)?) {
        (Some(actor), Some(reason)) => {
            let reason = ChangeReason::new(&reason).map_err(|_| damage())?;
            Some(ChangeAuthor { actor, reason })
        }
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => return Err(damage()),
    };
    Ok(IncidentRecord {
        model: ModelId::new(&model).ok_or_else(damage)?,
        revision: row.get(1)?,
        incident: Incident {
            kind: kind.ok_or_else(damage)?,
            severity: severity.ok_or_else(damage)?,
            opened: instant(row.get(4)?)?,
            resolved: row.get::<_, Option<i64>>(5)?.map(instant).transpose()?,
            lowest: row.get(8)?,
            mean: row.get(7)?,
            baseline: row.get(6)?,
            method: row.get(14)?,
        },
        recorded: instant(row.get(9)?)?,
        last_run: (
            RunId::new(&last_run).ok_or_else(damage)?,
            instant(last_run_at)?,
        ),
        retraction,
    })
}
