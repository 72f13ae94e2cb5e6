//! `scoregate accounts`: the owners of applications who signed up.
//!
//! Over the Unix socket of a running gateway, or on the store if none runs on this machine.

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::Value;

use crate::admin::{AdminCommand, OwnerCommand, OwnerView, is_searchable};
use crate::keys::{ApplicationId, OwnerId};
use crate::store::OwnerQuery;

use super::control::{CommandTarget, MissingStore, block_on, report};
use super::exit::Exit;
use super::printer;
use super::serve::ServerArgs;

pub(super) const AFTER_HELP: &str = "Examples:\n  \
scoregate accounts list --email example.org --data-dir DIR\n  \
scoregate accounts suspend ID --data-dir DIR\n  \
scoregate accounts export ID --data-dir DIR > account.json\n\n\
DIR is the data directory of the server; --config FILE reads it from the configuration. ID is the id of an account, such as\n\
own_3kTMd9Qw0aB. Changes are recorded in the audit trail, without the e-mail address.";

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
        /// Only accounts whose e-mail address contains this text, in any case.
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
    #[command(after_help = "Example:\n  scoregate accounts show own_3kTMd9Qw0aB --data-dir DIR --json")]
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
    /// End a suspension. Revoked keys remain revoked; the owner creates new ones.
    #[command(after_help = "Example:\n  scoregate accounts resume own_3kTMd9Qw0aB --data-dir DIR")]
    Resume {
        /// The account.
        id: OwnerId,
    },
    /// Set the tier of an account's applications, present and future.
    #[command(after_help = "Examples:\n  \
        scoregate accounts set-tier own_3kTMd9Qw0aB pro --data-dir DIR\n  \
        scoregate accounts set-tier own_3kTMd9Qw0aB --default --data-dir DIR\n\n\
        With --default present applications keep their tier.")]
    SetTier {
        /// The account.
        id: OwnerId,
        /// The tier.
        #[arg(required_unless_present = "default", conflicts_with = "default")]
        tier: Option<String>,
        /// Use the default tier for future applications.
        #[arg(long)]
        default: bool,
    },
    /// Delete an account: close its applications, revoke their keys, and remove its personal data.
    #[command(after_help = "Example:\n  scoregate accounts delete own_3kTMd9Qw0aB --data-dir DIR\n\n\
        This cannot be undone. The audit trail and the usage remain, without personal data.")]
    Delete {
        /// The account.
        id: OwnerId,
    },
    /// Print an account with its applications and their audit records, as JSON.
    #[command(after_help = "Example:\n  \
        scoregate accounts export own_3kTMd9Qw0aB --data-dir DIR > account.json\n\n\
        The output has the account, its applications, and up to 1,000 audit records of each application.")]
    Export {
        /// The account.
        id: OwnerId,
    },
}

#[derive(Deserialize)]
struct ListedAccounts {
    accounts: Vec<OwnerView>,
    next: Option<String>,
}

pub(super) fn run(args: AccountsArgs) -> Exit {
    let AccountsArgs { action, server, json } = args;
    let config = match server.settings() {
        Ok(config) => config,
        Err(problems) => return printer::input_error(&problems.to_string()),
    };
    let command = action.into_command();
    let (is_list, is_export) =
        (matches!(command, OwnerCommand::List(_)), matches!(command, OwnerCommand::Export(_)));
    let response = block_on(async {
        let target = CommandTarget::find(&config, MissingStore::Refuse).await?;
        target.perform(AdminCommand::Owner(command)).await
    });
    match response {
        Ok(response) if json || is_export => printer::data(&format!("{response:#}\n")),
        Ok(response) if is_list => list(response),
        Ok(response) => shown(response),
        Err(error) => report(error),
    }
}

impl AccountsAction {
    fn into_command(self) -> OwnerCommand {
        match self {
            Self::List { email, application, after, limit } => {
                OwnerCommand::List(OwnerQuery { email, application, after, limit })
            }
            Self::Show { id } => OwnerCommand::Show(id),
            Self::Suspend { id } => OwnerCommand::Suspend(id),
            Self::Resume { id } => OwnerCommand::Resume(id),
            Self::SetTier { id, tier, .. } => OwnerCommand::SetTier { owner: id, tier },
            Self::Delete { id } => OwnerCommand::Delete(id),
            Self::Export { id } => OwnerCommand::Export(id),
        }
    }
}

fn searchable(text: &str) -> Result<String, String> {
    if is_searchable(text) {
        Ok(text.to_owned())
    } else {
        Err("use letters, digits and @ . _ + - only".into())
    }
}

fn list(response: Value) -> Exit {
    let listed: ListedAccounts = match serde_json::from_value(response) {
        Ok(listed) => listed,
        Err(error) => return invalid(&error),
    };
    if let Some(next) = &listed.next {
        printer::message(&format!("there are more: continue with --after {next}"));
    }
    table(&listed.accounts)
}

fn shown(response: Value) -> Exit {
    match serde_json::from_value(response) {
        Ok(view) => table(&[view]),
        Err(error) => invalid(&error),
    }
}

fn table(accounts: &[OwnerView]) -> Exit {
    let row = |view: &OwnerView| {
        let state = if view.suspended_at.is_some() { "suspended" } else { "active" };
        let tier = view.tier.clone().unwrap_or_else(|| "default".into());
        let applications = view.applications.join(" ");
        vec![view.id.clone(), view.email.clone(), state.into(), tier, view.created_at.clone(), applications]
    };
    let rows: Vec<Vec<String>> = accounts.iter().map(row).collect();
    printer::table(&["id", "email", "state", "tier", "created", "applications"], &rows)
}

fn invalid(error: &serde_json::Error) -> Exit {
    printer::fault(&anyhow::anyhow!("the server's response is invalid: {error}"))
}
