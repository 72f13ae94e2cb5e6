//! The text output of `scoregate keys`.

use serde_json::Value;

use crate::{
    admin::{ApplicationRequestsView, KeysCommand},
    cli::printer::{self, cell, field, items},
};
use scoregate_store::{Description, OutcomeCounts, RequestOutcome};

/// The columns of the keys of an application.
const KEY_COLUMNS: [(&str, &str); 6] = [
    ("key prefix", "prefix"),
    ("name", "name"),
    ("created", "created_at"),
    ("expires", "expires_at"),
    ("revoked", "revoked_at"),
    ("last used", "last_used_at"),
];
/// The columns of attached applications.
const ATTACHED_COLUMNS: [(&str, &str); 4] = [
    ("application", "application"),
    ("email", "email"),
    ("account", "account"),
    ("problem", "problem"),
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

/// The function that prints the response to a command.
pub fn shown_by(command: &KeysCommand) -> fn(Value) -> anyhow::Result<()> {
    match command {
        KeysCommand::Create(_) | KeysCommand::Rotate(_) => |response| issued(&response),
        KeysCommand::List { .. } => |response| list(&response),
        KeysCommand::Show { .. }
        | KeysCommand::Revoke { .. }
        | KeysCommand::SetTier { .. }
        | KeysCommand::SetLimits(_)
        | KeysCommand::SetExpiry(_)
        | KeysCommand::Detach { .. }
        | KeysCommand::Update(_) => |response| details(&response),
        KeysCommand::Attach(_) => {
            |response| printer::objects(&ATTACHED_COLUMNS, items(&response, "attached"))
        }
        KeysCommand::Requests { .. } => |response| printer::response(response, requests),
        KeysCommand::Audit { .. } => |response| audit(&response),
        // Not used: `import` and `export` print their results themselves.
        KeysCommand::Import { .. } | KeysCommand::Export { .. } => {
            |response| printer::json(&response)
        }
    }
}

fn issued(response: &Value) -> anyhow::Result<()> {
    let id = cell(field(field(response, "application"), "id"));
    printer::message(&format!("{id}: this key is shown only once"));
    printer::data(&format!("{}\n", cell(field(response, "key"))))
}

fn list(page: &Value) -> anyhow::Result<()> {
    for reason in items(page, "skipped") {
        printer::message(&format!("skipped: {}", cell(reason)));
    }
    let applications = items(page, "applications");
    let header = [
        "application",
        "tier",
        "keys",
        "units today",
        "created",
        "name",
    ];
    printer::table(
        &header,
        applications.iter().map(|application| {
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
        }),
    )?;
    if !applications.iter().all(is_counted) {
        printer::message(
            "no server is running: UNITS TODAY are granted units, which exceed the used units after a crash",
        );
    }
    if let Some(next) = field(page, "next").as_str() {
        printer::message(&format!("more applications follow: --after {next}"));
    }
    Ok(())
}

fn is_counted(application: &Value) -> bool {
    !field(application, "used_today").is_null()
}

fn details(application: &Value) -> anyhow::Result<()> {
    for warning in items(application, "warnings") {
        printer::message(&format!("warning: {}", cell(warning)));
    }
    let rows = [
        ("application", "id", "-"),
        ("name", "name", "-"),
        ("tier", "tier", "-"),
        ("own limits", "own_limits", "none"),
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
    printer::data(&format!("{}\n", printer::fields(rows)))?;
    printer::objects(&KEY_COLUMNS, items(application, "keys"))
}

fn audit(page: &Value) -> anyhow::Result<()> {
    printer::objects(&AUDIT_COLUMNS, items(page, "records"))?;
    if let Some(next) = field(page, "next").as_u64() {
        printer::message(&format!("older changes follow: --before {next}"));
    }
    Ok(())
}

/// Prints a table by day and a table by endpoint.
fn requests(view: &ApplicationRequestsView) -> anyhow::Result<()> {
    if view.requests == 0 {
        printer::message(&format!(
            "no requests were recorded from {} to {}",
            view.from, view.to
        ));
        return Ok(());
    }
    let days = view.days.iter().filter(|day| day.requests > 0);
    let mut by_day: Vec<Vec<String>> = days.map(|day| row(&day.day, &day.outcomes)).collect();
    by_day.push(row("all days", &view.outcomes));
    let by_endpoint = view
        .endpoints
        .iter()
        .map(|endpoint| row(&endpoint.endpoint, &endpoint.outcomes));
    printer::table(&header("day"), by_day)?;
    printer::data("\n")?;
    printer::table(&header("endpoint"), by_endpoint)?;
    if let Some(at) = &view.recorded_at {
        printer::message(&format!(
            "requests after {at} are not yet recorded by all gateways"
        ));
    }
    Ok(())
}

fn header(first: &'static str) -> Vec<&'static str> {
    [first, "requests"]
        .into_iter()
        .chain(RequestOutcome::ALL.map(RequestOutcome::word))
        .collect()
}

fn row(name: &str, counts: &OutcomeCounts) -> Vec<String> {
    let numbers = RequestOutcome::ALL.map(|outcome| counts.of(outcome).to_string());
    [name.to_owned(), counts.total().to_string()]
        .into_iter()
        .chain(numbers)
        .collect()
}
