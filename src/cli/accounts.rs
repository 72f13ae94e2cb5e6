//! `scoregate accounts`: manages the accounts of owners who signed up.
//!
//! Uses the Unix socket of a running gateway, or the store if no gateway runs on this machine.

use std::path::Path;

use serde_json::Value;

use crate::{
    admin::{AccountsCommand, AdminCommand},
    registry::{ContactOutcome, UnreachedOwner},
};

use super::{
    command_error::CommandOutcome,
    control::perform_once,
    group_args::GroupArgs,
    input_file::read_text,
    printer::{self, cell, field, items},
};

pub const AFTER_HELP: &str = include_str!("help/accounts.txt");

/// Maximum size of a message file. The message limit is lower, so a larger file is always refused.
const MAX_MESSAGE_BYTES: u64 = 32_768;

pub fn run(args: GroupArgs<AccountsCommand>) -> CommandOutcome {
    let GroupArgs {
        mut command,
        server,
        json,
    } = args;
    let config = server.settings()?;
    if let AccountsCommand::Contact(letter) = &mut command {
        letter.message = read_text(Path::new(&letter.message), MAX_MESSAGE_BYTES)?;
    }
    let show = shown_by(&command);
    let response = perform_once(&config, AdminCommand::Accounts(command))?;
    printer::answer(response, json, show)
}

/// The function that prints the response to a command.
fn shown_by(command: &AccountsCommand) -> fn(Value) -> anyhow::Result<()> {
    match command {
        AccountsCommand::List { .. } => |response| list(&response),
        AccountsCommand::Contact(_) => |response| printer::response(response, contacted),
        AccountsCommand::Export { .. } => |response| printer::json(&response),
        AccountsCommand::Delete { .. } => |response| table(&[response], true),
        AccountsCommand::Show { .. }
        | AccountsCommand::Suspend { .. }
        | AccountsCommand::Resume { .. }
        | AccountsCommand::SetTier { .. }
        | AccountsCommand::SetLimits { .. } => |response| table(&[response], false),
    }
}

fn list(listed: &Value) -> anyhow::Result<()> {
    if let Some(next) = field(listed, "next").as_str() {
        printer::message(&format!("more accounts follow: --after {next}"));
    }
    table(items(listed, "accounts"), false)
}

fn contacted(view: &ContactOutcome) -> anyhow::Result<()> {
    for UnreachedOwner { id, reason } in &view.unreached {
        printer::message(&format!("{id} cannot be reached: {reason}"));
    }
    if !view.mail_is_sent {
        printer::message("no mail server is configured: queued mail is not sent");
    }
    printer::data(&format!(
        "accounts: {}, queued emails: {}\n",
        view.accounts, view.queued
    ))
}

fn table(accounts: &[Value], are_deleted: bool) -> anyhow::Result<()> {
    let header = [
        "id",
        "email",
        "state",
        "tier",
        "limits",
        "notices",
        "created",
        "applications",
    ];
    printer::table(
        &header,
        accounts.iter().map(|account| row(account, are_deleted)),
    )
}

fn row(account: &Value, is_deleted: bool) -> Vec<String> {
    let state = match (is_deleted, field(account, "suspended_at")) {
        (true, _) => "deleted",
        (false, Value::Null) if field(account, "terms_version").is_null() => "invited",
        (false, Value::Null) => "active",
        (false, _) => "suspended",
    };
    vec![
        cell(field(account, "id")),
        cell(field(account, "email")),
        state.into(),
        or_default(field(account, "tier")),
        cell(field(account, "own_limits")),
        or_default(field(account, "notices")),
        cell(field(account, "created_at")),
        cell(field(account, "applications")),
    ]
}

fn or_default(value: &Value) -> String {
    if value.is_null() {
        "default".into()
    } else if value.as_array().is_some_and(Vec::is_empty) {
        "none".into()
    } else {
        cell(value)
    }
}
