//! `scoregate accounts`: the owners of applications who signed up.
//!
//! Over the Unix socket of a running gateway, or on the store if none runs on this machine.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};
use serde_json::Value;

use crate::admin::{AdminCommand, NOT_SEARCHABLE, OwnerCommand};
use crate::registry::{ContactOutcome, ContactRequest, ContactSelection};
use crate::site::is_address_fragment;
use scoregate_base::keys::{ApplicationId, OwnerId};
use scoregate_store::OwnerQuery;

use super::command_error::{CommandError, CommandOutcome};
use super::control::perform_once;
use super::exit::Exit;
use super::input_file;
use super::printer::{self, cell, field, items};
use super::serve::ServerArgs;

pub(super) const AFTER_HELP: &str = include_str!("help/accounts.txt");

/// A longer text is refused in any case.
const MAX_MESSAGE_BYTES: u64 = 32_768;

#[derive(Debug, Args)]
pub(super) struct AccountsArgs {
    #[command(subcommand)]
    action: AccountsAction,
    #[command(flatten)]
    server: ServerArgs,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum AccountsAction {
    /// List accounts, ordered by id.
    #[command(after_help = "Examples:\n  \
        scoregate accounts list --email ann@example.org --data-dir DIR\n  \
        scoregate accounts list --application app_3kTMd9Qw0aB --data-dir DIR")]
    List {
        /// Only accounts whose e-mail address, with or without its `+tag`, contains this text, in any case.
        #[arg(long, value_name = "TEXT", value_parser = searchable)]
        email: Option<String>,
        /// Only the account of this application.
        #[arg(long, value_name = "APP")]
        application: Option<ApplicationId>,
        /// Only accounts after this one.
        #[arg(long, value_name = "ID")]
        after: Option<OwnerId>,
        /// Maximum number of rows.
        #[arg(long, default_value_t = 100, value_name = "N")]
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
    /// Lift a suspension. Revoked keys stay revoked; the owner has to create new ones.
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
        With --default present applications keep their tier."
    )]
    SetTier {
        /// The account.
        id: OwnerId,
        /// The tier.
        #[arg(group = "new tier")]
        tier: Option<String>,
        /// Use the default tier for future applications.
        #[arg(long, group = "new tier")]
        default: bool,
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
    /// Send a mail to the owners of applications.
    #[command(
        group = ArgGroup::new("recipients").required(true),
        after_help = "Examples:\n  \
        scoregate accounts contact --tier free --subject 'New terms' --message terms.txt --dry-run --data-dir DIR\n  \
        scoregate accounts contact --application app_3kTMd9Qw0aB --subject 'Your key' --message - --data-dir DIR < text\n\n\
        Each account gets one mail, no matter how many of its applications match. A mail that could not be sent within three days\n\
        is dropped. The audit trail has the number of accounts, without text and addresses."
    )]
    Contact {
        /// Subject of the mail.
        #[arg(long, value_name = "TEXT")]
        subject: String,
        /// File with the plain text, up to 4,000 characters; - for standard input.
        #[arg(long, value_name = "FILE|-")]
        message: PathBuf,
        /// The owners of these applications.
        #[arg(long, value_name = "APP", num_args = 1.., group = "recipients")]
        application: Vec<ApplicationId>,
        /// The owners of applications in this tier.
        #[arg(long, group = "recipients")]
        tier: Option<String>,
        /// These accounts.
        #[arg(long, value_name = "ID", num_args = 1.., group = "recipients")]
        account: Vec<OwnerId>,
        /// All accounts.
        #[arg(long, group = "recipients")]
        all: bool,
        /// Only print the number of accounts.
        #[arg(long)]
        dry_run: bool,
    },
    /// Print an account with its applications, their requests and their audit records, as JSON.
    #[command(after_help = "Example:\n  \
        scoregate accounts export own_3kTMd9Qw0aB --data-dir DIR > account.json\n\n\
        The output has the account, the URLs of its webhooks, its applications, their requests by day, endpoint and outcome,\n\
        the evidence of their use by day, and up to 1,000 audit records of each application.")]
    Export {
        /// The account.
        id: OwnerId,
    },
}

pub(super) fn run(args: AccountsArgs) -> CommandOutcome {
    let AccountsArgs {
        action,
        server,
        json,
    } = args;
    let config = server.settings()?;
    let command = action.into_command()?;
    let is_list = matches!(command, OwnerCommand::List(_));
    let is_export = matches!(command, OwnerCommand::Export(_));
    let is_contact = matches!(command, OwnerCommand::Contact(_));
    let is_delete = matches!(command, OwnerCommand::Delete(_));
    Ok(match perform_once(&config, AdminCommand::Owner(command))? {
        response if json || is_export => printer::json(&response),
        response if is_list => list(&response),
        response if is_contact => printer::response(response, contacted),
        response => table(&[response], is_delete),
    })
}

impl AccountsAction {
    fn into_command(self) -> CommandOutcome<OwnerCommand> {
        Ok(match self {
            Self::List {
                email,
                application,
                after,
                limit,
            } => OwnerCommand::List(OwnerQuery {
                email,
                application,
                after,
                limit,
            }),
            Self::Show { id } => OwnerCommand::Show(id),
            Self::Suspend { id } => OwnerCommand::Suspend(id),
            Self::Resume { id } => OwnerCommand::Resume(id),
            Self::SetTier { id, tier, .. } => OwnerCommand::SetTier { owner: id, tier },
            Self::Delete { id } => OwnerCommand::Delete(id),
            Self::Export { id } => OwnerCommand::Export(id),
            Self::Contact {
                subject,
                message,
                application,
                tier,
                account,
                all: _,
                dry_run,
            } => {
                let selection = match tier {
                    Some(tier) => ContactSelection::Tier(tier),
                    None if !application.is_empty() => ContactSelection::Applications(application),
                    None if !account.is_empty() => ContactSelection::Accounts(account),
                    None => ContactSelection::All,
                };
                let bad = |error| {
                    CommandError::Input(format!("{} cannot be read: {error}", message.display()))
                };
                let message = input_file::read_text(&message, MAX_MESSAGE_BYTES).map_err(bad)?;
                OwnerCommand::Contact(ContactRequest {
                    selection,
                    subject,
                    message,
                    is_dry_run: dry_run,
                })
            }
        })
    }
}

fn searchable(text: &str) -> Result<String, String> {
    if is_address_fragment(text) {
        Ok(text.to_owned())
    } else {
        Err(NOT_SEARCHABLE.into())
    }
}

fn list(listed: &Value) -> Exit {
    if let Some(next) = field(listed, "next").as_str() {
        printer::message(&format!("there are more: continue with --after {next}"));
    }
    table(items(listed, "accounts"), false)
}

fn contacted(view: &ContactOutcome) -> Exit {
    if !view.unowned.is_empty() {
        printer::message(&format!("no account owns {}", view.unowned.join(", ")));
    }
    if !view.mail_is_sent {
        printer::message("no mail server is configured: queued mail is not sent");
    }
    printer::data(&format!(
        "accounts: {}, queued mails: {}\n",
        view.accounts, view.queued
    ))
}

fn table(accounts: &[Value], are_deleted: bool) -> Exit {
    let row = |account: &Value| {
        let text = |name| cell(field(account, name));
        let or_default = |name| match field(account, name) {
            absent if absent.is_null() => "default".into(),
            kinds if kinds.as_array().is_some_and(Vec::is_empty) => "none".into(),
            value => cell(value),
        };
        let state = match (are_deleted, field(account, "suspended_at")) {
            (true, _) => "deleted",
            (false, Value::Null) => "active",
            (false, _) => "suspended",
        };
        let tier = or_default("tier");
        let notices = or_default("notices");
        let created = text("created_at");
        let applications = text("applications");
        vec![
            text("id"),
            text("email"),
            state.into(),
            tier,
            notices,
            created,
            applications,
        ]
    };
    let header = [
        "id",
        "email",
        "state",
        "tier",
        "notices",
        "created",
        "applications",
    ];
    printer::table(&header, accounts.iter().map(row))
}
