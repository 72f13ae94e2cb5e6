//! Commands that attach applications to owners by email address: `scoregate keys attach`.

use clap::{ArgGroup, Args};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    admin::command_problem::{CommandProblem, CommandResult},
    registry::{OwnerAddress, Registrar},
    site::{EmailAddress, MailDomains},
};
use scoregate_base::keys::ApplicationId;
use scoregate_store::StoredApplication;

/// Maximum number of applications that are read in one step.
const PAGE: usize = 1_000;

/// One application and its new owner, or all applications whose contact is an email address.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
#[command(group = ArgGroup::new("applications").required(true))]
#[serde(deny_unknown_fields)]
pub struct OwnerAttachment {
    /// Application id.
    #[arg(group = "applications", requires = "email")]
    id: Option<ApplicationId>,
    /// Email address of the owner.
    email: Option<String>,
    /// Take the application from another owner. Both are notified by email.
    #[arg(long = "move", requires = "id")]
    #[serde(default, rename = "move")]
    moves: bool,
    /// All applications that have no owner and whose contact is an email address.
    #[arg(long, group = "applications")]
    #[serde(default)]
    from_contact: bool,
    /// Only list the applications.
    #[arg(long, requires = "from_contact")]
    #[serde(default)]
    dry_run: bool,
}

impl OwnerAttachment {
    pub(super) async fn perform(self, keys: &Registrar, actor: &str) -> CommandResult {
        let attached = match (self.id, self.email, self.from_contact) {
            (Some(id), Some(email), false) if !self.dry_run => {
                let address = owner_address(&email, self.moves)?;
                keys.attach(actor, id, address).await?;
                vec![attached(keys, id, &email, None).await?]
            }
            (None, None, true) if !self.moves => attach_contacts(keys, actor, self.dry_run).await?,
            _ => return Err(CommandProblem::bad("set id and email, or from_contact")),
        };
        Ok(json!({ "attached": attached }))
    }
}

/// An address with its mailbox. The domain is not checked, because an operator chose the address.
pub fn owner_address(email: &str, moves: bool) -> CommandResult<OwnerAddress> {
    let parsed = EmailAddress::parse(email, &MailDomains::default());
    let parsed = parsed.map_err(|problem| CommandProblem::bad(format!("`{email}`: {problem}")))?;
    Ok(OwnerAddress {
        email: parsed.entered,
        mailbox: parsed.mailbox,
        moves,
    })
}

/// The result for an application.
async fn attached(
    keys: &Registrar,
    id: ApplicationId,
    email: &str,
    problem: Option<CommandProblem>,
) -> CommandResult {
    let account = keys.owner_of(id).await?.map(|owner| owner.id);
    let problem = problem.map(|problem| problem.error);
    Ok(json!({ "application": id, "email": email, "account": account, "problem": problem }))
}

/// Attaches each application without an owner to its contact. The command can be repeated after a failure.
async fn attach_contacts(
    keys: &Registrar,
    actor: &str,
    is_dry_run: bool,
) -> CommandResult<Vec<Value>> {
    let mut results = Vec::new();
    let mut after = None;
    loop {
        let page = keys.list(after, PAGE).await?;
        for StoredApplication {
            id, description, ..
        } in page.applications
        {
            let Some(contact) = description.contact else {
                continue;
            };
            if keys.owner_of(id).await?.is_none() {
                let problem = attach_contact(keys, actor, id, &contact, is_dry_run).await?;
                results.push(attached(keys, id, &contact, problem).await?);
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(results);
        }
    }
}

/// Attaches an application to its contact. Returns a problem that affects only this application, so that the others
/// can still be attached.
async fn attach_contact(
    keys: &Registrar,
    actor: &str,
    id: ApplicationId,
    contact: &str,
    is_dry_run: bool,
) -> CommandResult<Option<CommandProblem>> {
    let address = match owner_address(contact, false) {
        Ok(address) if !is_dry_run => address,
        checked => return Ok(checked.err()),
    };
    match keys.attach(actor, id, address).await {
        Ok(_) => Ok(None),
        Err(error) => {
            let problem = CommandProblem::from(error);
            if problem.is_input() {
                Ok(Some(problem))
            } else {
                Err(problem)
            }
        }
    }
}
