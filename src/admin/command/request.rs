//! Conversion between commands and requests of the side port, with their paths.

use http::Method;
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::admin::key_lines::{LineObject, read_json};
use crate::admin::paths::{NODES, SUSPECTS};
use crate::admin::query::{QueryPairs, parsed_id};
use scoregate_base::clock::Day;
use scoregate_base::keys::ApplicationId;
use scoregate_store::AuditQuery;

use super::bodies::{ImportBody, NewKey, read, to_json};
use super::{AdminCommand, OwnerCommand, StatusCommand};
use crate::admin::command_problem::{CommandProblem, CommandResult};

const ROOT: &str = "/v1/applications";
const AUDIT: &str = "/v1/audit";
const MAX_BODY_BYTES: usize = 65_536;
/// For a batch of keys.
const MAX_BATCH_BYTES: usize = 4 << 20;
/// Maximum keys in a batch. Quota leases of a running server wait while a batch is stored.
pub const MAX_BATCH: usize = 500;
const DEFAULT_LIMIT: usize = 100;

/// Maximum body size of a request for this path.
pub(in crate::admin) fn max_body_bytes(path: &str) -> usize {
    if path == "/v1/applications/import" {
        MAX_BATCH_BYTES
    } else {
        MAX_BODY_BYTES
    }
}

impl AdminCommand {
    /// Converts the command to method, target and body. Invalid lines of an import are left out.
    pub fn to_request(&self) -> (Method, String, Vec<u8>) {
        let get = |target: String| (Method::GET, target, Vec::new());
        match self {
            Self::Create(new) => (Method::POST, ROOT.into(), to_json(new)),
            Self::List { after, limit } => {
                get(format!("{ROOT}?most={limit}{}", optional("after", *after)))
            }
            Self::Export { after, limit } => get(format!(
                "{ROOT}/export?most={limit}{}",
                optional("after", *after)
            )),
            Self::Nodes => get(NODES.into()),
            Self::Suspects { days } => get(format!(
                "{SUSPECTS}?{}",
                optional("days", *days).trim_start_matches('&')
            )),
            Self::Evidence(id) => get(format!("{SUSPECTS}/{id}")),
            Self::Status(command) => command.to_request(),
            Self::Owner(command) => command.to_request(),
            Self::Show(id) => get(format!("{ROOT}/{id}")),
            Self::Requests { id, first, last } => {
                let first = optional("from", *first);
                let last = optional("to", *last);
                let query = format!("{first}{last}");
                get(format!(
                    "{ROOT}/{id}/requests?{}",
                    query.trim_start_matches('&')
                ))
            }
            Self::Audit(AuditQuery {
                application,
                before,
                limit,
                owner: _,
            }) => {
                let application = optional("application", *application);
                let before = optional("before", *before);
                get(format!("{AUDIT}?most={limit}{application}{before}"))
            }
            Self::Import(lines) => {
                let raw = |record| {
                    to_raw_value(&LineObject::of(record))
                        .expect("strings and numbers are valid JSON")
                };
                let keys = lines.iter().flatten().map(raw).collect();
                (
                    Method::POST,
                    format!("{ROOT}/import"),
                    to_json(&ImportBody { keys }),
                )
            }
            Self::Rotate(id, body) => post(*id, "rotate", body),
            Self::Revoke(id, body) => post(*id, "revoke", body),
            Self::SetTier(id, body) => post(*id, "tier", body),
            Self::SetLimits(id, body) => post(*id, "limits", body),
            Self::SetExpiry(id, body) => post(*id, "expiry", body),
            Self::Update { id, change } => post(*id, "describe", change),
        }
    }

    /// Parses the command of a request.
    pub fn from_request(
        method: &Method,
        path: &str,
        query: Option<&str>,
        body: &[u8],
    ) -> CommandResult<Self> {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        match (method.as_str(), parts.as_slice()) {
            ("POST", ["v1", "applications"]) => Ok(Self::Create(read::<NewKey>(body)?)),
            ("GET", ["v1", "applications"]) => {
                let (after, limit) = page(query)?;
                Ok(Self::List { after, limit })
            }
            ("POST", ["v1", "applications", "import"]) => import(body),
            ("GET", ["v1", "applications", "export"]) => {
                let (after, limit) = page(query)?;
                Ok(Self::Export { after, limit })
            }
            ("GET", ["v1", "audit"]) => audit(query),
            ("GET", ["v1", "nodes"]) => Ok(Self::Nodes),
            ("GET", ["v1", "suspects"]) => Ok(Self::Suspects {
                days: QueryPairs::read(query, &["days"])?.number("days")?,
            }),
            ("GET", ["v1", "suspects", id]) => Ok(Self::Evidence(parsed_id(id)?)),
            (_, ["v1", "status", below @ ..]) => {
                StatusCommand::from_request(method, below, query, body).map(Self::Status)
            }
            (_, ["v1", "accounts", below @ ..]) => {
                OwnerCommand::from_request(method, below, query, body).map(Self::Owner)
            }
            ("GET", ["v1", "applications", id]) => Ok(Self::Show(parsed_id(id)?)),
            ("GET", ["v1", "applications", id, "requests"]) => requests(parsed_id(id)?, query),
            ("POST", ["v1", "applications", id, action]) => change(parsed_id(id)?, action, body),
            _ => Err(CommandProblem::not_found()),
        }
    }
}

fn change(id: ApplicationId, action: &str, body: &[u8]) -> CommandResult<AdminCommand> {
    Ok(match action {
        "rotate" => AdminCommand::Rotate(id, read(body)?),
        "revoke" => AdminCommand::Revoke(id, read(body)?),
        "tier" => AdminCommand::SetTier(id, read(body)?),
        "limits" => AdminCommand::SetLimits(id, read(body)?),
        "expiry" => AdminCommand::SetExpiry(id, read(body)?),
        "describe" => AdminCommand::Update {
            id,
            change: read(body)?,
        },
        _ => return Err(CommandProblem::not_found()),
    })
}

fn import(body: &[u8]) -> CommandResult<AdminCommand> {
    let ImportBody { keys } = read(body)?;
    if keys.len() > MAX_BATCH {
        return Err(CommandProblem::bad(format!(
            "a batch has at most {MAX_BATCH} keys: send several batches"
        )));
    }
    Ok(AdminCommand::Import(
        keys.iter().map(|key| read_json(key.get())).collect(),
    ))
}

fn audit(query: Option<&str>) -> CommandResult<AdminCommand> {
    let pairs = QueryPairs::read(query, &["application", "before", "most"])?;
    Ok(AdminCommand::Audit(AuditQuery {
        application: pairs.id("application")?,
        owner: None,
        before: pairs.number("before")?,
        limit: pairs.number("most")?.unwrap_or(DEFAULT_LIMIT),
    }))
}

fn requests(id: ApplicationId, query: Option<&str>) -> CommandResult<AdminCommand> {
    let pairs = QueryPairs::read(query, &["from", "to"])?;
    let day = |name| {
        let bad = || CommandProblem::bad(format!("`{name}` must be a day such as 2027-01-31"));
        pairs
            .get(name)
            .map(|text| Day::parse(text).ok_or_else(bad))
            .transpose()
    };
    Ok(AdminCommand::Requests {
        id,
        first: day("from")?,
        last: day("to")?,
    })
}

fn page(query: Option<&str>) -> CommandResult<(Option<ApplicationId>, usize)> {
    let pairs = QueryPairs::read(query, &["after", "most"])?;
    Ok((
        pairs.id("after")?,
        pairs.number("most")?.unwrap_or(DEFAULT_LIMIT),
    ))
}

fn post(id: ApplicationId, action: &str, body: &impl Serialize) -> (Method, String, Vec<u8>) {
    (Method::POST, format!("{ROOT}/{id}/{action}"), to_json(body))
}

fn optional(name: &str, value: Option<impl std::fmt::Display>) -> String {
    value
        .map(|value| format!("&{name}={value}"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::{ExpiryBody, LimitsBody, RevokeBody, RotateBody, TierBody};
    use crate::registry::{DescriptionChange, FieldChange};

    /// Commands that change one application, and its lists, with each form of their parameters.
    fn commands() -> Vec<AdminCommand> {
        let id: ApplicationId = "app_0123456789a".parse().unwrap();
        let url = Some("https://example.org".to_owned());
        let new = NewKey {
            name: "n".into(),
            tier: "pro".into(),
            day_limit: Some(7),
            url,
            ..NewKey::default()
        };
        let remove = FieldChange::Remove;
        let expiry = Some("2027-01-31T00:00:00Z".to_owned());
        let rotate = |key_name, expires_at| {
            AdminCommand::Rotate(
                id,
                RotateBody {
                    overlap_seconds: 60,
                    key_name,
                    expires_at,
                },
            )
        };
        let limits = |minute_limit, day_limit, until| {
            AdminCommand::SetLimits(
                id,
                LimitsBody {
                    minute_limit,
                    day_limit,
                    until,
                },
            )
        };
        vec![
            AdminCommand::Create(new),
            AdminCommand::List {
                after: Some(id),
                limit: 5,
            },
            AdminCommand::List {
                after: None,
                limit: 5,
            },
            AdminCommand::Show(id),
            rotate(None, None),
            rotate(Some("Station".into()), expiry.clone()),
            AdminCommand::Revoke(id, RevokeBody { key: None }),
            AdminCommand::Revoke(
                id,
                RevokeBody {
                    key: Some("sg_live_abcd".into()),
                },
            ),
            AdminCommand::SetTier(
                id,
                TierBody {
                    tier: "teams".into(),
                },
            ),
            limits(FieldChange::Set(3), FieldChange::Keep, expiry.clone()),
            limits(FieldChange::Keep, FieldChange::Remove, None),
            AdminCommand::SetExpiry(
                id,
                ExpiryBody {
                    key: expiry,
                    expires_at: FieldChange::Remove,
                },
            ),
            AdminCommand::SetExpiry(
                id,
                ExpiryBody {
                    key: None,
                    expires_at: FieldChange::Set("soon".into()),
                },
            ),
            AdminCommand::Update {
                id,
                change: DescriptionChange {
                    name: Some("n".into()),
                    url: remove.clone(),
                    note: remove,
                    ..DescriptionChange::default()
                },
            },
            AdminCommand::Update {
                id,
                change: DescriptionChange {
                    url: FieldChange::Set("https://example.org".into()),
                    ..DescriptionChange::default()
                },
            },
        ]
    }

    /// Commands that read, and those on several applications.
    fn readings() -> Vec<AdminCommand> {
        let id: ApplicationId = "app_0123456789a".parse().unwrap();
        let line = format!(
            r#"{{"sha256":"{}","name":"n","tier":"pro"}}"#,
            "0a".repeat(32)
        );
        vec![
            AdminCommand::Requests {
                id,
                first: Day::parse("2027-01-01"),
                last: Day::parse("2027-01-31"),
            },
            AdminCommand::Requests {
                id,
                first: None,
                last: Day::parse("2027-01-31"),
            },
            AdminCommand::Requests {
                id,
                first: None,
                last: None,
            },
            AdminCommand::Audit(AuditQuery {
                application: Some(id),
                before: Some(9),
                limit: 7,
                owner: None,
            }),
            AdminCommand::Audit(AuditQuery {
                limit: 7,
                ..AuditQuery::default()
            }),
            AdminCommand::Import(vec![read_json(&line), read_json(&line)]),
            AdminCommand::Export {
                after: Some(id),
                limit: 5,
            },
        ]
    }

    #[test]
    fn a_command_survives_the_conversion_to_a_request_and_back() {
        for command in [commands(), readings()].concat() {
            let (method, target, body) = command.to_request();
            let (path, query) = target
                .split_once('?')
                .map_or((target.as_str(), None), |(path, query)| (path, Some(query)));
            assert_eq!(
                AdminCommand::from_request(&method, path, query, &body),
                Ok(command)
            );
        }
    }

    #[test]
    fn an_unknown_command_or_an_invalid_body_is_refused() {
        let many = format!(r#"{{"keys":[{}]}}"#, vec!["0"; MAX_BATCH + 1].join(","));
        for (method, path, body, status) in [
            (Method::GET, "/v1/applicationsx", "", 404),
            (Method::DELETE, "/v1/applications", "", 404),
            (Method::GET, "/v1/applications/", "", 400),
            (Method::GET, "/v1/applications/x", "", 400),
            (Method::POST, "/v1/applications", "{", 400),
            (
                Method::POST,
                "/v1/applications",
                r#"{"name":"a","tier":"pro","admin":true}"#,
                400,
            ),
            (
                Method::POST,
                "/v1/applications/app_0123456789a/rotate/x",
                "{}",
                404,
            ),
            (
                Method::POST,
                "/v1/applications/app_0123456789a/elevate",
                "{}",
                404,
            ),
            (
                Method::POST,
                "/v1/applications/app_0123456789a/limits",
                r#"{"hour_limit":1}"#,
                400,
            ),
            (
                Method::POST,
                "/v1/applications/app_0123456789a/limits",
                r#"{"day_limit":-1}"#,
                400,
            ),
            (
                Method::POST,
                "/v1/applications/import",
                r#"{"keys":{}}"#,
                400,
            ),
            (Method::POST, "/v1/applications/import", &many, 400),
            (Method::PUT, "/v1/applications/import", "", 404),
            (
                Method::POST,
                "/v1/applications/app_0123456789a/requests",
                "{}",
                404,
            ),
            (
                Method::GET,
                "/v1/applications/app_0123456789a/requests/x",
                "",
                404,
            ),
            (Method::POST, "/v1/audit", "", 404),
            (Method::GET, "/metrics/", "", 404),
            (Method::GET, "/v1/logs", "", 404),
            (Method::GET, "/v1/cache/purge", "", 404),
            (Method::GET, "/v1", "", 404),
            (Method::GET, "", "", 404),
        ] {
            let refused =
                AdminCommand::from_request(&method, path, None, body.as_bytes()).unwrap_err();
            assert_eq!(refused.status, status, "{path} {body}");
        }
        for query in [
            "most=x",
            "before=-1",
            "after=app_0123456789a",
            "application=weather",
        ] {
            let refused =
                AdminCommand::from_request(&Method::GET, AUDIT, Some(query), b"").unwrap_err();
            assert_eq!(refused.status, 400, "{query}");
        }
        let requests = "/v1/applications/app_0123456789a/requests";
        for query in ["from=x", "to=2027-02-30", "day=2027-01-31"] {
            let refused =
                AdminCommand::from_request(&Method::GET, requests, Some(query), b"").unwrap_err();
            assert_eq!(refused.status, 400, "{query}");
        }
    }
}
