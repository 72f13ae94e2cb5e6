//! The text output of `scoregate keys`.

use serde_json::Value;

use crate::admin::AdminCommand;
use crate::cli::exit::Exit;
use crate::cli::printer::{self, cell, field, items};
use scoregate_store::Description;

use super::requests_command;

/// The columns of the keys of an application.
const KEY_COLUMNS: [(&str, &str); 6] = [
    ("key prefix", "prefix"),
    ("name", "name"),
    ("created", "created_at"),
    ("expires", "expires_at"),
    ("revoked", "revoked_at"),
    ("last used", "last_used_at"),
];
/// The columns of the audit trail.
const AUDIT_COLUMNS: [(&str, &str); 6] = [
    ("number", "number"),
    ("time", "at"),
    ("actor", "actor"),
    ("action", "action"),
    ("application", "application"),
    ("detail", "detail"),
];

/// Prints the response to a command.
pub(super) fn show(command: &AdminCommand, response: Value) -> Exit {
    match command {
        AdminCommand::Create(_) | AdminCommand::Rotate { .. } => {
            let id = cell(field(field(&response, "application"), "id"));
            printer::message(&format!("{id}: this key is shown only once"));
            printer::data(&format!("{}\n", cell(field(&response, "key"))))
        }
        AdminCommand::List { .. } => list(&response),
        AdminCommand::Show(_)
        | AdminCommand::Revoke(..)
        | AdminCommand::SetTier(..)
        | AdminCommand::SetLimits { .. }
        | AdminCommand::SetExpiry { .. }
        | AdminCommand::Update { .. } => details(&response),
        AdminCommand::Requests { .. } => printer::response(response, requests_command::show),
        AdminCommand::Audit(_) => audit(&response),
        // Printed by `import` and `export`, a batch and a page at a time, by `nodes` and by `status`.
        AdminCommand::Import(_)
        | AdminCommand::Export { .. }
        | AdminCommand::Nodes
        | AdminCommand::Suspects { .. }
        | AdminCommand::Evidence(_)
        | AdminCommand::Status(_)
        | AdminCommand::Owner(_) => printer::json(&response),
    }
}

fn list(page: &Value) -> Exit {
    for reason in items(page, "skipped") {
        printer::message(&format!("skipped: {}", cell(reason)));
    }
    let applications = items(page, "applications");
    let is_counted = |application: &Value| !field(application, "used_today").is_null();
    let row = |application: &Value| {
        let text = |name| cell(field(application, name));
        let units = if is_counted(application) {
            "used_today"
        } else {
            "granted_today"
        };
        let valid = items(application, "keys")
            .iter()
            .filter(|key| field(key, "revoked_at").is_null())
            .count();
        vec![
            text("id"),
            text("tier"),
            valid.to_string(),
            text(units),
            text("created_at"),
            text("name"),
        ]
    };
    let header = [
        "application",
        "tier",
        "keys",
        "units today",
        "created",
        "name",
    ];
    let exit = printer::table(&header, applications.iter().map(row));
    if !applications.iter().all(is_counted) {
        printer::message(
            "no server is running: UNITS TODAY are granted units, which exceed the used units after a crash",
        );
    }
    if let Some(next) = field(page, "next").as_str() {
        printer::message(&format!("more applications follow: --after {next}"));
    }
    exit
}

fn details(application: &Value) -> Exit {
    let rows = [
        ("application", "id", "-"),
        ("name", "name", "-"),
        ("tier", "tier", "-"),
        ("minute limit", "minute_limit", "tier default"),
        ("day limit", "day_limit", "tier default"),
        ("limits until", "limits_until", "-"),
        ("used today", "used_today", "unknown: no server is running"),
        ("granted today", "granted_today", "-"),
    ];
    let description = Description::NAMES.map(|name| (name, name, "-"));
    let rows = rows
        .into_iter()
        .chain(description)
        .chain([("created", "created_at", "-")]);
    let rows = rows.map(|(shown, name, absent)| {
        let value = field(application, name);
        (
            shown,
            if value.is_null() {
                absent.to_owned()
            } else {
                cell(value)
            },
        )
    });
    let exit = printer::data(&format!("{}\n", printer::fields(rows)));
    if exit == Exit::Done {
        printer::objects(&KEY_COLUMNS, items(application, "keys"))
    } else {
        exit
    }
}

fn audit(page: &Value) -> Exit {
    let exit = printer::objects(&AUDIT_COLUMNS, items(page, "records"));
    if let Some(next) = field(page, "next").as_u64() {
        printer::message(&format!("older changes follow: --before {next}"));
    }
    exit
}
