//! Commands on the messages of the status page: `scoregate status`.

use clap::{
    Subcommand,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    admin::command_problem::{CommandProblem, CommandResult},
    status::StatusMessages,
};
use scoregate_store::{IncidentState, MessageSubject};

use super::limits::default_limit;

/// A command for status page messages.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum StatusCommand {
    /// Open an incident, or add a message to an open incident.
    #[command(after_help = "Examples:\n  \
        scoregate status post 'Scores are late' --message 'We are looking into it.' --data-dir DIR\n  \
        scoregate status post --incident 1 --message 'We have found the cause.' --state identified --data-dir DIR\n\n\
        A new incident is `investigating` unless --state is set; an open incident keeps its state.")]
    Post {
        /// Title of a new incident.
        #[arg(required_unless_present = "incident", conflicts_with = "incident")]
        title: Option<String>,
        /// Number of an open incident.
        #[arg(long, value_name = "N")]
        incident: Option<u32>,
        /// Text of the message, up to 4,000 characters. Line breaks are kept.
        #[arg(long, value_name = "TEXT")]
        message: String,
        /// New state of the incident.
        #[arg(long, value_parser = open_states())]
        state: Option<IncidentState>,
    },
    /// Resolve an incident.
    #[command(after_help = "Example:\n  \
        scoregate status resolve 1 --message 'All scores are up to date.' --data-dir DIR")]
    Resolve {
        /// Number of the incident.
        incident: u32,
        /// Text of the last message.
        #[arg(long, value_name = "TEXT")]
        message: String,
    },
    /// List messages, newest first.
    #[command(after_help = "Example:\n  scoregate status list --data-dir DIR --json")]
    List {
        /// Maximum number of messages, in addition to the messages of open incidents.
        #[arg(long, default_value_t = default_limit(), value_name = "N")]
        #[serde(default = "default_limit")]
        limit: usize,
    },
}

impl StatusCommand {
    /// Whether the command changes the page.
    pub(in crate::admin) const fn is_change(&self) -> bool {
        match self {
            Self::Post { .. } | Self::Resolve { .. } => true,
            Self::List { .. } => false,
        }
    }

    pub(super) async fn perform(self, messages: &StatusMessages, actor: &str) -> CommandResult {
        let resolved = Some(IncidentState::Resolved);
        let (subject, state, message) = match self {
            Self::List { limit } => {
                return Ok(json!({ "messages": messages.list(limit).await? }));
            }
            Self::Resolve { incident, message } => {
                (MessageSubject::Known(incident.into()), resolved, message)
            }
            Self::Post { state, .. } if state == resolved => {
                return Err(CommandProblem::bad(
                    "state: write investigating, identified or monitoring",
                ));
            }
            Self::Post {
                title,
                incident,
                message,
                state,
            } => (subject(title, incident)?, state, message),
        };
        Ok(json!(messages.post(actor, subject, state, &message).await?))
    }
}

fn subject(title: Option<String>, incident: Option<u32>) -> CommandResult<MessageSubject> {
    match (title, incident) {
        (Some(title), None) => Ok(MessageSubject::New(title)),
        (None, Some(incident)) => Ok(MessageSubject::Known(incident.into())),
        _ => Err(CommandProblem::bad(
            "set title for a new incident, or incident for an open one",
        )),
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
