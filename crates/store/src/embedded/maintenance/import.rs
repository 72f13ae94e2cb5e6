//! `scoregate store import`: replaces a data directory's store by a backup or an export.
//!
//! All or nothing: the new store is built and checked beside the old one, and the old one is renamed, never removed.
//! The caller has locked the data directory, so no other process writes. The steps of the replacement are in `swap`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::super::audit;
use super::super::fault::StoreFault;
use super::super::paths::{HALF, remove_database, sync_directory, with_suffix};
use super::inspect::{self, InspectionReport};
use super::maintenance_error::MaintenanceError;
use super::store_file::{file_in, is_the_store};
use super::{load, swap, transfer};
use crate::StoreError;
use scoregate_base::clock::{Day, Wall};

/// Options of an import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// The actor, for the audit trail.
    pub who: String,
    /// Also replace a store that is sound and in use, or has a newer format.
    pub replace: bool,
    /// Marks today's quota of every application as granted: grants since the backup may be unknown.
    pub forfeit_today: bool,
}

/// The result of an import.
#[derive(Debug)]
pub struct ImportSummary {
    /// The imported store.
    pub report: InspectionReport,
    /// The path of the replaced store.
    pub aside: Option<PathBuf>,
    /// Keys that stay revoked, although the imported file has them in force.
    pub still_revoked: u64,
    /// Keys that keep an earlier expiry set since, for example by a rotation.
    pub still_ended: u64,
    /// Keys of the replaced store that the imported file does not contain.
    pub only_aside: u64,
    /// Grants and revocations since the backup that cannot be known, in words; empty if all are known.
    pub unknown: Vec<String>,
    /// The day whose quota is marked as granted for every caller.
    pub forfeited: Option<Day>,
}

/// Replaces the directory's store by the contents of `from`.
pub fn import(
    directory: &Path,
    from: &Path,
    options: &ImportOptions,
    now: Wall,
) -> Result<ImportSummary, MaintenanceError> {
    let path = file_in(directory);
    // An interrupted swap is finished first, so that there is only one at a time.
    swap::finish(&path)
        .map_err(|error| StoreFault::from(error).into_error("complete the last import", &path))?;
    let rejected = |reason: String| MaintenanceError::Unfit { path: from.to_owned(), reason };
    if !from.is_file() {
        return Err(rejected("the file does not exist".into()));
    }
    if is_the_store(&path, from) {
        return Err(rejected("it is the store itself".into()));
    }
    let target = target(directory, options)?;
    let half = with_suffix(&path, HALF);
    let made = make(&path, from, &half, target, options, now);
    let made = made.and_then(|mut imported| {
        let instant = swap::instant(now);
        let aside = swap::aside(&path, &instant);
        if aside.exists() {
            return Err(rejected(format!("{} exists already; try again", aside.display())));
        }
        put_in_place(&path, &half, &instant)
            .map_err(|fault| fault.into_error("move it into place", &path))?;
        imported.aside = aside.exists().then_some(aside);
        imported.report.path.clone_from(&path);
        Ok(imported)
    });
    if made.is_err() {
        drop(remove_database(&half)); // its own errors are reported elsewhere
    }
    made
}

/// The current state of the directory.
#[derive(Clone, Copy, PartialEq)]
enum ExistingTarget {
    /// Nothing, or a store that was never used.
    Nothing,
    /// A store, readable or not, or traces of one.
    Store,
}

/// Checks what is to be replaced; refuses a loss that was not requested.
fn target(directory: &Path, options: &ImportOptions) -> Result<ExistingTarget, MaintenanceError> {
    let path = file_in(directory);
    match inspect::check(directory, Wall::default()) {
        Err(MaintenanceError::NoStore(_)) => Ok(ExistingTarget::Nothing),
        Ok(report) if report.applications == 0 && report.is_sound() => Ok(ExistingTarget::Nothing),
        Ok(report) if report.faults.is_empty() && !options.replace => {
            Err(MaintenanceError::InUse { path, applications: report.applications })
        }
        Err(MaintenanceError::Store(error @ StoreError::Newer { .. })) if !options.replace => {
            Err(error.into())
        }
        Ok(_) | Err(MaintenanceError::Store(StoreError::Newer { .. } | StoreError::Damaged { .. })) => {
            Ok(ExistingTarget::Store)
        }
        Err(other) => Err(other),
    }
}

/// Builds the new store under a temporary name.
fn make(
    path: &Path,
    from: &Path,
    half: &Path,
    target: ExistingTarget,
    options: &ImportOptions,
    now: Wall,
) -> Result<ImportSummary, MaintenanceError> {
    let rejected = |reason: String| MaintenanceError::Unfit { path: from.to_owned(), reason };
    let own = |fault: StoreFault| MaintenanceError::from(fault.into_error("create the new store", half));
    let store = load::new_store(from, half).map_err(|fault| match fault.into_error("be read", from) {
        StoreError::Damaged { reason, .. } => rejected(reason),
        error @ (StoreError::UnknownApplication(_)
        | StoreError::UnknownKey(_)
        | StoreError::UnknownIncident(_)
        | StoreError::IncidentResolved(_)
        | StoreError::Owner(_)
        | StoreError::Exists(_)
        | StoreError::Unavailable { .. }
        | StoreError::Newer { .. }) => error.into(),
    })?;
    let done = settle(path, &store, target, options, now);
    let done = done.and_then(|done| record(&store, from, options, now).map(|()| done)).map_err(own);
    store.close().map_err(|(_, error)| own(error.into()))?;
    let (carried, forfeited) = done?;
    let report = inspect::at(half).map_err(own)?;
    if let Some(fault) = report.faults.first() {
        return Err(rejected(format!("it is damaged: {fault}")));
    }
    File::open(half).and_then(|file| file.sync_all()).map_err(|error| own(error.into()))?;
    Ok(ImportSummary {
        report,
        aside: None,
        still_revoked: carried.revoked,
        still_ended: carried.ended,
        only_aside: carried.lost,
        unknown: carried.gaps,
        forfeited,
    })
}

/// Updates the new store's ledger with everything known, or closes today altogether.
fn settle(
    path: &Path,
    store: &Connection,
    target: ExistingTarget,
    options: &ImportOptions,
    now: Wall,
) -> Result<(transfer::TransferSummary, Option<Day>), StoreFault> {
    let carried = match target {
        ExistingTarget::Store if path.exists() => transfer::from_old(path, store)?,
        ExistingTarget::Store | ExistingTarget::Nothing => transfer::TransferSummary {
            gaps: vec![
                "without the previous store, grants and revocations since the backup are unknown".into(),
            ],
            ..transfer::TransferSummary::default()
        },
    };
    let forfeited = options.forfeit_today.then(|| transfer::forfeit(store, now.day())).transpose()?;
    Ok((carried, forfeited))
}

/// Adds an audit record: the records before it are those of the imported file.
fn record(store: &Connection, from: &Path, options: &ImportOptions, now: Wall) -> Result<(), StoreFault> {
    let forfeited = if options.forfeit_today { "; today's quota is forfeited" } else { "" };
    let name = from.file_name().unwrap_or_default().to_string_lossy();
    let detail = format!("the whole store, from {name:?}{forfeited}");
    audit::add(store, now, [&options.who, "import_store", "", &detail])
}

fn put_in_place(path: &Path, half: &Path, instant: &str) -> Result<(), StoreFault> {
    let next = swap::next(path, instant);
    fs::rename(half, &next)?;
    sync_directory(&next)?;
    Ok(swap::run(path, instant)?)
}
