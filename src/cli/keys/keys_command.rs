//! The commands of `scoregate keys`.

use clap::{Args, Subcommand};

use crate::admin::{AdminCommand, KeysCommand};

use crate::{
    cli::{
        command_error::{CommandError, CommandOutcome},
        control::{CommandTarget, MissingStore, block_on},
        printer,
        serve::ServerArgs,
    },
    config::Config,
};

pub const AFTER_HELP: &str = include_str!("../help/keys.txt");

#[derive(Debug, Args)]
pub struct KeysArgs {
    #[command(subcommand)]
    action: KeysAction,
    #[command(flatten)]
    server: ServerArgs,
    /// Print JSON instead of a table.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum KeysAction {
    #[command(flatten)]
    Command(KeysCommand),
    /// Import keys from another system by their SHA-256.
    #[command(after_help = super::import::AFTER_HELP)]
    Import(super::import::KeysImportArgs),
    /// Export all keys in the format that `import` reads.
    #[command(after_help = super::export::AFTER_HELP)]
    Export(super::export::ExportArgs),
    /// Find keys of this service in files.
    #[command(after_help = super::scan::AFTER_HELP)]
    Scan(super::scan::ScanArgs),
}

pub fn run(args: KeysArgs) -> CommandOutcome {
    let KeysArgs {
        action,
        server,
        json,
    } = args;
    let is_scan = matches!(action, KeysAction::Scan(_));
    let config = server.settings().map_err(|problems| {
        // After a scan, the exit code for invalid input means that a key was found.
        if is_scan {
            CommandError::Fault(problems.into())
        } else {
            problems.into()
        }
    })?;
    match action {
        KeysAction::Command(command) => perform(&config, command, json),
        KeysAction::Import(args) => block_on(super::import::run(&config, args, json)),
        KeysAction::Export(args) => block_on(super::export::run(&config, args)),
        KeysAction::Scan(args) => super::scan::run(&config, &args, json),
    }
}

fn perform(config: &Config, command: KeysCommand, json: bool) -> CommandOutcome {
    let missing = if matches!(command, KeysCommand::Create(_)) {
        MissingStore::Create
    } else {
        MissingStore::Refuse
    };
    let usage_id = if let KeysCommand::Show { id, usage: true } = command {
        Some(id)
    } else {
        None
    };
    let show = super::show::shown_by(&command);
    let (response, used) = block_on(async {
        let target = CommandTarget::find(config, missing).await?;
        let response = target.perform(AdminCommand::Keys(command)).await?;
        let used = match usage_id {
            Some(id) => Some(super::shown_usage::fetch(config, id).await?),
            None => None,
        };
        Ok((response, used))
    })?;
    if json {
        return Ok(printer::json(&super::shown_usage::merged(response, used))?);
    }
    show(response)?;
    if let Some(used) = used {
        printer::response(used, super::shown_usage::show)?;
    }
    Ok(())
}
