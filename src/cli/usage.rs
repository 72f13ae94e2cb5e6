//! `scoregate usage`: exports the usage of a month, one day at a time.
//!
//! Uses the Unix socket of a running gateway, or the store if no gateway runs on this machine.

use anyhow::Context as _;

use crate::{
    admin::{AdminCommand, UsageExport, UsageExportCommand},
    config::Config,
};
use scoregate_store::UsageTotal;

use super::{
    command_error::CommandOutcome,
    control::{CommandTarget, MissingStore, block_on},
    group_args::GroupArgs,
    printer,
};

pub const AFTER_HELP: &str = include_str!("help/usage.txt");

pub fn run(args: GroupArgs<UsageExportCommand>) -> CommandOutcome {
    let config = args.server.settings()?;
    block_on(export(&config, args.command, args.json))
}

async fn export(config: &Config, command: UsageExportCommand, is_json: bool) -> CommandOutcome {
    let UsageExportCommand::Export { month, mut day } = command;
    let target = CommandTarget::find(config, MissingStore::Refuse).await?;
    let (mut text, line): (_, fn(&_) -> _) = if is_json {
        (String::new(), UsageTotal::json)
    } else {
        (UsageTotal::CSV_HEAD.into(), UsageTotal::csv)
    };
    loop {
        let month = month.clone();
        let command = AdminCommand::Usage(UsageExportCommand::Export { month, day });
        let response = target.perform(command).await?;
        let page: UsageExport =
            serde_json::from_value(response).context("the server's response is invalid")?;
        if let Some(is_closed) = page.is_closed {
            let digest = page.sha256.unwrap_or_else(|| "none yet".into());
            printer::message(&format!(
                "month closed: {is_closed}; SHA-256 of its lines as JSON: {digest}"
            ));
        }
        text.extend(page.lines.iter().map(line));
        printer::data(&text)?;
        text.clear();
        day = page.next;
        if day.is_none() {
            return Ok(());
        }
    }
}
