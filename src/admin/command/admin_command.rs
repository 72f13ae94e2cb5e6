//! The commands, and how each is performed.

use std::time::Duration;

use serde_json::{Value, json};

use crate::registry::{
    BadField, DescriptionChange, FieldChange, ImportedKey, IssuedKey, KeyDetails, KeyRecord,
    Registrar,
};
use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::ApplicationId;
use scoregate_store::AuditQuery;

use crate::admin::view::{ApplicationView, ExportView, ImportView};

use super::bodies::{ExpiryBody, LimitsBody, NewKey, RevokeBody, RotateBody, TierBody, timestamp};
use super::owners::OwnerCommand;
use super::status::StatusCommand;
use crate::admin::administration::Administration;
use crate::admin::command_problem::{CommandProblem, CommandResult};

/// A command on applications, keys, accounts and status messages.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each is a command of `scoregate keys`, `accounts`, `nodes`, `suspects` or `status`, documented in its help"
)]
pub enum AdminCommand {
    Create(NewKey),
    List {
        after: Option<ApplicationId>,
        limit: usize,
    },
    Show(ApplicationId),
    Rotate(ApplicationId, RotateBody),
    Revoke(ApplicationId, RevokeBody),
    SetTier(ApplicationId, TierBody),
    SetLimits(ApplicationId, LimitsBody),
    SetExpiry(ApplicationId, ExpiryBody),
    Update {
        id: ApplicationId,
        change: DescriptionChange,
    },
    Requests {
        id: ApplicationId,
        first: Option<Day>,
        last: Option<Day>,
    },
    Audit(AuditQuery),
    Import(Vec<Result<KeyRecord, BadField>>),
    Export {
        after: Option<ApplicationId>,
        limit: usize,
    },
    Nodes,
    Suspects {
        days: Option<u32>,
    },
    Evidence(ApplicationId),
    Status(StatusCommand),
    Owner(OwnerCommand),
}

/// Performs a command, recorded in the audit trail under `actor`.
pub async fn perform(
    administration: &Administration,
    command: AdminCommand,
    actor: &str,
) -> CommandResult {
    let Administration {
        registrar: keys,
        reports,
        ..
    } = administration;
    let application = match command {
        AdminCommand::Show(id) => keys.show(id).await?,
        AdminCommand::Revoke(id, RevokeBody { key }) => {
            keys.revoke(actor, id, key.as_deref()).await?
        }
        AdminCommand::SetTier(id, TierBody { tier }) => keys.set_tier(actor, id, &tier).await?,
        AdminCommand::SetLimits(
            id,
            LimitsBody {
                minute_limit,
                day_limit,
                until,
            },
        ) => {
            if minute_limit.is_unchanged() && day_limit.is_unchanged() {
                return Err(CommandProblem::bad(
                    "send minute_limit or day_limit; null for the tier's limit",
                ));
            }
            let until = until.map(timestamp).transpose()?;
            keys.set_limits(actor, id, minute_limit, day_limit, until)
                .await?
        }
        AdminCommand::SetExpiry(id, ExpiryBody { key, expires_at }) => {
            keys.set_expiry(actor, id, key.as_deref(), expiry(expires_at)?)
                .await?
        }
        AdminCommand::Update { id, change } => {
            if change == DescriptionChange::default() {
                return Err(CommandProblem::bad(
                    "send name, url, contact or note; null removes a url, a contact or a note",
                ));
            }
            keys.describe(actor, id, change).await?
        }
        AdminCommand::Create(new) => {
            return Ok(issued(
                keys,
                &keys.create(actor, new.into_application()?).await?,
            ));
        }
        AdminCommand::Rotate(
            id,
            RotateBody {
                overlap_seconds,
                key_name,
                expires_at,
            },
        ) => {
            let overlap = Duration::from_secs(overlap_seconds);
            let expires_at = expires_at.map(timestamp).transpose()?;
            let details = KeyDetails {
                name: key_name,
                expires_at,
                allowance: None,
            };
            return Ok(issued(
                keys,
                &keys.rotate(actor, id, overlap, details).await?,
            ));
        }
        AdminCommand::List { after, limit } => {
            let page = keys.list(after, limit).await?;
            let views = page
                .applications
                .iter()
                .map(|stored| ApplicationView::new(stored, keys));
            let views: Vec<_> = views.collect();
            return Ok(
                json!({ "applications": views, "skipped": page.skipped, "next": page.next }),
            );
        }
        AdminCommand::Audit(query) => {
            let (records, next) = keys.audit(query).await?;
            return Ok(json!({ "records": records, "next": next }));
        }
        AdminCommand::Export { after, limit } => {
            return Ok(json!(ExportView::from(&keys.list(after, limit).await?)));
        }
        AdminCommand::Import(lines) => return import(keys, lines, actor).await,
        AdminCommand::Status(command) => {
            return command.perform(&administration.messages, actor).await;
        }
        AdminCommand::Owner(command) => return command.perform(administration, actor).await,
        AdminCommand::Requests { id, first, last } => {
            return Ok(json!(reports.requests(id, first, last).await?));
        }
        AdminCommand::Nodes => return Ok(json!(reports.nodes().await?)),
        AdminCommand::Suspects { days } => return Ok(json!(reports.suspects(days).await?)),
        AdminCommand::Evidence(id) => return Ok(json!(reports.evidence(id).await?)),
    };
    Ok(json!(ApplicationView::new(&application, keys)))
}

/// Imports the valid lines; the outcomes are in the order of the lines.
async fn import(
    registrar: &Registrar,
    lines: Vec<Result<KeyRecord, BadField>>,
    actor: &str,
) -> CommandResult {
    let mut outcomes = Vec::with_capacity(lines.len());
    let mut readable = Vec::with_capacity(lines.len());
    for line in lines {
        outcomes.push(line.map(|record| readable.push(record)));
    }
    let mut imported = registrar.import(actor, readable).await?.into_iter();
    let outcomes = outcomes.into_iter().filter_map(|read| match read {
        Ok(()) => imported.next(),
        Err(bad) => Some(Err(bad)),
    });
    let outcomes: Vec<Result<ImportedKey, BadField>> = outcomes.collect();
    Ok(json!(ImportView::new(
        &outcomes,
        registrar.accepts_imported()
    )))
}

fn issued(registrar: &Registrar, issued: &IssuedKey) -> Value {
    let application = ApplicationView::new(&issued.application, registrar);
    json!({ "key": issued.key.expose(), "application": application })
}

/// The expiry to set; `None` for never.
fn expiry(change: FieldChange<String>) -> CommandResult<Option<Wall>> {
    match change {
        FieldChange::Keep => Err(CommandProblem::bad(
            "send expires_at: a timestamp, or null for never",
        )),
        FieldChange::Remove => Ok(None),
        FieldChange::Set(text) => timestamp(text).map(Some),
    }
}
