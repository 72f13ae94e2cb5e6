//! `scoregate store`: the file with the keys and the quotas as a whole.
//!
//! Not for: doing any of it (`store::upkeep`).

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
    back_up, begin_anew, check, close_command, close_future_days, export, file_in, import, record_backup,
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
    verb: StoreCommand,
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
        The previous store is kept as scoregate.db.aside-INSTANT. Its grants of today and its revocations are carried\n\
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
    if let StoreCommand::Export { file, damaged: Some(damaged), force } = &args.verb {
        return write_export(damaged, true, file, *force, now);
    }
    let directory = match args.server.settings() {
        Ok(config) => config.data_dir,
        Err(problems) => return printer::input(&problems.to_string()),
    };
    match &args.verb {
        StoreCommand::Check { json } => match check(&directory, now) {
            Ok(report) => judge(&report, *json, now.day()),
            Err(error) => failed(error),
        },
        StoreCommand::Backup { file, force } => match back_up(&directory, file, *force) {
            Ok(report) => {
                record(&directory, now);
                hold(&report)
            }
            Err(error) => failed(error),
        },
        StoreCommand::Export { file, force, .. } => {
            let exit = write_export(&file_in(&directory), false, file, *force, now);
            if exit == Exit::Done {
                record(&directory, now);
            }
            exit
        }
        StoreCommand::CloseFutureDays { today } => match DataDir::open(&directory) {
            Err(error) => printer::input(&format!("{error:#}")),
            Ok(held) => match close_future_days(held.path(), &operator(), *today, now) {
                Ok(closed) => report_closed(&closed, *today),
                Err(error) => failed(error),
            },
        },
        StoreCommand::Init => match DataDir::open(&directory) {
            Err(error) => printer::input(&format!("{error:#}")),
            Ok(held) => match begin_anew(held.path(), now) {
                Ok(()) => {
                    printer::say(&format!("made an empty store in {}", held.path().display()));
                    Exit::Done
                }
                Err(error) => failed(error),
            },
        },
        StoreCommand::Import { file, replace, forfeit_today } => {
            let ask = ImportOptions { who: operator(), replace: *replace, forfeit_today: *forfeit_today };
            // Holding it says that no server runs, and keeps one from starting meanwhile.
            match DataDir::open(&directory) {
                Err(error) => printer::input(&format!("{error:#}")),
                Ok(held) => match import(held.path(), file, &ask, now) {
                    Ok(imported) => told(&imported, &ask),
                    Err(error) => failed(error),
                },
            }
        }
    }
}

/// For the metric of a running server. The backup itself is complete either way.
fn record(directory: &Path, now: Wall) {
    if let Err(error) = record_backup(directory, now) {
        printer::say(&format!(
            "the backup is complete, but its time could not be recorded in {}: {error}; \
             scoregate_last_backup_timestamp_seconds does not count it",
            directory.display()
        ));
    }
}

fn failed(error: MaintenanceError) -> Exit {
    let is_input = error.is_input();
    // The store's own error by itself, so that the way back is found.
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
    if is_input { printer::input(&error.to_string()) } else { printer::fault(&error) }
}

fn judge(report: &InspectionReport, as_json: bool, today: Day) -> Exit {
    let printed = if as_json { printer::data(&format!("{:#}\n", as_value(report))) } else { hold(report) };
    for fault in &report.faults {
        printer::say(&format!("damaged: {fault}"));
    }
    for record in &report.unreadable {
        printer::say(&format!("cannot be read: {record}"));
    }
    if let Some(day) = report.future_day {
        let directory = report.path.parent().unwrap_or(Path::new("."));
        printer::say(&format!(
            "The ledger has opened {day}, which has not begun: requests are charged to it until it is over.\n\
             If a wrong clock opened it, correct the clock, stop the server and close the day:\n  {}\n\
             What was granted of it is then counted for {today}.",
            close_command(directory, today)
        ));
    }
    if let Some(reason) = report.faults.first() {
        let (path, reason) = (report.path.display().to_string(), reason.clone());
        let damaged = crate::store::StoreError::Damaged { path, reason };
        printer::say(&maintenance::way_back(&damaged).unwrap_or_default());
    } else if !report.unreadable.is_empty() {
        printer::say(
            "The gateway passes these records over. Limits are mended by `scoregate keys set-limits` with both of them, \
             all else by `sqlite3`; `scoregate keys revoke` works all the same.",
        );
    }
    if report.is_sound() { printed } else { Exit::Input }
}

/// What a store holds, in words.
fn hold(report: &InspectionReport) -> Exit {
    let day = report.newest_day.map_or_else(|| "-".into(), |day| day.to_string());
    let facts = [
        ("file", report.path.display().to_string()),
        ("format", report.format.to_string()),
        ("applications", report.applications.to_string()),
        ("keys", report.keys.to_string()),
        ("keys in force", report.keys_in_force.to_string()),
        ("newest day", day),
        ("granted that day", report.granted.to_string()),
        ("audit records", report.audit.to_string()),
        ("bytes", report.bytes.to_string()),
        ("bytes of its log", report.log_bytes.to_string()),
    ];
    let lines: Vec<String> = facts.iter().map(|(name, value)| format!("{name:<18} {value}")).collect();
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

/// To standard output, or to a file that has its name only once it is whole.
fn write_export(from: &Path, damaged: bool, to: &Path, force: bool, now: Wall) -> Exit {
    if to == Path::new("-") {
        let mut out = BufWriter::new(io::stdout().lock());
        return match export(from, damaged, &mut out, now) {
            Ok(exported) => written(&exported, damaged),
            Err(error) => failed(error),
        };
    }
    if to.exists() && !force {
        return failed(MaintenanceError::Exists(to.to_owned()));
    }
    let mut half = to.as_os_str().to_owned();
    half.push(format!(".{}.half", std::process::id()));
    let unwritable = |source| MaintenanceError::Unwritable { path: to.to_owned(), source };
    // Left by one of this number that was killed.
    drop(fs::remove_file(&half));
    let exported = into_file(from, damaged, Path::new(&half), now).and_then(|exported| {
        fs::rename(&half, to).map_err(unwritable)?;
        Ok(exported)
    });
    match exported {
        Ok(exported) => written(&exported, damaged),
        Err(error) => {
            drop(fs::remove_file(&half)); // it may not even be there
            failed(error)
        }
    }
}

fn into_file(from: &Path, damaged: bool, half: &Path, now: Wall) -> Result<ExportSummary, MaintenanceError> {
    let unwritable = |source| MaintenanceError::Unwritable { path: half.to_owned(), source };
    // Nobody else's file, nor one that leads elsewhere, is ever written to.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(half);
    let mut out = BufWriter::new(file.map_err(unwritable)?);
    let exported = export(from, damaged, &mut out, now)?;
    out.flush().and_then(|()| out.get_ref().sync_all()).map_err(unwritable)?;
    Ok(exported)
}

fn written(exported: &ExportSummary, damaged: bool) -> Exit {
    for left_out in &exported.left_out {
        printer::say(&format!("left out: {left_out}"));
    }
    let counts = exported.counts;
    printer::say(&format!(
        "written: {} applications, {} keys, {} records of the ledger, {} of the audit trail",
        counts.applications, counts.keys, counts.ledger, counts.audit
    ));
    if damaged && !exported.left_out.is_empty() { Exit::Input } else { Exit::Done }
}

fn report_closed(closed: &ClosedDays, today: Day) -> Exit {
    if closed.days.is_empty() {
        printer::say(&format!("The ledger has opened no day after {today}: nothing was changed."));
        return Exit::Done;
    }
    let days = closed.days.iter().map(Day::to_string).collect::<Vec<_>>().join(", ");
    printer::say(&format!(
        "Closed {days}. {} units granted of it are counted for {today}. Every quota is whole again at {}.",
        closed.granted,
        today.end().rfc3339()
    ));
    Exit::Done
}

/// A date as an operator writes it.
fn day(text: &str) -> Result<Day, String> {
    Day::parse(text).ok_or_else(|| "write a date such as 2026-11-22".into())
}

fn told(imported: &ImportSummary, ask: &ImportOptions) -> Exit {
    for record in &imported.report.unreadable {
        printer::say(&format!("cannot be read, and is passed over: {record}"));
    }
    if let Some(aside) = &imported.aside {
        printer::say(&format!("the store that was there is kept as {}", aside.display()));
    }
    if imported.still_revoked > 0 {
        printer::say(&format!("{} keys that were revoked since stay revoked", imported.still_revoked));
    }
    if imported.still_ended > 0 {
        printer::say(&format!("{} keys that were given a sooner end since keep it", imported.still_ended));
    }
    if imported.only_aside > 0 {
        printer::say(&format!(
            "{} keys that were made since are only in the store put aside",
            imported.only_aside
        ));
    }
    match (imported.unknown.is_empty(), imported.forfeited) {
        (true, None) => printer::say("what was granted since stays granted"),
        (_, Some(day)) => {
            let end: Wall = Day::end(day);
            printer::say(&format!(
                "every quota of {day} is spent: callers are refused until {}",
                end.rfc3339()
            ));
        }
        (false, None) => unknown(&imported.unknown),
    }
    if !imported.unknown.is_empty() && !ask.forfeit_today {
        printer::say(
            "A key that was revoked or rotated away since may be in force again: `scoregate keys revoke` ends it.",
        );
    }
    hold(&imported.report)
}

/// The promise that cannot be kept without asking.
fn unknown(gaps: &[String]) {
    for gap in gaps {
        printer::say(&format!("not known: {gap}"));
    }
    printer::say(
        "WARNING: what was granted since this file was made is not known, so callers may get today's quota again. \
         The same import with --replace --forfeit-today refuses them until midnight UTC instead.",
    );
}
