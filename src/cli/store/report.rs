//! Output of `scoregate store` for the store file.

use std::path::Path;

use serde_json::{Value, json};

use scoregate_base::clock::{Day, Wall};
use scoregate_store::maintenance::{
    self, ClosedDays, ImportSummary, ImportedDay, InspectionReport, close_command, since,
};

use crate::cli::{
    command_error::{CommandError, CommandOutcome, input_is_fine},
    printer,
};

pub fn print_check(report: &InspectionReport, as_json: bool, today: Day) -> CommandOutcome {
    if as_json {
        printer::json(&as_value(report))?;
    } else {
        print_contents(report)?;
    }
    print_faults(report);
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
        let path = report.path.display().to_string();
        let reason = reason.clone();
        let damaged = scoregate_store::StoreError::Damaged { path, reason };
        printer::message(&maintenance::recovery_steps(&damaged).unwrap_or_default());
    } else if !report.unreadable.is_empty() {
        printer::message(
            "The gateway skips these records. Repair limits with `scoregate keys set-limits` (give all individual limits), and other \
             fields with `sqlite3`. `scoregate keys revoke` works as usual.",
        );
    }
    input_is_fine(report.is_sound())
}

fn print_faults(report: &InspectionReport) {
    for fault in &report.faults {
        printer::message(&format!("damaged: {fault}"));
    }
    for record in &report.unreadable {
        printer::message(&format!("unreadable: {record}"));
    }
}

/// Prints the contents of a backup, and `if_unsound` if it is damaged.
pub fn print_verified(report: &InspectionReport, if_unsound: &str) -> CommandOutcome {
    print_contents(report)?;
    print_faults(report);
    if report.is_sound() {
        return Ok(());
    }
    let path = report.path.display();
    Err(CommandError::Input(format!("{path} {if_unsound}")))
}

fn print_contents(report: &InspectionReport) -> anyhow::Result<()> {
    printer::data(&printer::fields(
        contents(report).map(|(name, _, value)| (name, printer::cell(&value))),
    ))
}

/// The contents of a store. Each row has a text label, a JSON name and a value.
fn contents(report: &InspectionReport) -> [(&'static str, &'static str, Value); 11] {
    [
        ("file", "file", json!(report.path.display().to_string())),
        ("schema", "format", json!(report.format)),
        ("applications", "applications", json!(report.applications)),
        ("keys", "keys", json!(report.keys)),
        ("valid keys", "keys_in_force", json!(report.keys_in_force)),
        (
            "newest day",
            "newest_day",
            json!(report.newest_day.map(|day| day.to_string())),
        ),
        ("units granted", "granted", json!(report.granted)),
        ("audit records", "audit", json!(report.audit)),
        (
            "last change",
            "last_change",
            json!(report.last_change.map(Wall::rfc3339)),
        ),
        ("bytes", "bytes", json!(report.bytes)),
        ("bytes of the WAL", "log_bytes", json!(report.log_bytes)),
    ]
}

fn as_value(report: &InspectionReport) -> Value {
    let result = [
        ("sound", json!(report.is_sound())),
        (
            "future_day",
            json!(report.future_day.map(|day| day.to_string())),
        ),
        ("faults", json!(report.faults)),
        ("unreadable", json!(report.unreadable)),
    ];
    contents(report)
        .map(|(_, name, value)| (name, value))
        .into_iter()
        .chain(result)
        .collect()
}

pub fn print_closed(closed: &ClosedDays, today: Day) {
    if closed.days.is_empty() {
        printer::message(&format!(
            "The ledger has not opened a day after {today}: nothing was changed."
        ));
        return;
    }
    printer::message(&format!(
        "Closed {}. {} units granted for it now count for {today}. Quotas reset at {}.",
        closed.list(),
        closed.granted,
        today.end().rfc3339()
    ));
}

pub fn print_imported(imported: &ImportSummary, restores: bool) -> anyhow::Result<()> {
    for record in &imported.report.unreadable {
        printer::message(&format!("skipped, unreadable: {record}"));
    }
    if let Some(aside) = &imported.aside {
        printer::message(&format!(
            "the previous store is kept as {}",
            aside.display()
        ));
    }
    let carried = &imported.carried;
    let facts = [
        ("keys that stay revoked", carried.revoked),
        ("keys that keep an earlier expiry", carried.ended),
        (
            "applications that keep a changed tier or changed limits",
            carried.limits,
        ),
        ("keys that are only in the previous store", carried.lost),
    ];
    for (fact, number) in facts.into_iter().filter(|(_, number)| *number > 0) {
        printer::message(&format!("changes after this backup: {number} {fact}"));
    }
    let unless = if restores {
        ""
    } else {
        ", unless the export closed its store"
    };
    print_day(imported.day, unless);
    for gap in &carried.gaps {
        printer::message(&format!("unknown: {gap}"));
    }
    if !carried.gaps.is_empty() {
        print_lost(imported.last_change, unless);
    }
    print_contents(&imported.report)
}

pub fn print_day(day: ImportedDay, unless: &str) {
    match day {
        ImportedDay::Complete => printer::message("units granted after this backup stay granted"),
        ImportedDay::Closed(day) => printer::message(&format!(
            "{day} is closed, since units granted after this backup are unknown: callers are refused until {}",
            day.end().rfc3339()
        )),
        ImportedDay::Reopened(day, units) => {
            let units = units.map_or_else(|| "all".into(), |units| format!("up to {units}"));
            printer::message(&format!(
                "WARNING: {units} units of {day} may be granted twice{unless}"
            ));
        }
    }
}

pub fn print_lost(last_change: Option<Wall>, unless: &str) {
    let since = since(last_change);
    printer::message(&format!(
        "WARNING: revocations, earlier expiries and tier changes {since} are lost{unless}. Make the known changes again."
    ));
}
