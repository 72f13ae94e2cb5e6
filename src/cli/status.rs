//! `scoregate status`: publishes incident updates on the status page.
//!
//! Uses the Unix socket of a running gateway, or the store if no gateway runs on this machine.

use serde_json::Value;

use crate::admin::{AdminCommand, StatusCommand};

use super::{
    command_error::CommandOutcome,
    control::perform_once,
    group_args::GroupArgs,
    printer::{self, cell, field, items},
};

pub const AFTER_HELP: &str = include_str!("help/status.txt");

pub fn run(args: GroupArgs<StatusCommand>) -> CommandOutcome {
    let config = args.server.settings()?;
    let show: fn(Value) -> anyhow::Result<()> = match args.command {
        StatusCommand::List { .. } => |response| list(&response),
        StatusCommand::Post { .. } | StatusCommand::Resolve { .. } => |response| posted(&response),
    };
    let response = perform_once(&config, AdminCommand::Status(args.command))?;
    printer::answer(response, args.json, show)
}

fn posted(response: &Value) -> anyhow::Result<()> {
    if field(response, "published") == false {
        printer::message(
            "the status page of this gateway is off: set site.status_page and restart it",
        );
    }
    let [incident, state] = ["incident", "state"].map(|name| cell(field(response, name)));
    printer::data(&format!("incident {incident}: {state}\n"))
}

fn list(listed: &Value) -> anyhow::Result<()> {
    let header = ["incident", "at", "state", "title", "message"];
    printer::table(
        &header,
        items(listed, "messages").iter().map(|message: &Value| {
            let [incident, at, state, title, text] =
                ["incident", "at", "state", "title", "text"].map(|name| cell(field(message, name)));
            vec![incident, at, state, title, first_line(&text)]
        }),
    )
}

/// The first line of a text, with an ellipsis if more text follows.
fn first_line(text: &str) -> String {
    match text.split_once('\n') {
        Some((first, more)) if !more.trim().is_empty() => format!("{} …", first.trim_end()),
        _ => text.trim_end().to_owned(),
    }
}
