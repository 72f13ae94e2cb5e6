//! `scoregate store restore` and `store import`: replace the store of a data directory with a backup or an export.
//!
//! The replacement is atomic: the new store is built and checked next to the old one, and the old one is renamed, never
//! removed. The caller holds the lock of the data directory, so no other process writes. `swap` has the steps of the
//! replacement.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rusqlite::Connection;

use super::{
    inspect::{self, InspectionReport},
    load,
    maintenance_error::{MaintenanceError, MaintenanceResult},
    store_file::{file_in, is_the_store},
    transfer::{self, TransferSummary},
};
use crate::{
    StoreError,
    durable_file::{HALF, remove_database, sync_directory, with_suffix},
    embedded::{
        file,
        paths::{BACKUP_BEGINS, backup_kind},
        swap,
    },
    sql::restored_day,
    statements::{Done, Fault, FileConnection, Tables, done},
};
use scoregate_base::{
    clock::{Day, Wall},
    plans::Tier,
};

/// Options of an import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The actor named in the audit trail.
    pub who: String,
    /// Whether a used store is replaced (restore). Otherwise an export is imported where there is no used store. The
    /// exported store was closed, so it has no later grants or changes.
    pub restores: bool,
    /// The data directory of the previous server, if it is a different directory. No server may be using it.
    pub previous: Option<PathBuf>,
    /// Leaves the current day open although later grants are unknown.
    pub reopen_day: bool,
    /// Accepts that revocations, shortened expiries and changes to limits since the backup are unknown.
    pub accept_lost_revocations: bool,
    /// The tiers with their quotas.
    pub tiers: Vec<Tier>,
}

/// The result of an import.
#[derive(Debug)]
pub struct ImportSummary {
    /// The report about the imported store.
    pub report: InspectionReport,
    /// The new path of the replaced store.
    pub aside: Option<PathBuf>,
    /// A summary of the data transferred from the previous store.
    pub carried: TransferSummary,
    /// The last change in the file.
    pub last_change: Option<Wall>,
    /// The state of the current day.
    pub day: ImportedDay,
}

/// The current day of an imported store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportedDay {
    /// All grants of the day are known.
    Complete,
    /// Some grants are unknown, so no more units are granted on this day.
    Closed(Day),
    /// Some grants are unknown, so up to this number of units may be granted twice. `None` if the quota of a tier is
    /// unknown.
    Reopened(Day, Option<u64>),
}

/// Replaces the store of the directory with the contents of `from`.
pub fn import(
    directory: &Path,
    from: &Path,
    options: &ImportOptions,
    now: Wall,
) -> MaintenanceResult<ImportSummary> {
    let path = file_in(directory);
    // An interrupted swap is finished first, so that there is only one at a time.
    swap::finish(&path)
        .map_err(|error| Fault::from(error).into_error("complete the last import", &path))?;
    check_source(&path, from, options)?;
    let previous = previous(directory, options)?;
    let half = with_suffix(&path, HALF);
    let made = make(&previous, from, &half, options, now)
        .and_then(|imported| put_in_place(&path, from, imported, now));
    if made.is_err() {
        drop(remove_database(&half)); // the original error is more important
    }
    made
}

/// Rejects a file that cannot be imported, regardless of its rows.
fn check_source(path: &Path, from: &Path, options: &ImportOptions) -> MaintenanceResult<()> {
    let reason = if !from.is_file() {
        "the file does not exist"
    } else if is_the_store(path, from) {
        "it is the store itself"
    } else if !options.restores && backup_kind(from) == Some(BACKUP_BEGINS) {
        "it is a backup; use `scoregate store restore`"
    } else {
        return Ok(());
    };
    Err(rejected(from, reason.into()))
}

fn rejected(from: &Path, reason: String) -> MaintenanceError {
    MaintenanceError::Unfit {
        path: from.to_owned(),
        reason,
    }
}

/// Renames the old store, and gives its name to the new one.
fn put_in_place(
    path: &Path,
    from: &Path,
    mut imported: ImportSummary,
    now: Wall,
) -> MaintenanceResult<ImportSummary> {
    let instant = swap::instant(now);
    let aside = swap::aside(path, &instant);
    if aside.exists() {
        let reason = format!("{} exists already; try again", aside.display());
        return Err(rejected(from, reason));
    }
    let next = swap::next(path, &instant);
    let moved = fs::rename(with_suffix(path, HALF), &next)
        .and_then(|()| sync_directory(&next))
        .and_then(|()| swap::run(path, &instant));
    moved.map_err(|error| Fault::from(error).into_error("move it into place", path))?;
    imported.aside = aside.exists().then_some(aside);
    path.clone_into(&mut imported.report.path);
    Ok(imported)
}

/// The stores that may contain later changes: the store to be replaced, if it was used, and the store of the previous
/// server. Fails if the loss of unreadable or unknown changes was not accepted.
fn previous(directory: &Path, options: &ImportOptions) -> MaintenanceResult<Vec<PathBuf>> {
    let path = file_in(directory);
    let is_used = match inspect::check(directory, Wall::default()) {
        Err(MaintenanceError::NoStore(_)) => false,
        Ok(report) if report.applications == 0 && report.is_sound() => false,
        Ok(report) if !options.restores => {
            return Err(MaintenanceError::InUse {
                path,
                applications: report.applications,
            });
        }
        Err(MaintenanceError::Store(StoreError::Newer { .. } | StoreError::Damaged { .. }))
            if options.restores || !path.exists() =>
        {
            path.exists()
        }
        Ok(_) => true,
        Err(other) => return Err(other),
    };
    let mut stores: Vec<PathBuf> = is_used.then_some(path).into_iter().collect();
    if let Some(other) = options.previous.as_deref().map(file_in) {
        if !other.is_file() {
            return Err(MaintenanceError::NoStore(other));
        }
        stores.push(other);
    }
    Ok(stores)
}

/// Builds the new store under a temporary name.
fn make(
    previous: &[PathBuf],
    from: &Path,
    half: &Path,
    options: &ImportOptions,
    now: Wall,
) -> MaintenanceResult<ImportSummary> {
    let own = |fault: Fault| load::unusable(fault, from, "create the new store", half);
    let store = load::new_store(from, half)
        .map_err(|fault| load::unusable(fault, from, "be read", from))?;
    let mut imported = settle(previous, &store, options, now).map_err(own)?;
    record(&store, from, imported.day, options, now).map_err(own)?;
    file::close_new(store.into_inner(), half).map_err(own)?;
    let gaps = &imported.carried.gaps;
    if !gaps.is_empty() && options.restores && !options.accept_lost_revocations {
        return Err(MaintenanceError::LostRevocations {
            after: imported.last_change,
            gaps: gaps.clone(),
        });
    }
    imported.report = inspect::at(half).map_err(own)?;
    match imported.report.faults.first() {
        Some(fault) => Err(rejected(from, format!("it is damaged: {fault}"))),
        None => Ok(imported),
    }
}

/// Withholds the grace of these days and of the newest day, because it may have been used with a store that this one
/// replaces.
const WITHHOLD: &str = "
INSERT INTO grace_shares
SELECT day, 0, 1, 0, 0, 0 FROM (SELECT ?1 AS day UNION SELECT ?2 UNION SELECT max(day) FROM ledger_days WHERE date(day) = day)
WHERE day IS NOT NULL";

/// Merges the previous stores into the new one. Closes the current day if later grants are unknown. The result does not
/// contain a report yet.
fn settle(
    previous: &[PathBuf],
    file: &FileConnection,
    options: &ImportOptions,
    now: Wall,
) -> Done<ImportSummary> {
    let store = &*file.lock();
    let tables = Tables::File(file);
    let last_change = inspect::last_change(store)?;
    let mut carried = TransferSummary::default();
    let mut has_successor = false;
    for old in previous {
        has_successor |= transfer::from_old(old, file, &mut carried)?;
    }
    if !has_successor && carried.gaps.is_empty() {
        carried.gaps.push(previous.last().map_or_else(
            || "there is no previous store".into(),
            |old| format!("{} is not a later state of this backup", old.display()),
        ));
    }
    store.execute(load::OPEN_NEWEST_DAY, [])?;
    let day = done(tables.today())?.map_or(now.day(), |newest| newest.max(now.day()));
    // Gateways hold shares for today and tomorrow.
    withhold(store, day)?;
    let day = if carried.gaps.is_empty() {
        ImportedDay::Complete
    } else if options.reopen_day || !options.restores {
        reopened(tables, day, options)?
    } else if day > now.day() || last_change.is_some_and(|at| at > now) {
        return Err(Fault::Record(format!(
            "the clock of this machine ({}) is behind it; correct the clock, or leave the day open with --reopen-day",
            now.rfc3339()
        )));
    } else {
        done(restored_day::close(tables, day))?;
        ImportedDay::Closed(day)
    };
    Ok(ImportSummary {
        report: InspectionReport::default(),
        aside: None,
        carried,
        last_change,
        day,
    })
}

fn withhold(store: &Connection, day: Day) -> Done<()> {
    store.execute("DELETE FROM grace_shares", [])?;
    store.execute(WITHHOLD, [day, day.next()].map(|day| day.to_string()))?;
    Ok(())
}

fn reopened(store: Tables<'_>, day: Day, options: &ImportOptions) -> Done<ImportedDay> {
    let units = done(restored_day::remaining(store, day, &options.tiers))?;
    if units.is_none() && options.restores {
        let reason = "one of its tiers is unknown; name the server's configuration with --config";
        return Err(Fault::Record(reason.into()));
    }
    Ok(ImportedDay::Reopened(day, units))
}

/// Adds an audit record. All earlier records are from the imported file.
fn record(
    store: &FileConnection,
    from: &Path,
    day: ImportedDay,
    options: &ImportOptions,
    now: Wall,
) -> Done<()> {
    let closed = match day {
        ImportedDay::Closed(day) => format!("; {day} is closed"),
        ImportedDay::Complete | ImportedDay::Reopened(..) => String::new(),
    };
    let name = from.file_name().unwrap_or_default().to_string_lossy();
    let detail = format!("the whole store, from {name:?}{closed}");
    done(Tables::File(store).audit(now, [&options.who, "import_store", "", &detail]))
}
