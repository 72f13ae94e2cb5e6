//! `scoregate store`: checks, backs up, exports and replaces the store file.
//!
//! The work is done in `store::maintenance`.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;

use crate::app::DataDir;
use crate::clock::{Clock, Day, Wall};
use crate::store::maintenance::{
    self, ClosedDays, ExportSummary, ImportOptions, ImportSummary, InspectionReport, MaintenanceError,
    back_up, check, close_command, close_future_days, create_new, export, file_in, import, record_backup,
};

use super::control::operator;
use super::exit::Exit;
use super::printer;
use super::serve::ServerArgs;

pub(super) const AFTER_HELP: &str = "Examples:\n  \
scoregate store check --data-dir DIR\n  \
scoregate store backup backup.db --data-dir DIR\n  \
scoregate store import backup.db --data-dir DIR\n\n\
DIR is the data directory of the server; --config FILE reads it from the configuration. `import`, `init` and\n\
`close-future-days` need a stopped server; the other commands also work while it runs.\n\
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
        scoregate store export salvaged.jsonl --damaged DIR/scoregate.db\n\n\
        With --damaged the readable part of a file is exported and each skipped record is reported; the exit code is\n\
        then 1.")]
    Export {
        /// The file to write, or - for standard output.
        file: PathBuf,
        /// Export the readable part of this store file instead of the data directory's.
        #[arg(long, value_name = "FILE")]
        damaged: Option<PathBuf>,
        /// Overwrite an existing file.
        #[arg(long)]
        force: bool,
    },
    /// Replace the store of a stopped server by a backup or an export.
    #[command(after_help = "Examples:\n  scoregate store import backup.db --data-dir DIR\n  \
        scoregate store import backup.db --replace --data-dir DIR\n\n\
        The previous store is kept as scoregate.db.aside-TIME. Its grants of today and its revocations are carried\n\
        over. If it is unreadable, callers may get today's quota again; --forfeit-today refuses them until midnight\n\
        UTC instead.")]
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
    /// Create a new, empty store where the store is missing and there is no backup.
    #[command(after_help = "Example:\n  scoregate store init --data-dir DIR\n\n\
        A server does not start if its store is missing. The new store has no keys and grants today's whole quota\n\
        again. To restore them, use `scoregate store import BACKUP`.")]
    Init,
}

pub(super) fn run(args: &StoreArgs) -> Exit {
    let now = Clock::system().now().wall;
    if let StoreCommand::Export { file, damaged: Some(damaged), force } = &args.command {
        return write_export(damaged, true, file, *force, now);
    }
    let directory = match args.server.settings() {
        Ok(config) => config.data_dir,
        Err(problems) => return printer::input_error(&problems.to_string()),
    };
    match &args.command {
        StoreCommand::Check { json } => match check(&directory, now) {
            Ok(report) => print_check(&report, *json, now.day()),
            Err(error) => failed(error),
        },
        StoreCommand::Backup { file, force } => match back_up(&directory, file, *force) {
            Ok(report) => {
                record_time(&directory, now);
                print_contents(&report)
            }
            Err(error) => failed(error),
        },
        StoreCommand::Export { file, force, .. } => {
            let exit = write_export(&file_in(&directory), false, file, *force, now);
            if exit == Exit::Done {
                record_time(&directory, now);
            }
            exit
        }
        StoreCommand::CloseFutureDays { today } => while_stopped(&directory, |directory| {
            Ok(print_closed(&close_future_days(directory, &operator(), *today, now)?, *today))
        }),
        StoreCommand::Init => while_stopped(&directory, |directory| {
            create_new(directory, now)?;
            printer::message(&format!("created an empty store in {}", directory.display()));
            Ok(Exit::Done)
        }),
        StoreCommand::Import { file, replace, forfeit_today } => while_stopped(&directory, |directory| {
            let options = ImportOptions { who: operator(), replace: *replace, forfeit_today: *forfeit_today };
            Ok(print_imported(&import(directory, file, &options, now)?, &options))
        }),
    }
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

fn print_check(report: &InspectionReport, as_json: bool, today: Day) -> Exit {
    let printed =
        if as_json { printer::data(&format!("{:#}\n", as_value(report))) } else { print_contents(report) };
    for fault in &report.faults {
        printer::message(&format!("damaged: {fault}"));
    }
    for record in &report.unreadable {
        printer::message(&format!("unreadable: {record}"));
    }
    if let Some(day) = report.future_day {
        let directory = report.path.parent().unwrap_or(Path::new("."));
        printer::message(&format!(
            "The ledger has opened {day}, a day in the future: requests are charged to it until it ends.\n\
             If a wrong clock opened it, correct the clock, stop the server and close the day:\n  {}\n\
             Units granted for it then count for {today}.",
            close_command(directory, today)
        ));
    }
    if let Some(reason) = report.faults.first() {
        let (path, reason) = (report.path.display().to_string(), reason.clone());
        let damaged = crate::store::StoreError::Damaged { path, reason };
        printer::message(&maintenance::recovery_steps(&damaged).unwrap_or_default());
    } else if !report.unreadable.is_empty() {
        printer::message(
            "The gateway skips these records. Repair limits with `scoregate keys set-limits` (give both), and other \
             fields with `sqlite3`. `scoregate keys revoke` works as usual.",
        );
    }
    if report.is_sound() { printed } else { Exit::Input }
}

fn print_contents(report: &InspectionReport) -> Exit {
    let day = report.newest_day.map_or_else(|| "-".into(), |day| day.to_string());
    let fields = [
        ("file", report.path.display().to_string()),
        ("schema", report.format.to_string()),
        ("applications", report.applications.to_string()),
        ("keys", report.keys.to_string()),
        ("valid keys", report.keys_in_force.to_string()),
        ("newest day", day),
        ("units granted", report.granted.to_string()),
        ("audit records", report.audit.to_string()),
        ("bytes", report.bytes.to_string()),
        ("bytes of the WAL", report.log_bytes.to_string()),
    ];
    let lines: Vec<String> = fields.iter().map(|(name, value)| format!("{name:<18} {value}")).collect();
    printer::data(&format!("{}\n", lines.join("\n")))
}

fn as_value(report: &InspectionReport) -> serde_json::Value {
    json!({
        "file": report.path.display().to_string(),
        "sound": report.is_sound(),
        "format": report.format,
        "applications": report.applications,
        "keys": report.keys,
        "keys_in_force": report.keys_in_force,
        "future_day": report.future_day.map(|day| day.to_string()),
        "newest_day": report.newest_day.map(|day| day.to_string()),
        "granted": report.granted,
        "audit": report.audit,
        "bytes": report.bytes,
        "log_bytes": report.log_bytes,
        "faults": report.faults,
        "unreadable": report.unreadable,
    })
}

/// Exports to standard output, or to a temporary file that is renamed when it is complete.
fn write_export(from: &Path, damaged: bool, to: &Path, force: bool, now: Wall) -> Exit {
    if to == Path::new("-") {
        let mut out = BufWriter::new(io::stdout().lock());
        return match export(from, damaged, &mut out, now) {
            Ok(exported) => print_exported(&exported, damaged),
            Err(error) => failed(error),
        };
    }
    if to.exists() && !force {
        return failed(MaintenanceError::Exists(to.to_owned()));
    }
    let mut partial = to.as_os_str().to_owned();
    partial.push(format!(".{}.half", std::process::id()));
    let unwritable = |source| MaintenanceError::Unwritable { path: to.to_owned(), source };
    // A killed export of the same process ID may have left the file.
    drop(fs::remove_file(&partial));
    let exported = export_file(from, damaged, Path::new(&partial), now).and_then(|exported| {
        fs::rename(&partial, to).map_err(unwritable)?;
        Ok(exported)
    });
    match exported {
        Ok(exported) => print_exported(&exported, damaged),
        Err(error) => {
            drop(fs::remove_file(&partial)); // it may not exist
            failed(error)
        }
    }
}

fn export_file(
    from: &Path,
    damaged: bool,
    partial: &Path,
    now: Wall,
) -> Result<ExportSummary, MaintenanceError> {
    let unwritable = |source| MaintenanceError::Unwritable { path: partial.to_owned(), source };
    // Never opens an existing file or follows a link.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(partial);
    let mut out = BufWriter::new(file.map_err(unwritable)?);
    let exported = export(from, damaged, &mut out, now)?;
    out.flush().and_then(|()| out.get_ref().sync_all()).map_err(unwritable)?;
    Ok(exported)
}

fn print_exported(exported: &ExportSummary, damaged: bool) -> Exit {
    for record in &exported.left_out {
        printer::message(&format!("skipped: {record}"));
    }
    let counts = exported.counts;
    printer::message(&format!(
        "exported: {} applications, {} keys, {} ledger records, {} audit records",
        counts.applications, counts.keys, counts.ledger, counts.audit
    ));
    if damaged && !exported.left_out.is_empty() { Exit::Input } else { Exit::Done }
}

fn print_closed(closed: &ClosedDays, today: Day) -> Exit {
    if closed.days.is_empty() {
        printer::message(&format!("The ledger has not opened a day after {today}: nothing was changed."));
        return Exit::Done;
    }
    let days = closed.days.iter().map(Day::to_string).collect::<Vec<_>>().join(", ");
    printer::message(&format!(
        "Closed {days}. {} units granted for it now count for {today}. Quotas reset at {}.",
        closed.granted,
        today.end().rfc3339()
    ));
    Exit::Done
}

/// Parses a date argument.
fn day(text: &str) -> Result<Day, String> {
    Day::parse(text).ok_or_else(|| "write a date such as 2026-11-22".into())
}

fn print_imported(imported: &ImportSummary, options: &ImportOptions) -> Exit {
    for record in &imported.report.unreadable {
        printer::message(&format!("skipped, unreadable: {record}"));
    }
    if let Some(aside) = &imported.aside {
        printer::message(&format!("the previous store is kept as {}", aside.display()));
    }
    if imported.still_revoked > 0 {
        printer::message(&format!("{} keys revoked after this backup stay revoked", imported.still_revoked));
    }
    if imported.still_ended > 0 {
        printer::message(&format!(
            "{} keys keep an earlier expiry set after this backup",
            imported.still_ended
        ));
    }
    if imported.only_aside > 0 {
        printer::message(&format!(
            "{} keys created after this backup are only in the previous store",
            imported.only_aside
        ));
    }
    match (imported.unknown.is_empty(), imported.forfeited) {
        (true, None) => printer::message("units granted after this backup stay granted"),
        (_, Some(day)) => {
            let end: Wall = Day::end(day);
            printer::message(&format!(
                "every quota of {day} is treated as spent: callers are refused until {}",
                end.rfc3339()
            ));
        }
        (false, None) => warn_unknown(&imported.unknown),
    }
    if !imported.unknown.is_empty() && !options.forfeit_today {
        printer::message(
            "Keys revoked or rotated after this backup may be valid again; revoke them with `scoregate keys revoke`.",
        );
    }
    print_contents(&imported.report)
}

/// Warns that quotas of today may be granted twice.
fn warn_unknown(gaps: &[String]) {
    for gap in gaps {
        printer::message(&format!("unknown: {gap}"));
    }
    printer::message(
        "WARNING: units granted after this backup are unknown, so callers may get today's quota again. To refuse them \
         until midnight UTC instead, repeat the import with --replace --forfeit-today.",
    );
}
