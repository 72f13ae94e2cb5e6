//! The text output of `scoregate keys`.

use serde_json::Value;

use crate::admin::{AdminCommand, ApplicationView, AuditView, ChangeView, IssuedView, KeyView, PageView};
use crate::cli::exit::Exit;
use crate::cli::printer;

use super::requests_command;

/// Prints the response to a command.
pub(super) fn show(command: &AdminCommand, response: Value) -> Exit {
    match command {
        AdminCommand::Create(_) | AdminCommand::Rotate { .. } => {
            printer::response(response, |issued: &IssuedView| {
                printer::message(&format!("{}: this key is shown only once", issued.application.id));
                printer::data(&format!("{}\n", issued.key))
            })
        }
        AdminCommand::List { .. } => printer::response(response, list),
        AdminCommand::Show(_)
        | AdminCommand::Revoke(..)
        | AdminCommand::SetTier(..)
        | AdminCommand::SetLimits { .. }
        | AdminCommand::SetExpiry { .. }
        | AdminCommand::Update { .. } => printer::response(response, details),
        AdminCommand::Requests { .. } => printer::response(response, requests_command::show),
        AdminCommand::Audit(_) => printer::response(response, audit),
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

fn list(page: &PageView) -> Exit {
    for reason in &page.skipped {
        printer::message(&format!("skipped: {reason}"));
    }
    let row = |application: &ApplicationView| {
        let valid = application.keys.iter().filter(|key| key.revoked_at.is_none()).count();
        vec![
            application.id.clone(),
            application.tier.clone(),
            valid.to_string(),
            application.used_today.unwrap_or(application.granted_today).to_string(),
            application.created_at.clone(),
            application.name.clone(),
        ]
    };
    let header = ["application", "tier", "keys", "units today", "created", "name"];
    let exit = printer::table(&header, page.applications.iter().map(row));
    if page.applications.iter().any(|application| application.used_today.is_none()) {
        printer::message(
            "no server is running: UNITS TODAY are granted units, which exceed the used units after a crash",
        );
    }
    if let Some(next) = &page.next {
        printer::message(&format!("more applications follow: --after {next}"));
    }
    exit
}

fn details(application: &ApplicationView) -> Exit {
    let own = |limit: Option<u32>| limit.map_or_else(|| "tier default".into(), |limit| limit.to_string());
    let fields = [
        ("application", application.id.clone()),
        ("name", application.name.clone()),
        ("tier", application.tier.clone()),
        ("minute limit", own(application.minute_limit)),
        ("day limit", own(application.day_limit)),
        ("limits until", or_dash(application.limits_until.as_ref())),
        (
            "used today",
            application
                .used_today
                .map_or_else(|| "unknown: no server is running".into(), |used| used.to_string()),
        ),
        ("granted today", application.granted_today.to_string()),
    ];
    let description = application.description.columns().map(|(name, text)| (name, or_dash(text.as_ref())));
    let fields = fields.into_iter().chain(description).chain([("created", application.created_at.clone())]);
    let exit = printer::data(&format!("{}\n", printer::fields(fields)));
    let row = |key: &KeyView| {
        let (expires, revoked) = (or_dash(key.expires_at.as_ref()), or_dash(key.revoked_at.as_ref()));
        let used = or_dash(key.last_used_at.as_ref());
        vec![key.prefix.clone(), or_dash(key.name.as_ref()), key.created_at.clone(), expires, revoked, used]
    };
    if exit == Exit::Done {
        let header = ["key prefix", "name", "created", "expires", "revoked", "last used"];
        printer::table(&header, application.keys.iter().map(row))
    } else {
        exit
    }
}

fn audit(page: &AuditView) -> Exit {
    let row = |change: &ChangeView| {
        let ChangeView { number, at, actor, action, application, detail } = change.clone();
        vec![number.to_string(), at, actor, action, application, detail]
    };
    let header = ["number", "time", "actor", "action", "application", "detail"];
    let exit = printer::table(&header, page.records.iter().map(row));
    if let Some(next) = page.next {
        printer::message(&format!("older changes follow: --before {next}"));
    }
    exit
}

fn or_dash(text: Option<&String>) -> String {
    text.cloned().unwrap_or_else(|| "-".into())
}
