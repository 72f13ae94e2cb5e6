//! `scoregate status`: publishes incident updates on the status page.
//!
//! Over the Unix socket of a running gateway, or on the store if none runs on this machine.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use serde_json::Value;

use crate::admin::{AdminCommand, StatusCommand};
use scoregate_store::IncidentState;

use super::command_error::CommandOutcome;
use super::control::perform_once;
use super::exit::Exit;
use super::printer::{self, cell, field, items};
use super::serve::ServerArgs;

pub(super) const AFTER_HELP: &str = include_str!("help/status.txt");

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    #[command(subcommand)]
    action: StatusAction,
    #[command(flatten)]
    server: ServerArgs,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum StatusAction {
    /// Open an incident, or add a message to an open one.
    #[command(after_help = "Examples:\n  \
        scoregate status post 'Scores are late' --message 'We are looking into it.' --data-dir DIR\n  \
        scoregate status post --incident 1 --message 'We have found the cause.' --state identified --data-dir DIR\n\n\
        A new incident is `investigating` unless --state is set; an open one keeps its state.")]
    Post {
        /// Title of a new incident.
        #[arg(required_unless_present = "incident", conflicts_with = "incident")]
        title: Option<String>,
        /// Number of an open incident.
        #[arg(long, value_name = "N")]
        incident: Option<u64>,
        /// Text of the message, up to 4,000 characters. Line breaks are kept.
        #[arg(long, value_name = "TEXT")]
        message: String,
        /// State of the incident from now on.
        #[arg(long, value_parser = open_states())]
        state: Option<IncidentState>,
    },
    /// Resolve an incident.
    #[command(after_help = "Example:\n  \
        scoregate status resolve 1 --message 'All scores are up to date.' --data-dir DIR")]
    Resolve {
        /// Number of the incident.
        incident: u64,
        /// Text of the last message.
        #[arg(long, value_name = "TEXT")]
        message: String,
    },
    /// List messages, newest first.
    #[command(after_help = "Example:\n  scoregate status list --data-dir DIR --json")]
    List {
        /// Maximum number of rows, besides those of open incidents.
        #[arg(long, default_value_t = 100, value_name = "N")]
        limit: usize,
    },
}

pub(super) fn run(args: StatusArgs) -> CommandOutcome {
    let StatusArgs {
        action,
        server,
        json,
    } = args;
    let config = server.settings()?;
    let command = action.into_command();
    let is_list = matches!(command, StatusCommand::List { .. });
    Ok(
        match perform_once(&config, AdminCommand::Status(command))? {
            response if json => printer::json(&response),
            response if is_list => list(&response),
            response => posted(&response),
        },
    )
}

impl StatusAction {
    fn into_command(self) -> StatusCommand {
        match self {
            Self::Post {
                title,
                incident,
                message,
                state,
            } => match incident {
                Some(incident) => StatusCommand::Continue {
                    incident,
                    message,
                    state,
                },
                None => StatusCommand::Open {
                    title: title.unwrap_or_default(),
                    message,
                    state,
                },
            },
            Self::Resolve { incident, message } => StatusCommand::Resolve { incident, message },
            Self::List { limit } => StatusCommand::List { limit },
        }
    }
}

/// Parses the state of an open incident.
fn open_states() -> impl TypedValueParser<Value = IncidentState> {
    let states = PossibleValuesParser::new([
        PossibleValue::new("investigating").help("The cause is not known"),
        PossibleValue::new("identified").help("The cause is known"),
        PossibleValue::new("monitoring").help("A fix is in place and being monitored"),
    ]);
    states.try_map(|word| IncidentState::parse(&word).ok_or("unknown"))
}

fn posted(response: &Value) -> Exit {
    if field(response, "published") == false {
        printer::message(
            "the status page of this gateway is off: set site.status_page and restart it",
        );
    }
    let [incident, state] = ["incident", "state"].map(|name| cell(field(response, name)));
    printer::data(&format!("incident {incident}: {state}\n"))
}

fn list(listed: &Value) -> Exit {
    let row = |message: &Value| {
        let [incident, at, state, title, text] =
            ["incident", "at", "state", "title", "text"].map(|name| cell(field(message, name)));
        vec![incident, at, state, title, first_line(&text)]
    };
    let header = ["incident", "at", "state", "title", "message"];
    printer::table(&header, items(listed, "messages").iter().map(row))
}

/// The first line of a text, with a mark if there are more.
fn first_line(text: &str) -> String {
    match text.split_once('\n') {
        Some((first, more)) if !more.trim().is_empty() => format!("{} …", first.trim_end()),
        _ => text.trim_end().to_owned(),
    }
}
