//! Runs the commands of `scoregate store`.

use std::{
    io::{self, BufWriter},
    num::NonZeroUsize,
    path::Path,
};

use anyhow::Context as _;

use crate::{app::DataDir, config::Config};
use scoregate_base::clock::{Clock, Wall};
use scoregate_store::{
    LocalFile,
    maintenance::{
        ImportOptions, LastBackup, back_up, check, close, close_future_days, create_new, dated,
        export, file_in, import, prune, record_backup, verify,
    },
};

use super::{
    arguments::{CLOSE_NEEDS_A_FILE, RestoreArgs, RuntimeRole, StoreArgs, StoreCommand},
    report::{print_check, print_closed, print_imported, print_verified},
};
use crate::cli::{
    command_error::{CommandError, CommandOutcome},
    control::operator,
    output_file::OutputFile,
    printer,
};

const NEEDS_A_DATABASE: &str = "this needs a database: set store.url in the configuration";

pub fn run(args: &StoreArgs) -> CommandOutcome {
    let now = Clock::system().now().wall;
    if let StoreCommand::VerifyBackup { file } = &args.command {
        return verify_backup(file);
    }
    let config = args.server.settings()?;
    match &config.database {
        Some(database) => super::database::run(&args.command, database, &config.tiers),
        None => run_on_file(&args.command, &config, now),
    }
}

fn run_on_file(command: &StoreCommand, config: &Config, now: Wall) -> CommandOutcome {
    let directory = config.data_dir.as_path();
    match command {
        StoreCommand::Check { json } => print_check(&check(directory, now)?, *json, now.day()),
        StoreCommand::Backup {
            file: Some(to),
            force,
            ..
        } => write_backup(directory, to, None, *force, now),
        StoreCommand::Backup { to, keep, .. } => {
            let to = dated(to.as_deref().unwrap_or(directory), now)?;
            write_backup(directory, &to, *keep, false, now)
        }
        StoreCommand::Export { file, force, close } => {
            if *close {
                while_stopped(directory, || export_and_close(directory, file, *force, now))
            } else {
                write_export(directory, file, *force, now)
            }
        }
        StoreCommand::CloseFutureDays { today } => while_stopped(directory, || {
            let closed = close_future_days(directory, &operator(), *today, now)?;
            print_closed(&closed, *today);
            Ok(())
        }),
        StoreCommand::Upgrade { .. } => Err(CommandError::Input(NEEDS_A_DATABASE.into())),
        StoreCommand::Init { grant } => init(directory, grant, now),
        StoreCommand::Restore(args) => restore(args, config, now),
        StoreCommand::Import { file } => import_export(file, config, now),
        StoreCommand::VerifyBackup { file } => verify_backup(file),
    }
}
fn init(directory: &Path, grant: &RuntimeRole, now: Wall) -> CommandOutcome {
    if grant.runtime_role.is_some() {
        return Err(CommandError::Input(NEEDS_A_DATABASE.into()));
    }
    while_stopped(directory, || {
        create_new(directory, now)?;
        printer::message(&format!(
            "created an empty store in {}",
            directory.display()
        ));
        Ok(())
    })
}

fn restore(args: &RestoreArgs, config: &Config, now: Wall) -> CommandOutcome {
    let directory = config.data_dir.as_path();
    let Some(file) = &args.file else {
        let remedy = "name the backup or export; only a database is restored without one";
        return Err(CommandError::Input(remedy.into()));
    };
    let previous = args.previous.as_ref();
    let previous = previous.filter(|other| !is_same(directory, other));
    let options = ImportOptions {
        previous: previous.cloned(),
        ..args.options(&config.tiers)
    };
    let _lock = previous
        .map(|other| DataDir::lock_existing(other))
        .transpose()
        .map_err(unusable)?;
    import_file(directory, file, &options, now)
}

fn import_export(file: &Path, config: &Config, now: Wall) -> CommandOutcome {
    let options = ImportOptions {
        who: operator(),
        tiers: config.tiers.clone(),
        ..ImportOptions::default()
    };
    import_file(&config.data_dir, file, &options, now)
}

fn is_same(directory: &Path, other: &Path) -> bool {
    let directory = directory.canonicalize();
    directory.is_ok_and(|directory| other.canonicalize().is_ok_and(|other| directory == other))
}

fn import_file(
    directory: &Path,
    file: &Path,
    options: &ImportOptions,
    now: Wall,
) -> CommandOutcome {
    while_stopped(directory, || {
        let imported = import(directory, file, options, now)?;
        Ok(print_imported(&imported, options.restores)?)
    })
}

fn verify_backup(file: &Path) -> CommandOutcome {
    print_verified(&verify(file)?, "is damaged: use another backup")
}

fn write_backup(
    directory: &Path,
    to: &Path,
    keep: Option<NonZeroUsize>,
    force: bool,
    now: Wall,
) -> CommandOutcome {
    let report = back_up(directory, to, force)?;
    if report.is_sound() {
        record(directory, report.bytes, now);
        keep.map_or(Ok(()), |keep| prune(to, keep))?;
    }
    print_verified(
        &report,
        "contains unreadable records: repair them as `scoregate store check` shows. Older backups were not removed",
    )
}

/// Exports the store of a stopped server and closes the store.
fn export_and_close(directory: &Path, to: &Path, force: bool, now: Wall) -> CommandOutcome {
    if to == Path::new("-") {
        return Err(CommandError::Input(CLOSE_NEEDS_A_FILE.into()));
    }
    write_export(directory, to, force, now)?;
    printer::message(&format!(
        "the store is now {}",
        close(directory, now)?.display()
    ));
    if owes(directory) {
        printer::message(&format!(
            "{} contains units delivered on grace that are not charged yet: use this data directory for a gateway on \
             the new store, which charges them",
            directory.join(LocalFile::NAME).display()
        ));
    }
    Ok(())
}

/// Whether a server left units that have not been charged yet. A damaged file may contain such units.
fn owes(directory: &Path) -> bool {
    let file = LocalFile::open_existing(directory);
    let left = file.and_then(|file| file.map(|file| file.grace()).transpose());
    left.map_or(true, |left| left.is_some_and(|left| !left.owed.is_empty()))
}

/// Runs a command while the data directory is locked, so that no server is running or can start in the meantime.
fn while_stopped(directory: &Path, work: impl FnOnce() -> CommandOutcome) -> CommandOutcome {
    let _lock = DataDir::open(directory).map_err(unusable)?;
    work()
}

/// An input error: the operator can free the directory or use another directory.
#[expect(
    clippy::needless_pass_by_value,
    reason = "used in `map_err` on an owned value"
)]
fn unusable(error: anyhow::Error) -> CommandError {
    CommandError::Input(format!("{error:#}"))
}

/// Records a backup, so that the metrics of a running server show it.
fn record(directory: &Path, bytes: u64, now: Wall) {
    if let Err(error) = record_backup(directory, LastBackup { at: now, bytes }) {
        printer::message(&format!(
            "the backup is complete, but its time and size could not be recorded in {}: {error}; \
             scoregate_last_backup_timestamp_seconds and scoregate_last_backup_size_bytes are not updated",
            directory.display()
        ));
    }
}

/// Exports to standard output or to a file. The file is renamed to its final name once it is complete.
fn write_export(directory: &Path, to: &Path, force: bool, now: Wall) -> CommandOutcome {
    let from = file_in(directory);
    let counts = if to == Path::new("-") {
        export(&from, &mut BufWriter::new(io::stdout().lock()), now)?
    } else {
        let file = OutputFile::create(to, force)?;
        let failed = || format!("{} cannot be written", to.display());
        let mut out = file.writer().with_context(failed)?;
        let counts = export(&from, &mut out, now)?;
        file.finish().with_context(failed)?;
        counts
    };
    printer::message(&format!("exported: {counts}"));
    Ok(())
}
