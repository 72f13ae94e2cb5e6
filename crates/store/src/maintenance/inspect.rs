//! `scoregate store check` and `verify-backup`: report the contents of a file and all its errors. They never change the
//! file.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rusqlite::Connection;

use super::{
    load,
    maintenance_error::{MaintenanceError, MaintenanceResult},
    read_only, seal,
    store_file::file_in,
};
use crate::{
    durable_file::{LOG, with_suffix},
    embedded::{
        file, integrity,
        paths::{BACKUP_BEGINS, backup_kind},
    },
    sql::records,
    statements::{BadRecord, Done, Fault, FileConnection, SqlRow, Tables, done, schema::STEPS},
};
use scoregate_base::clock::{Day, Wall};

/// Records read per page.
const PAGE: usize = 10_000;
/// Maximum number of unreadable records listed.
const NAMED: usize = 1_000;
const ORPHANS: &str =
    "SELECT application FROM keys WHERE application NOT IN (SELECT id FROM applications)";
const LEDGER: &str = "SELECT day, application, granted FROM ledger_days";

/// The contents and errors of a store.
#[derive(Clone, Debug, Default)]
pub struct InspectionReport {
    /// Path of the store.
    pub path: PathBuf,
    /// Size of the store file.
    pub bytes: u64,
    /// Size of the write-ahead log.
    pub log_bytes: u64,
    /// Format of the store.
    pub format: u32,
    /// Number of applications.
    pub applications: u64,
    /// Number of keys.
    pub keys: u64,
    /// Number of keys that are neither revoked nor expired.
    pub keys_in_force: u64,
    /// The newest day with granted units.
    pub newest_day: Option<Day>,
    /// Units granted for that day.
    pub granted: u64,
    /// Number of audit records.
    pub audit: u64,
    /// The time of the last audit record, which is the last change.
    pub last_change: Option<Wall>,
    /// The newest day, if it has not begun. Requests are charged to it until it ends.
    pub future_day: Option<Day>,
    /// Damage to the file, which requires a replacement.
    pub faults: Vec<String>,
    /// Unreadable records, each with a reason. The gateway skips them.
    pub unreadable: Vec<String>,
}

impl InspectionReport {
    /// Whether no repair is needed.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty() && self.unreadable.is_empty() && self.future_day.is_none()
    }
}

/// Checks the store of a data directory, with or without a running server. Never writes to the store. Fails if the file
/// cannot be read. The report lists all findings in a readable file.
pub fn check(directory: &Path, now: Wall) -> MaintenanceResult<InspectionReport> {
    let path = file_in(directory);
    if fs::metadata(&path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        return Err(match file::missing(&path) {
            Some(fault) => fault.into_error("be read", &path).into(),
            None => MaintenanceError::NoStore(path),
        });
    }
    let mut report = at_instant(&path, now).map_err(|fault| fault.into_error("be read", &path))?;
    // Without a time, future days cannot be detected.
    report.future_day = report
        .newest_day
        .filter(|newest| *newest > now.day() && now != Wall::default());
    Ok(report)
}

/// Verifies a backup or an export.
pub fn verify(path: &Path) -> MaintenanceResult<InspectionReport> {
    let verified = match backup_kind(path) {
        Some(BACKUP_BEGINS) => backup(path),
        None => fs::File::open(path)
            .map_err(Fault::from)
            .and_then(|_| Err(load::unknown())),
        Some(_) => load::in_memory(path).and_then(|store| {
            let bytes = fs::metadata(path)?.len();
            // The store in memory has no separate file.
            let found = contents(&store, Path::new(""), Wall::default())?;
            Ok(InspectionReport {
                path: path.to_owned(),
                bytes,
                ..found
            })
        }),
    };
    verified.map_err(|fault| load::unusable(fault, path, "be read", path))
}

fn backup(path: &Path) -> Done<InspectionReport> {
    let mut report = at(path)?;
    let fault = match seal::is_intact(path)? {
        Some(true) => return Ok(report),
        Some(false) => "it does not match its checksum",
        None => "it has no checksum, so changes to its content cannot be detected",
    };
    report.faults.push(fault.into());
    Ok(report)
}

/// Checks any file. There is no time, so no key counts as expired.
pub fn at(path: &Path) -> Done<InspectionReport> {
    at_instant(path, Wall::default())
}

fn at_instant(path: &Path, now: Wall) -> Done<InspectionReport> {
    read_only::at(path, |store| contents(store, path, now))
}

fn contents(file: &FileConnection, path: &Path, now: Wall) -> Done<InspectionReport> {
    // One snapshot, so that the counts are consistent while a server writes.
    let store = file.lock();
    let snapshot = store.unchecked_transaction()?;
    let format = integrity::is_ours(&snapshot, path, STEPS)?;
    let mut report = InspectionReport {
        path: path.to_owned(),
        bytes: integrity::size(path),
        log_bytes: integrity::size(&with_suffix(path, LOG)),
        format,
        faults: integrity::findings(&snapshot)?,
        ..InspectionReport::default()
    };
    // Rows that are only reachable through a broken page cannot be counted, and the damage is already in the report.
    match counts(file, now, &mut report) {
        Err(fault) if report.faults.is_empty() => Err(fault),
        Ok(()) | Err(_) => Ok(report),
    }
}

/// The time of the last audit record.
pub fn last_change(store: &Connection) -> Done<Option<Wall>> {
    let at: Option<i64> = store.query_row("SELECT max(at) FROM audit", [], |row| row.get(0))?;
    Ok(at.map(|at| Wall::from_millis(at.max(0).cast_unsigned())))
}

fn counts(file: &FileConnection, now: Wall, report: &mut InspectionReport) -> Done<()> {
    let store = &*file.lock();
    report.applications = count(store, "SELECT count(*) FROM applications", report)?;
    report.keys = count(store, "SELECT count(*) FROM keys", report)?;
    report.audit = count(store, "SELECT count(*) FROM audit", report)?;
    report.last_change = last_change(store)?;
    let now = i64::try_from(now.millis()).unwrap_or(i64::MAX);
    let valid = format!(
        "SELECT count(*) FROM keys WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > {now})"
    );
    report.keys_in_force = count(store, &valid, report)?;
    report.newest_day = done(Tables::File(file).today())?;
    if let Some(day) = report.newest_day {
        let granted = format!(
            "SELECT coalesce(sum(granted), 0) FROM ledger_days WHERE day = '{day}' AND granted BETWEEN 0 AND {}",
            u32::MAX
        );
        report.granted = count(store, &granted, report)?;
    }
    report.unreadable = unreadable(Tables::File(file))?;
    Ok(())
}

fn count(store: &Connection, sql: &str, report: &mut InspectionReport) -> Done<u64> {
    let found: i64 = store.query_row(sql, [], |row| row.get(0))?;
    u64::try_from(found).or_else(|_| {
        report.faults.push(format!("{sql} gives {found}"));
        Ok(0)
    })
}

/// Applications, keys and ledger records that cannot be read, each with a reason.
pub fn unreadable(store: Tables<'_>) -> Done<Vec<String>> {
    let mut unreadable = Vec::new();
    // The ledger is checked separately below, so the pages are read for a day that no ledger record has.
    let no_day = Day::from_number(0);
    let mut after = None;
    loop {
        let page = done(records::page(store, after, PAGE, no_day))?;
        unreadable.extend(page.skipped);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    done(store.each(ORPHANS, &[], |row: &SqlRow<'_>| {
        let id = row.any_text("application");
        unreadable.push(format!("a key of {id}: there is no such application"));
    }))?;
    done(store.each(LEDGER, &[], |row| unreadable.extend(ledger_fault(row))))?;
    if unreadable.len() > NAMED {
        unreadable.truncate(NAMED);
        unreadable.push("and more".into());
    }
    Ok(unreadable)
}

/// The error in the day or the number of a ledger record, if there is one.
fn ledger_fault(row: &SqlRow<'_>) -> Option<String> {
    let day = row.any_text("day");
    let id = row.any_text("application");
    let reason = match row.limit("granted") {
        Err(BadRecord(reason)) => reason,
        Ok(_) if Day::parse(&day).is_none() => "its day is invalid".into(),
        Ok(_) => return None,
    };
    Some(format!("ledger of {id} for {day:?}: {reason}"))
}
