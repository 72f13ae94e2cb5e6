//! Commands for owner accounts: `scoregate accounts`.

use clap::{ArgGroup, Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    admin::{
        administration::Administration,
        command_problem::{CommandProblem, CommandResult},
    },
    registry::{ContactRequest, ContactSelection, OwnerAdministration},
    site::is_address_fragment,
};
use scoregate_base::keys::{ApplicationId, OwnerId};
use scoregate_store::OwnerQuery;

use super::{account_export::exported, limit_options::LimitOptions, limits::default_limit};

/// A command for owner accounts.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum AccountsCommand {
    /// List accounts, ordered by id.
    #[command(after_help = "Examples:\n  \
        scoregate accounts list --email ann@example.org --data-dir DIR\n  \
        scoregate accounts list --application app_3kTMd9Qw0aB --data-dir DIR")]
    List {
        /// Only accounts whose email address, with or without its `+tag`, contains this text, ignoring case.
        #[arg(long, value_name = "TEXT", value_parser = searchable)]
        email: Option<String>,
        /// Only the account of this application.
        #[arg(long, value_name = "APP")]
        application: Option<ApplicationId>,
        /// Only accounts after this one.
        #[arg(long, value_name = "ID")]
        after: Option<OwnerId>,
        /// Maximum number of rows.
        #[arg(long, default_value_t = default_limit(), value_name = "N")]
        #[serde(default = "default_limit")]
        limit: usize,
    },
    /// Show an account.
    #[command(
        after_help = "Example:\n  scoregate accounts show own_3kTMd9Qw0aB --data-dir DIR --json"
    )]
    Show {
        /// The account.
        id: OwnerId,
    },
    /// Suspend an account: revoke the keys of its applications, end its sessions, and refuse to sign it in.
    #[command(after_help = "Example:\n  scoregate accounts suspend own_3kTMd9Qw0aB --data-dir DIR")]
    Suspend {
        /// The account.
        id: OwnerId,
    },
    /// Lift a suspension. Revoked keys stay revoked; the owner has to create new keys.
    #[command(after_help = "Example:\n  scoregate accounts resume own_3kTMd9Qw0aB --data-dir DIR")]
    Resume {
        /// The account.
        id: OwnerId,
    },
    /// Set the tier of an account's applications, present and future.
    #[command(
        group = ArgGroup::new("new tier").required(true),
        after_help = "Examples:\n  \
        scoregate accounts set-tier own_3kTMd9Qw0aB pro --data-dir DIR\n  \
        scoregate accounts set-tier own_3kTMd9Qw0aB --default --data-dir DIR\n\n\
        With --default, existing applications keep their tier."
    )]
    SetTier {
        /// The account.
        id: OwnerId,
        /// The tier.
        #[arg(group = "new tier")]
        tier: Option<String>,
        /// Use the default tier for future applications.
        #[arg(long, group = "new tier")]
        #[serde(default)]
        default: bool,
    },
    /// Set or remove limits of an account: quotas that all its applications share, present and future.
    #[command(after_help = "Examples:\n  \
        scoregate accounts set-limits own_3kTMd9Qw0aB --owner-day 50000 --owner-month 1000000 --data-dir DIR\n  \
        scoregate accounts set-limits own_3kTMd9Qw0aB --owner-day none --data-dir DIR\n\n\
        These quotas apply in addition to the limits of each application. Units already used today and this month count towards them.")]
    SetLimits {
        /// The account.
        id: OwnerId,
        /// The limits. Omitted limits are unchanged.
        #[command(flatten)]
        #[serde(default)]
        limits: LimitOptions<true>,
    },
    /// Delete an account: close its applications, revoke their keys, and remove its personal data.
    #[command(
        after_help = "Example:\n  scoregate accounts delete own_3kTMd9Qw0aB --data-dir DIR\n\n\
        This cannot be undone. The audit trail and the usage remain, without personal data."
    )]
    Delete {
        /// The account.
        id: OwnerId,
    },
    /// Send an email to the owners of applications.
    #[command(after_help = "Examples:\n  \
        scoregate accounts contact --tier free --subject 'New terms' --message terms.txt --dry-run --data-dir DIR\n  \
        scoregate accounts contact --application app_3kTMd9Qw0aB --subject 'Your key' --message - --data-dir DIR < text\n\n\
        Each account gets one email, no matter how many of its applications match. An email that could not be sent within three days\n\
        is dropped. The audit trail has the number of accounts, but no text and no addresses.")]
    Contact(OwnerLetter),
    /// Print an account with its applications, their requests and their audit records, as JSON.
    #[command(after_help = "Example:\n  \
        scoregate accounts export own_3kTMd9Qw0aB --data-dir DIR > account.json\n\n\
        The output contains the account, the URLs of its webhooks, its applications, their requests by day, endpoint and outcome,\n\
        the evidence of their use by day, and up to 1,000 audit records of each application.")]
    Export {
        /// The account.
        id: OwnerId,
    },
}

/// An email to the owners of applications.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
#[command(group = ArgGroup::new("recipients").required(true))]
#[serde(deny_unknown_fields)]
pub struct OwnerLetter {
    /// Subject of the mail.
    #[arg(long, value_name = "TEXT")]
    subject: String,
    /// File with the plain text, up to 4,000 characters; - for standard input.
    // In a request this is the text itself, because the command line reads the file.
    #[arg(long, value_name = "FILE|-")]
    pub message: String,
    /// The owners of these applications.
    #[arg(long, value_name = "APP", num_args = 1.., group = "recipients")]
    #[serde(default)]
    application: Vec<ApplicationId>,
    /// The owners of applications in this tier.
    #[arg(long, group = "recipients")]
    tier: Option<String>,
    /// These accounts.
    #[arg(long, value_name = "ID", num_args = 1.., group = "recipients")]
    #[serde(default)]
    account: Vec<OwnerId>,
    /// All accounts.
    #[arg(long, group = "recipients")]
    #[serde(default)]
    all: bool,
    /// Print the number of accounts, and send nothing.
    #[arg(long)]
    #[serde(default)]
    dry_run: bool,
}

impl AccountsCommand {
    pub(super) async fn perform(
        self,
        administration: &Administration,
        actor: &str,
    ) -> CommandResult {
        let owners = &administration.owners;
        let owner = match self {
            Self::List {
                email,
                application,
                after,
                limit,
            } => {
                let query = OwnerQuery {
                    email,
                    application,
                    after,
                    limit,
                };
                return list(owners, query).await;
            }
            Self::Export { id } => return exported(administration, id).await,
            Self::Contact(letter) => {
                let request = ContactRequest::try_from(letter)?;
                return Ok(json!(administration.mail.send(actor, request).await?));
            }
            Self::Show { id } => owners.show(id).await?,
            Self::Suspend { id } => owners.suspend(actor, id).await?,
            Self::Resume { id } => owners.resume(actor, id).await?,
            Self::SetTier { tier, default, .. } if tier.is_some() == default => {
                return Err(CommandProblem::bad(
                    "either set tier, or set default to true",
                ));
            }
            Self::SetTier { id, tier, .. } => owners.set_tier(actor, id, tier).await?,
            Self::SetLimits { id, limits } => {
                owners.set_limits(actor, id, limits.needed()?).await?
            }
            Self::Delete { id } => owners.delete(actor, id).await?,
        };
        Ok(json!(owner))
    }
}

async fn list(owners: &OwnerAdministration, query: OwnerQuery) -> CommandResult {
    if let Some(email) = &query.email {
        searchable(email).map_err(|bad| CommandProblem::bad(format!("email: {bad}")))?;
    }
    let (owners, next) = owners.list(query).await?;
    Ok(json!({ "accounts": owners, "next": next }))
}

impl TryFrom<OwnerLetter> for ContactRequest {
    type Error = CommandProblem;

    fn try_from(letter: OwnerLetter) -> CommandResult<Self> {
        let applications = letter.application;
        let accounts = letter.account;
        let by_id = [applications.is_empty(), accounts.is_empty()];
        let selection = match (by_id, letter.tier, letter.all) {
            ([false, true], None, false) => ContactSelection::Applications(applications),
            ([true, false], None, false) => ContactSelection::Accounts(accounts),
            ([true, true], Some(tier), false) => ContactSelection::Tier(tier),
            ([true, true], None, true) => ContactSelection::All,
            _ => {
                return Err(CommandProblem::bad(
                    "set exactly one of application, tier, account and all; a list must contain at least one id",
                ));
            }
        };
        Ok(Self {
            selection,
            subject: letter.subject,
            message: letter.message,
            is_dry_run: letter.dry_run,
        })
    }
}

fn searchable(text: &str) -> Result<String, String> {
    if is_address_fragment(text) {
        Ok(text.to_owned())
    } else {
        Err("write part of an email address, using only letters, digits and @ . ! # $ % & ' * + - / = ? ^ _ ` { | } ~".into())
    }
}
