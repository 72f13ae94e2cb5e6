//! What can be done to applications and keys, as data: read from a request of the side port, written as one by the
//! command line, and performed in one place. So a running and a stopped system obey the same commands.

mod bodies;
mod problem;
mod request;

use std::time::Duration;

use http::StatusCode;
use serde::Serialize;
use serde_json::Value;

use crate::accounts::{BadField, FieldChange, ImportedKey, IssuedKey, KeyRecord, NewApplication, Registrar};
use crate::clock::Wall;
use crate::keys::ApplicationId;
use crate::store::{AuditQuery, OwnLimits, StoredApplication};

use super::view::{ApplicationView, AuditView, ExportView, ImportView, IssuedView, PageView};

pub use bodies::NewKey;
pub use problem::CommandProblem;
pub use request::MOST_IN_A_BATCH;
pub(super) use request::largest_body;

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is a command of `scoregate keys`, whose help says it")]
pub enum AdminCommand {
    Create(NewKey),
    List {
        after: Option<ApplicationId>,
        most: usize,
    },
    Show(ApplicationId),
    Rotate {
        id: ApplicationId,
        overlap_seconds: u64,
        expires_at: Option<String>,
    },
    Revoke {
        id: ApplicationId,
        key: Option<String>,
    },
    SetTier {
        id: ApplicationId,
        tier: String,
    },
    SetLimits {
        id: ApplicationId,
        minute: FieldChange<u32>,
        day: FieldChange<u32>,
    },
    SetExpiry {
        id: ApplicationId,
        key: Option<String>,
        expires_at: FieldChange<String>,
    },
    Describe {
        id: ApplicationId,
        name: Option<String>,
        contact: FieldChange<String>,
        note: FieldChange<String>,
    },
    Audit(AuditQuery),
    Import(Vec<Result<KeyRecord, BadField>>),
    Export {
        after: Option<ApplicationId>,
        most: usize,
    },
}

/// Carries a command out, in the name of `who`.
pub async fn perform(
    registrar: &Registrar,
    command: AdminCommand,
    who: &str,
) -> Result<Value, CommandProblem> {
    match command {
        AdminCommand::Create(new) => issued(registrar, &registrar.create(who, new.into_wish()?).await?),
        AdminCommand::List { after, most } => {
            let page = registrar.list(after, most).await?;
            json(&PageView::new(&page, |stored| registrar.used_today(stored)))
        }
        AdminCommand::Show(id) => application(registrar, &registrar.show(id).await?),
        AdminCommand::Rotate { id, overlap_seconds, expires_at } => {
            let (overlap, ends) =
                (Duration::from_secs(overlap_seconds), expires_at.map(instant).transpose()?);
            issued(registrar, &registrar.rotate_until(who, id, overlap, ends).await?)
        }
        AdminCommand::Revoke { id, key } => {
            application(registrar, &registrar.revoke(who, id, key.as_deref()).await?)
        }
        AdminCommand::SetTier { id, tier } => {
            application(registrar, &registrar.set_tier(who, id, &tier).await?)
        }
        AdminCommand::SetLimits { id, minute, day } => {
            if minute.keeps() && day.keeps() {
                return Err(CommandProblem::bad(
                    "say minute_limit or day_limit: a number, or null for the tier's",
                ));
            }
            application(registrar, &registrar.set_limits(who, id, minute, day).await?)
        }
        AdminCommand::SetExpiry { id, key, expires_at } => {
            let at = match expires_at {
                FieldChange::Keep => {
                    return Err(CommandProblem::bad("say expires_at: an instant, or null for never"));
                }
                FieldChange::Remove => None,
                FieldChange::Set(text) => Some(instant(text)?),
            };
            application(registrar, &registrar.set_expiry(who, id, key.as_deref(), at).await?)
        }
        AdminCommand::Describe { id, name, contact, note } => {
            if name.is_none() && contact.keeps() && note.keeps() {
                return Err(CommandProblem::bad(
                    "say name, contact or note; null removes a contact or a note",
                ));
            }
            application(registrar, &registrar.describe(who, id, name, contact, note).await?)
        }
        AdminCommand::Audit(ask) => {
            let (records, next) = registrar.audit(ask).await?;
            json(&AuditView::new(&records, next))
        }
        AdminCommand::Import(lines) => import(registrar, lines, who).await,
        AdminCommand::Export { after, most } => json(&ExportView::from(&registrar.list(after, most).await?)),
    }
}

/// Takes in what can be read, and tells of each line in its order.
async fn import(
    registrar: &Registrar,
    lines: Vec<Result<KeyRecord, BadField>>,
    who: &str,
) -> Result<Value, CommandProblem> {
    let (mut outcomes, mut readable) = (Vec::with_capacity(lines.len()), Vec::with_capacity(lines.len()));
    for line in lines {
        outcomes.push(line.map(|record| readable.push(record)));
    }
    let mut told = registrar.take_in(who, readable).await?.into_iter();
    let outcomes = outcomes.into_iter().filter_map(|read| match read {
        Ok(()) => told.next(),
        Err(bad) => Some(Err(bad)),
    });
    let outcomes: Vec<Result<ImportedKey, BadField>> = outcomes.collect();
    json(&ImportView::new(&outcomes, registrar.accepts_imported()))
}

fn application(registrar: &Registrar, stored: &StoredApplication) -> Result<Value, CommandProblem> {
    json(&ApplicationView::new(stored, registrar.used_today(stored)))
}

fn issued(registrar: &Registrar, issued: &IssuedKey) -> Result<Value, CommandProblem> {
    json(&IssuedView::new(issued, registrar.used_today(&issued.application)))
}

fn json(view: &impl Serialize) -> Result<Value, CommandProblem> {
    serde_json::to_value(view)
        .map_err(|error| CommandProblem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

#[expect(clippy::needless_pass_by_value, reason = "it is mapped over what a command owns")]
fn instant(text: String) -> Result<Wall, CommandProblem> {
    let would_do = || CommandProblem::bad("expires_at has to be an instant such as 2027-01-31T00:00:00Z");
    Wall::parse_rfc3339(&text).ok_or_else(would_do)
}

impl NewKey {
    fn into_wish(self) -> Result<NewApplication, CommandProblem> {
        let expires_at = self.expires_at.map(instant).transpose()?;
        let own = OwnLimits { minute: self.minute_limit, day: self.day_limit };
        let Self { name, tier, contact, note, .. } = self;
        Ok(NewApplication { name, tier, own, contact, note, expires_at })
    }
}
