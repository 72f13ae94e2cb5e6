//! Runs the commands of `scoregate store`.

use std::io::{self, BufWriter};
use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::Context as _;

use crate::app::DataDir;
use crate::config::Config;
use scoregate_base::clock::{Clock, Wall};
use scoregate_store::OwedFile;
use scoregate_store::maintenance::{
    ExportSummary, ImportOptions, LastBackup, MaintenanceError, back_up, check, close, close_future_days,
    create_new, dated, export, file_in, import, prune, record_backup, verify,
};

use super::super::control::{CommandError, operator, report as report_error};
use super::super::exit::Exit;
use super::super::output_file::OutputFile;
use super::super::printer;
use super::arguments::StoreArgs;
use super::arguments::{RuntimeRole, StoreCommand};
use super::report::{print_check, print_closed, print_exported, print_imported, print_verified};

pub(in super::super) fn run(args: &StoreArgs) -> Exit {
    let now = Clock::system().now().wall;
    if let StoreCommand::Export { file, damaged: Some(damaged), force, .. } = &args.command {
        return write_export(damaged, true, file, *force, now);
    }
    if let StoreCommand::VerifyBackup { file } = &args.command {
        return verify_backup(file);
    }
    let config = match args.server.settings() {
        Ok(config) => config,
        Err(problems) => return printer::input_error(&problems.to_string()),
    };
    match &config.database {
        Some(database) => super::database::run(&args.command, database),
        None => run_on_file(&args.command, &config, now),
    }
}

fn run_on_file(command: &StoreCommand, config: &Config, now: Wall) -> Exit {
    let directory = config.data_dir.as_path();
    match command {
        StoreCommand::Check { json } => match check(directory, now) {
            Ok(report) => print_check(&report, *json, now.day()),
            Err(error) => failed(error),
        },
        StoreCommand::Backup { file, to, keep, force } => {
            let path =
                to.as_deref().map_or_else(|| Ok(file.clone().unwrap_or_default()), |to| dated(to, now));
            path.and_then(|path| write_backup(directory, &path, *keep, *force, now)).unwrap_or_else(failed)
        }
        StoreCommand::Export { file, force, close: true, .. } => {
            while_stopped(directory, |directory| export_and_close(directory, file, *force, now))
        }
        StoreCommand::Export { file, force, .. } => {
            let exit = write_export(&file_in(directory), false, file, *force, now);
            if exit == Exit::Done {
                record(directory, file, now);
            }
            exit
        }
        StoreCommand::CloseFutureDays { today } => while_stopped(directory, |directory| {
            Ok(print_closed(&close_future_days(directory, &operator(), *today, now)?, *today))
        }),
        StoreCommand::Init { grant: RuntimeRole { runtime_role: Some(_) } }
        | StoreCommand::Upgrade { .. } => {
            printer::input_error("this needs a database: set store.url in the configuration")
        }
        StoreCommand::Init { .. } => while_stopped(directory, |directory| {
            create_new(directory, now)?;
            printer::message(&format!("created an empty store in {}", directory.display()));
            Ok(Exit::Done)
        }),
        StoreCommand::Restore { file, previous, reopen_day, accept_lost_revocations } => {
            let previous = previous.as_ref().filter(|other| !is_same(directory, other));
            let options = ImportOptions {
                who: operator(),
                restores: true,
                previous: previous.cloned(),
                reopen_day: *reopen_day,
                accept_lost_revocations: *accept_lost_revocations,
                tiers: config.tiers.clone(),
            };
            match previous.map(|other| DataDir::lock_existing(other)).transpose() {
                Ok(_lock) => import_file(directory, file, &options, now),
                Err(error) => printer::input_error(&format!("{error:#}")),
            }
        }
        StoreCommand::Import { file } => {
            let (who, tiers) = (operator(), config.tiers.clone());
            let options = ImportOptions { who, tiers, ..ImportOptions::default() };
            import_file(directory, file, &options, now)
        }
        StoreCommand::VerifyBackup { file } => verify_backup(file),
    }
}

fn is_same(directory: &Path, other: &Path) -> bool {
    let path = |path: &Path| path.canonicalize().ok();
    path(directory).is_some() && path(directory) == path(other)
}

fn import_file(directory: &Path, file: &Path, options: &ImportOptions, now: Wall) -> Exit {
    while_stopped(directory, |directory| {
        Ok(print_imported(&import(directory, file, options, now)?, options.restores))
    })
}

fn verify_backup(file: &Path) -> Exit {
    verify(file).map_or_else(failed, |found| print_verified(&found, "is damaged: use another backup"))
}

fn write_backup(
    directory: &Path,
    to: &Path,
    keep: Option<NonZeroUsize>,
    force: bool,
    now: Wall,
) -> Result<Exit, MaintenanceError> {
    let report = back_up(directory, to, force)?;
    record(directory, to, now);
    if let Some(keep) = keep.filter(|_| report.is_sound()) {
        prune(to, keep)?;
    }
    Ok(print_verified(
        &report,
        "contains unreadable records: repair them as `scoregate store check` shows. Older backups were not removed",
    ))
}

/// Exports the store of a stopped server and puts it out of use.
fn export_and_close(directory: &Path, to: &Path, force: bool, now: Wall) -> Result<Exit, MaintenanceError> {
    if to == Path::new("-") {
        return Ok(printer::input_error("--close needs a file: standard output may not be durable"));
    }
    let exit = write_export(&file_in(directory), false, to, force, now);
    if exit != Exit::Done {
        return Ok(exit);
    }
    printer::message(&format!("the store is now {}", close(directory, now)?.display()));
    let owed = directory.join(OwedFile::NAME);
    if owed.exists() {
        printer::message(&format!(
            "{} contains units delivered on grace that are not charged yet: use this data directory for a gateway on \
             the new store, which charges them",
            owed.display()
        ));
    }
    Ok(Exit::Done)
}

/// Runs a command under the lock of the data directory, so that no server is running or can start meanwhile.
fn while_stopped(directory: &Path, work: impl FnOnce(&Path) -> Result<Exit, MaintenanceError>) -> Exit {
    match DataDir::open(directory) {
        Ok(lock) => work(lock.path()).unwrap_or_else(failed),
        Err(error) => printer::input_error(&format!("{error:#}")),
    }
}

/// Records a backup for the metrics of a running server. The size of standard output is unknown.
fn record(directory: &Path, to: &Path, now: Wall) {
    let bytes = if to == Path::new("-") { 0 } else { to.metadata().map_or(0, |metadata| metadata.len()) };
    if let Err(error) = record_backup(directory, LastBackup { at: now, bytes }) {
        printer::message(&format!(
            "the backup is complete, but its time and size could not be recorded in {}: {error}; \
             scoregate_last_backup_timestamp_seconds and scoregate_last_backup_size_bytes are not updated",
            directory.display()
        ));
    }
}

fn failed(error: MaintenanceError) -> Exit {
    let is_input = error.is_input();
    // Not wrapped, so that `printer::fault` finds the repair steps.
    let error =
        if let MaintenanceError::Store(error) = error { error.into() } else { anyhow::Error::from(error) };
    if is_input { printer::input_error(&error.to_string()) } else { printer::fault(&error) }
}

/// Exports to standard output, or to a file that is complete once it has its name.
fn write_export(from: &Path, damaged: bool, to: &Path, force: bool, now: Wall) -> Exit {
    if to == Path::new("-") {
        let mut out = BufWriter::new(io::stdout().lock());
        return match export(from, damaged, &mut out, now) {
            Ok(exported) => print_exported(&exported, damaged),
            Err(error) => failed(error),
        };
    }
    match export_file(from, damaged, to, force, now) {
        Ok(Ok(exported)) => print_exported(&exported, damaged),
        Ok(Err(error)) => failed(error),
        Err(error) => report_error(error),
    }
}

fn export_file(
    from: &Path,
    damaged: bool,
    to: &Path,
    force: bool,
    now: Wall,
) -> Result<Result<ExportSummary, MaintenanceError>, CommandError> {
    let file = OutputFile::create(to, force)?;
    let failed = || format!("{} cannot be written", to.display());
    let mut out = file.writer().with_context(failed)?;
    let exported = export(from, damaged, &mut out, now);
    if exported.is_ok() {
        file.finish().with_context(failed)?;
    }
    Ok(exported)
}
