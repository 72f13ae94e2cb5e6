//! `scoregate store`: checks, backs up, exports and replaces the store file.
//!
//! The work is done in `store::maintenance`.

mod database;
mod report;

use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};

use crate::app::DataDir;
use crate::clock::{Clock, Day, Wall};
use crate::store::maintenance::{
    ExportSummary, ImportOptions, MaintenanceError, back_up, check, close, close_future_days, create_new,
    export, file_in, import, record_backup,
};
use crate::store::{OwedFile, RoleName};

use super::control::{CommandError, operator, report as report_error};
use super::exit::Exit;
use super::output_file::OutputFile;
use super::printer;
use super::serve::ServerArgs;
use report::{print_check, print_closed, print_contents, print_exported, print_imported};

pub(super) const AFTER_HELP: &str = "Examples:\n  \
scoregate store check --data-dir DIR\n  \
scoregate store backup backup.db --data-dir DIR\n  \
scoregate store import backup.db --data-dir DIR\n\n\
DIR is the data directory of the server; --config FILE reads it from the configuration. With a store file\n\
`import`, `init`, `close-future-days` and `export --close` need a stopped server; the others also work while it runs.\n\
Backups and exports contain SHA-256 hashes of keys, not the keys. Keep them private nevertheless.";

#[derive(Debug, Args)]
pub(super) struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Check the store and report its contents and all errors.
    #[command(after_help = "Example:\n  scoregate store check --data-dir DIR --json\n\n\
        Exit codes: 0 no errors, 1 errors found, 2 unreadable. Nothing is written.")]
    Check {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Back up the store to a file; also while the server runs.
    #[command(after_help = "Example:\n  scoregate store backup backup.db --data-dir DIR\n\n\
        The backup is a consistent SQLite database.")]
    Backup {
        /// The file to write.
        file: PathBuf,
        /// Overwrite an existing file.
        #[arg(long)]
        force: bool,
    },
    /// Export the store as JSON lines, for another engine or machine.
    #[command(after_help = "Examples:\n  scoregate store export keys.jsonl --data-dir DIR\n  \
        scoregate store export keys.jsonl --close --config FILE\n  \
        scoregate store export salvaged.jsonl --damaged DIR/scoregate.db\n\n\
        With --damaged the readable part of a file is exported and each skipped record is reported; the exit code is\n\
        then 1. With --close nothing can be changed or served after the snapshot: a store file is renamed to\n\
        scoregate.db.closed-TIME (its server must be stopped), and the tables of a database get another schema.")]
    Export {
        /// The file to write, or - for standard output.
        file: PathBuf,
        /// Export the readable part of this store file instead of the data directory's.
        #[arg(long, value_name = "FILE")]
        damaged: Option<PathBuf>,
        /// Overwrite an existing file.
        #[arg(long)]
        force: bool,
        /// Put the store out of use in the same step, to move to another one.
        #[arg(long, conflicts_with = "damaged")]
        close: bool,
    },
    /// Replace the store of a stopped server by a backup or an export.
    #[command(after_help = "Examples:\n  scoregate store import backup.db --data-dir DIR\n  \
        scoregate store import backup.db --replace --data-dir DIR\n\n\
        The previous store is kept as scoregate.db.aside-TIME. Its grants of today and its revocations are carried\n\
        over. If it is unreadable, callers may get today's quota again; --forfeit-today refuses them until midnight\n\
        UTC instead.\n\n\
        With a database, an export is imported into tables without applications.")]
    Import {
        /// The backup or export.
        file: PathBuf,
        /// Replace a store that is intact and has applications.
        #[arg(long)]
        replace: bool,
        /// Treat today's quota of every application as spent, until midnight UTC.
        #[arg(long)]
        forfeit_today: bool,
    },
    /// Close UTC days that a wrong clock opened too early; the server must be stopped.
    #[command(
        after_help = "Example:\n  scoregate store close-future-days --today 2026-11-22 --data-dir DIR\n\n\
        The server never returns to a day before the newest opened one. `scoregate store check` reports a day in the\n\
        future. Units granted for the closed days count for today, since they were used today; callers get a new quota\n\
        at 00:00 UTC. Correct the machine's clock first. The change is recorded in `scoregate keys audit`."
    )]
    CloseFutureDays {
        /// Today's date in UTC; has to match the machine's clock.
        #[arg(long, value_name = "DATE", value_parser = day)]
        today: Day,
    },
    /// Create an empty store: the tables of a database, or a file where the store is missing and there is no backup.
    #[command(after_help = "Examples:\n  scoregate store init --data-dir DIR\n  \
        scoregate store init --config FILE --runtime-role gateway\n\n\
        A server does not start if its store is missing. The new store has no keys and grants today's whole quota\n\
        again. To restore a file, use `scoregate store import BACKUP`.\n\
        Tables that exist are kept. Run it as the user that will own the tables. Servers can connect as\n\
        another one: name it with --runtime-role.")]
    Init {
        #[command(flatten)]
        grant: RuntimeRole,
    },
    /// Upgrade the tables of a database for this release; servers may run meanwhile.
    #[command(after_help = "Example:\n  scoregate store upgrade --config FILE --runtime-role gateway\n\n\
        A server of this release does not start on older tables. Servers of the previous release run and restart on\n\
        the upgraded ones. A store file is upgraded when a server opens it.")]
    Upgrade {
        #[command(flatten)]
        grant: RuntimeRole,
    },
}

/// The user of the servers, if it is not the owner of the tables.
#[derive(Debug, Args)]
struct RuntimeRole {
    /// Grant this role the rights of a server: it cannot change the tables or the audit trail.
    #[arg(long, value_name = "ROLE", value_parser = RoleName::parse)]
    runtime_role: Option<RoleName>,
}

pub(super) fn run(args: &StoreArgs) -> Exit {
    let now = Clock::system().now().wall;
    if let StoreCommand::Export { file, damaged: Some(damaged), force, .. } = &args.command {
        return write_export(damaged, true, file, *force, now);
    }
    let config = match args.server.settings() {
        Ok(config) => config,
        Err(problems) => return printer::input_error(&problems.to_string()),
    };
    match &config.database {
        Some(database) => database::run(&args.command, database),
        None => run_on_file(&args.command, &config.data_dir, now),
    }
}

fn run_on_file(command: &StoreCommand, directory: &Path, now: Wall) -> Exit {
    match command {
        StoreCommand::Check { json } => match check(directory, now) {
            Ok(report) => print_check(&report, *json, now.day()),
            Err(error) => failed(error),
        },
        StoreCommand::Backup { file, force } => match back_up(directory, file, *force) {
            Ok(report) => {
                record_time(directory, now);
                print_contents(&report)
            }
            Err(error) => failed(error),
        },
        StoreCommand::Export { file, force, close: true, .. } => {
            while_stopped(directory, |directory| export_and_close(directory, file, *force, now))
        }
        StoreCommand::Export { file, force, .. } => {
            let exit = write_export(&file_in(directory), false, file, *force, now);
            if exit == Exit::Done {
                record_time(directory, now);
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
        StoreCommand::Import { file, replace, forfeit_today } => while_stopped(directory, |directory| {
            let options = ImportOptions { who: operator(), replace: *replace, forfeit_today: *forfeit_today };
            Ok(print_imported(&import(directory, file, &options, now)?, &options))
        }),
    }
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

/// Records the time of the backup for the metric of a running server.
fn record_time(directory: &Path, now: Wall) {
    if let Err(error) = record_backup(directory, now) {
        printer::message(&format!(
            "the backup is complete, but its time could not be recorded in {}: {error}; \
             scoregate_last_backup_timestamp_seconds is not updated",
            directory.display()
        ));
    }
}

fn failed(error: MaintenanceError) -> Exit {
    let is_input = error.is_input();
    // Not wrapped, so that `printer::fault` finds the repair steps.
    let error = match error {
        MaintenanceError::Store(error) => error.into(),
        error @ (MaintenanceError::NoStore(_)
        | MaintenanceError::IsThere(_)
        | MaintenanceError::Exists(_)
        | MaintenanceError::InUse { .. }
        | MaintenanceError::Unfit { .. }
        | MaintenanceError::OtherDay { .. }
        | MaintenanceError::Unwritable { .. }) => anyhow::Error::from(error),
    };
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

/// Parses a date argument.
fn day(text: &str) -> Result<Day, String> {
    Day::parse(text).ok_or_else(|| "write a date such as 2026-11-22".into())
}
