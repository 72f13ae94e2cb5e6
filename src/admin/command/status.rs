//! Commands on the messages of the status page: `GET /v1/status`, `POST /v1/status` for a new incident,
//! `POST /v1/status/N` for more about it, `POST /v1/status/N/resolve`.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::admin::paths::STATUS;
use crate::admin::query::QueryPairs;
use crate::status::StatusMessages;
use scoregate_store::{IncidentState, MessageSubject};

use super::bodies::{read, to_json};
use super::problem::{CommandProblem, CommandResult};

const DEFAULT_LIMIT: usize = 100;

/// A command on the messages of the status page.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each is a command of `scoregate status`, documented in its help"
)]
pub enum StatusCommand {
    Open {
        title: String,
        message: String,
        state: Option<IncidentState>,
    },
    Continue {
        incident: u64,
        message: String,
        state: Option<IncidentState>,
    },
    Resolve {
        incident: u64,
        message: String,
    },
    List {
        limit: usize,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenBody {
    title: String,
    message: String,
    state: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ContinueBody {
    message: String,
    state: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResolveBody {
    message: String,
}

impl StatusCommand {
    /// Whether it changes the page.
    pub(in crate::admin) const fn is_change(&self) -> bool {
        match self {
            Self::Open { .. } | Self::Continue { .. } | Self::Resolve { .. } => true,
            Self::List { .. } => false,
        }
    }

    /// Converts the command to method, target and body.
    pub(super) fn to_request(&self) -> (Method, String, Vec<u8>) {
        let word = |state: &Option<IncidentState>| state.map(|state| state.word().to_owned());
        let post = |target: String, body| (Method::POST, target, body);
        match self {
            Self::Open {
                title,
                message,
                state,
            } => {
                let title = title.clone();
                let message = message.clone();
                post(
                    STATUS.into(),
                    to_json(&OpenBody {
                        title,
                        message,
                        state: word(state),
                    }),
                )
            }
            Self::Continue {
                incident,
                message,
                state,
            } => {
                let body = ContinueBody {
                    message: message.clone(),
                    state: word(state),
                };
                post(format!("{STATUS}/{incident}"), to_json(&body))
            }
            Self::Resolve { incident, message } => {
                let body = ResolveBody {
                    message: message.clone(),
                };
                post(format!("{STATUS}/{incident}/resolve"), to_json(&body))
            }
            Self::List { limit } => (Method::GET, format!("{STATUS}?most={limit}"), Vec::new()),
        }
    }

    /// Parses the command of a request for a path below `/v1/status`.
    pub(super) fn from_request(
        method: &Method,
        below: &[&str],
        query: Option<&str>,
        body: &[u8],
    ) -> CommandResult<Self> {
        match (method.as_str(), below) {
            ("GET", []) => {
                let pairs = QueryPairs::read(query, &["most"])?;
                Ok(Self::List {
                    limit: pairs.number("most")?.unwrap_or(DEFAULT_LIMIT),
                })
            }
            ("POST", []) => {
                let OpenBody {
                    title,
                    message,
                    state,
                } = read(body)?;
                Ok(Self::Open {
                    title,
                    message,
                    state: open_state(state)?,
                })
            }
            ("POST", [incident]) => {
                let ContinueBody { message, state } = read(body)?;
                Ok(Self::Continue {
                    incident: number(incident)?,
                    message,
                    state: open_state(state)?,
                })
            }
            ("POST", [incident, "resolve"]) => {
                let ResolveBody { message } = read(body)?;
                Ok(Self::Resolve {
                    incident: number(incident)?,
                    message,
                })
            }
            _ => Err(CommandProblem::not_found()),
        }
    }

    /// Performs the command.
    pub(super) async fn perform(self, messages: &StatusMessages, actor: &str) -> CommandResult {
        let (subject, state, message) = match self {
            Self::Open {
                title,
                message,
                state,
            } => (MessageSubject::New(title), state, message),
            Self::Continue {
                incident,
                message,
                state,
            } => (MessageSubject::Known(incident), state, message),
            Self::Resolve { incident, message } => (
                MessageSubject::Known(incident),
                Some(IncidentState::Resolved),
                message,
            ),
            Self::List { limit } => {
                return Ok(json!({ "messages": messages.list(limit).await? }));
            }
        };
        Ok(json!(messages.post(actor, subject, state, &message).await?))
    }
}

/// The state of an incident that is not resolved by this message.
fn open_state(word: Option<String>) -> CommandResult<Option<IncidentState>> {
    let Some(word) = word else { return Ok(None) };
    let state = IncidentState::parse(&word).filter(|state| *state != IncidentState::Resolved);
    let bad = || CommandProblem::bad("state must be investigating, identified or monitoring");
    state.map(Some).ok_or_else(bad)
}

fn number(text: &str) -> CommandResult<u64> {
    let number = text
        .parse()
        .ok()
        .filter(|number: &u64| i64::try_from(*number).is_ok());
    number.ok_or_else(|| {
        CommandProblem::bad("an incident is a number; `scoregate status list` shows it")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(method: &Method, target: &str, body: &[u8]) -> CommandResult<StatusCommand> {
        let (path, query) = target
            .split_once('?')
            .map_or((target, None), |(path, query)| (path, Some(query)));
        let below: Vec<&str> = path.trim_start_matches(STATUS).split('/').skip(1).collect();
        StatusCommand::from_request(method, &below, query, body)
    }

    #[test]
    fn a_status_command_survives_the_conversion_to_a_request_and_back() {
        let title = "Late".to_owned();
        let message = "One.\nTwo.".to_owned();
        let state = Some(IncidentState::Monitoring);
        for command in [
            StatusCommand::Open {
                title: title.clone(),
                message: message.clone(),
                state,
            },
            StatusCommand::Open {
                title,
                message: message.clone(),
                state: None,
            },
            StatusCommand::Continue {
                incident: 7,
                message: message.clone(),
                state,
            },
            StatusCommand::Continue {
                incident: 7,
                message: message.clone(),
                state: None,
            },
            StatusCommand::Resolve {
                incident: 7,
                message,
            },
            StatusCommand::List { limit: 5 },
        ] {
            let (method, target, body) = command.to_request();
            assert_eq!(parsed(&method, &target, &body), Ok(command));
        }
    }

    #[test]
    fn an_unknown_status_command_or_state_is_refused() {
        for (method, target, body, status) in [
            (Method::GET, "/v1/status/7", "", 404),
            (Method::GET, "/v1/status?limit=7", "", 400),
            (Method::POST, "/v1/status", "{", 400),
            (Method::POST, "/v1/status", r#"{"title":"a"}"#, 400),
            (
                Method::POST,
                "/v1/status",
                r#"{"title":"a","message":"b","state":"resolved"}"#,
                400,
            ),
            (Method::POST, "/v1/status/x", r#"{"message":"b"}"#, 400),
            (Method::POST, "/v1/status/-1", r#"{"message":"b"}"#, 400),
            (
                Method::POST,
                "/v1/status/18446744073709551615",
                r#"{"message":"b"}"#,
                400,
            ),
            (
                Method::POST,
                "/v1/status/7",
                r#"{"message":"b","title":"c"}"#,
                400,
            ),
            (
                Method::POST,
                "/v1/status/7/resolve",
                r#"{"message":"b","state":"monitoring"}"#,
                400,
            ),
            (
                Method::POST,
                "/v1/status/7/reopen",
                r#"{"message":"b"}"#,
                404,
            ),
            (Method::DELETE, "/v1/status/7", "", 404),
        ] {
            let refused = parsed(&method, target, body.as_bytes()).unwrap_err();
            assert_eq!(
                refused.status, status,
                "{method} {target} {body}: {}",
                refused.error
            );
        }
    }
}
