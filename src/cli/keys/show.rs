//! What `scoregate keys` prints for people.

use serde_json::Value;

use crate::admin::{AdminCommand, ApplicationView, AuditView, ChangeView, IssuedView, KeyView, PageView};
use crate::cli::exit::Exit;
use crate::cli::printer;

/// Shows what a command gave.
pub(super) fn show(command: &AdminCommand, answer: Value) -> Exit {
    let shown = match command {
        AdminCommand::Create(_) | AdminCommand::Rotate { .. } => {
            serde_json::from_value(answer).map(|issued: IssuedView| {
                printer::say(&format!("{}: this key is shown only now", issued.application.id));
                printer::data(&format!("{}\n", issued.key))
            })
        }
        AdminCommand::List { .. } => serde_json::from_value(answer).map(|page| list(&page)),
        AdminCommand::Show(_)
        | AdminCommand::Revoke { .. }
        | AdminCommand::SetTier { .. }
        | AdminCommand::SetLimits { .. }
        | AdminCommand::SetExpiry { .. }
        | AdminCommand::Describe { .. } => {
            serde_json::from_value(answer).map(|application| one(&application))
        }
        AdminCommand::Audit(_) => serde_json::from_value(answer).map(|told| audit(&told)),
        // These two show themselves, a batch and a page at a time.
        AdminCommand::Import(_) | AdminCommand::Export { .. } => Ok(printer::data(&format!("{answer:#}\n"))),
    };
    shown.unwrap_or_else(|error| {
        printer::fault(&anyhow::anyhow!("the server's answer cannot be read: {error}"))
    })
}

fn list(page: &PageView) -> Exit {
    for reason in &page.skipped {
        printer::say(&format!("passed over: {reason}"));
    }
    let row = |application: &ApplicationView| {
        let in_force = application.keys.iter().filter(|key| key.revoked_at.is_none()).count();
        vec![
            application.id.clone(),
            application.tier.clone(),
            in_force.to_string(),
            application.used_today.unwrap_or(application.granted_today).to_string(),
            application.created_at.clone(),
            application.name.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = page.applications.iter().map(row).collect();
    let exit = printer::table(&["application", "tier", "keys", "today", "created", "name"], &rows);
    if page.applications.iter().any(|application| application.used_today.is_none()) {
        printer::say(
            "no server is running: TODAY shows the units granted, which after a crash are more than those used",
        );
    }
    if let Some(next) = &page.next {
        printer::say(&format!("there are more: --after {next}"));
    }
    exit
}

fn one(application: &ApplicationView) -> Exit {
    let own = |limit: Option<u32>| limit.map_or_else(|| "the tier's".into(), |limit| limit.to_string());
    let facts = [
        ("application", application.id.clone()),
        ("name", application.name.clone()),
        ("tier", application.tier.clone()),
        ("requests a minute", own(application.minute_limit)),
        ("requests a day", own(application.day_limit)),
        (
            "used today",
            application
                .used_today
                .map_or_else(|| "known to a running server".into(), |used| used.to_string()),
        ),
        ("granted today", application.granted_today.to_string()),
        ("contact", or_dash(application.contact.as_ref())),
        ("note", or_dash(application.note.as_ref())),
        ("created", application.created_at.clone()),
    ];
    let lines: Vec<String> = facts.iter().map(|(name, value)| format!("{name:<18} {value}")).collect();
    let exit = printer::data(&format!("{}\n\n", lines.join("\n")));
    let row = |key: &KeyView| {
        let (expires, revoked) = (or_dash(key.expires_at.as_ref()), or_dash(key.revoked_at.as_ref()));
        let used = or_dash(key.last_used_at.as_ref());
        vec![key.prefix.clone(), key.created_at.clone(), expires, revoked, used]
    };
    let rows: Vec<Vec<String>> = application.keys.iter().map(row).collect();
    if exit == Exit::Done {
        printer::table(&["key begins", "created", "expires", "revoked", "last used"], &rows)
    } else {
        exit
    }
}

fn audit(told: &AuditView) -> Exit {
    let row = |change: &ChangeView| {
        let ChangeView { number, at, actor, action, application, detail } = change.clone();
        vec![number.to_string(), at, actor, action, application, detail]
    };
    let rows: Vec<Vec<String>> = told.records.iter().map(row).collect();
    let exit = printer::table(&["number", "when", "actor", "action", "application", "detail"], &rows);
    if let Some(next) = told.next {
        printer::say(&format!("there are older ones: --before {next}"));
    }
    exit
}

fn or_dash(text: Option<&String>) -> String {
    text.cloned().unwrap_or_else(|| "-".into())
}
