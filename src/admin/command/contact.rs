//! The body and the response of `POST /v1/accounts/contact`, which queues a mail to owners of applications.

use serde::{Deserialize, Serialize};

use crate::registry::{ContactRequest, ContactSelection};

use crate::admin::query::parsed_id;

use super::bodies::{read, to_json};
use crate::admin::command_problem::{CommandProblem, CommandResult};

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ContactBody {
    subject: String,
    message: String,
    applications: Option<Vec<String>>,
    tier: Option<String>,
    accounts: Option<Vec<String>>,
    #[serde(default)]
    all: bool,
    #[serde(default)]
    dry_run: bool,
}

/// Writes a request as a body.
pub(super) fn to_body(request: &ContactRequest) -> Vec<u8> {
    let mut body = ContactBody {
        subject: request.subject.clone(),
        message: request.message.clone(),
        dry_run: request.is_dry_run,
        ..ContactBody::default()
    };
    match &request.selection {
        ContactSelection::Applications(ids) => body.applications = Some(texts(ids)),
        ContactSelection::Tier(tier) => body.tier = Some(tier.clone()),
        ContactSelection::Accounts(ids) => body.accounts = Some(texts(ids)),
        ContactSelection::All => body.all = true,
    }
    to_json(&body)
}

/// Reads a request from a body.
pub(super) fn from_body(body: &[u8]) -> CommandResult<ContactRequest> {
    let ContactBody {
        subject,
        message,
        applications,
        tier,
        accounts,
        all,
        dry_run,
    } = read(body)?;
    let selection = match (applications, tier, accounts, all) {
        (Some(ids), None, None, false) if !ids.is_empty() => {
            ContactSelection::Applications(parsed(&ids)?)
        }
        (None, Some(tier), None, false) => ContactSelection::Tier(tier),
        (None, None, Some(ids), false) if !ids.is_empty() => {
            ContactSelection::Accounts(parsed(&ids)?)
        }
        (None, None, None, true) => ContactSelection::All,
        _ => {
            return Err(CommandProblem::bad(
                "send exactly one of applications, tier, accounts and all: true; a list has at least one id",
            ));
        }
    };
    Ok(ContactRequest {
        selection,
        subject,
        message,
        is_dry_run: dry_run,
    })
}

fn texts(ids: &[impl ToString]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(ids: &[String]) -> CommandResult<Vec<T>> {
    ids.iter().map(|id| parsed_id(id)).collect()
}
