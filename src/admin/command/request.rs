//! Commands as requests of the side port, and back. The one place that knows its paths.

use http::Method;
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::admin::key_lines::{LineObject, read_json};
use crate::admin::query::QueryPairs;
use crate::json;
use crate::keys::ApplicationId;
use crate::store::AuditQuery;

use super::bodies::{
    ExpiryBody, ImportBody, LimitsBody, NewKey, NotesBody, RevokeBody, RotateBody, TierBody,
};
use super::{AdminCommand, CommandProblem};

const ROOT: &str = "/v1/applications";
const AUDIT: &str = "/v1/audit";
/// The largest body of a command.
const LARGEST_BODY: usize = 65_536;
/// The largest body of a batch of keys.
const LARGEST_BATCH: usize = 4 << 20;
/// How many keys a batch may have: as many as the leases of a running system can wait for.
pub const MOST_IN_A_BATCH: usize = 500;
/// How many are listed if nothing is said of it.
const USUAL_PAGE: usize = 100;

/// How large the body of a request for this path may be.
pub(in crate::admin) fn largest_body(path: &str) -> usize {
    if path == "/v1/applications/import" { LARGEST_BATCH } else { LARGEST_BODY }
}

impl AdminCommand {
    /// The request that asks for this command: method, target, body. Lines of an import that could not be read have no
    /// place in it.
    pub fn to_request(&self) -> (Method, String, Vec<u8>) {
        let get = |target: String| (Method::GET, target, Vec::new());
        match self {
            Self::Create(new) => (Method::POST, ROOT.into(), written(new)),
            Self::List { after, most } => get(format!("{ROOT}?most={most}{}", and("after", *after))),
            Self::Export { after, most } => get(format!("{ROOT}/export?most={most}{}", and("after", *after))),
            Self::Show(id) => get(format!("{ROOT}/{id}")),
            Self::Audit(AuditQuery { application, before, most }) => {
                let (of, older) = (and("application", *application), and("before", *before));
                get(format!("{AUDIT}?most={most}{of}{older}"))
            }
            Self::Import(lines) => {
                let raw =
                    |record| to_raw_value(&LineObject::of(record)).expect("texts and numbers make JSON");
                let keys = lines.iter().flatten().map(raw).collect();
                (Method::POST, format!("{ROOT}/import"), written(&ImportBody { keys }))
            }
            Self::Rotate { id, overlap_seconds, expires_at } => {
                let (overlap_seconds, expires_at) = (*overlap_seconds, expires_at.clone());
                post(*id, "rotate", &RotateBody { overlap_seconds, expires_at })
            }
            Self::Revoke { id, key } => post(*id, "revoke", &RevokeBody { key: key.clone() }),
            Self::SetTier { id, tier } => post(*id, "tier", &TierBody { tier: tier.clone() }),
            Self::SetLimits { id, minute, day } => {
                let (minute_limit, day_limit) = (minute.clone(), day.clone());
                post(*id, "limits", &LimitsBody { minute_limit, day_limit })
            }
            Self::SetExpiry { id, key, expires_at } => {
                let (key, expires_at) = (key.clone(), expires_at.clone());
                post(*id, "expiry", &ExpiryBody { key, expires_at })
            }
            Self::Describe { id, name, contact, note } => {
                let (name, contact, note) = (name.clone(), contact.clone(), note.clone());
                post(*id, "describe", &NotesBody { name, contact, note })
            }
        }
    }

    /// The command that a request asks for.
    pub fn from_request(
        method: &Method,
        path: &str,
        query: Option<&str>,
        body: &[u8],
    ) -> Result<Self, CommandProblem> {
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        match (method.as_str(), parts.as_slice()) {
            ("POST", ["v1", "applications"]) => Ok(Self::Create(read::<NewKey>(body)?)),
            ("GET", ["v1", "applications"]) => {
                let (after, most) = page(query)?;
                Ok(Self::List { after, most })
            }
            ("POST", ["v1", "applications", "import"]) => import(body),
            ("GET", ["v1", "applications", "export"]) => {
                let (after, most) = page(query)?;
                Ok(Self::Export { after, most })
            }
            ("GET", ["v1", "audit"]) => audit(query),
            ("GET", ["v1", "applications", id]) => Ok(Self::Show(known(id)?)),
            ("POST", ["v1", "applications", id, verb]) => change(known(id)?, verb, body),
            _ => Err(CommandProblem::not_found()),
        }
    }
}

fn change(id: ApplicationId, verb: &str, body: &[u8]) -> Result<AdminCommand, CommandProblem> {
    Ok(match verb {
        "rotate" => {
            let RotateBody { overlap_seconds, expires_at } = read(body)?;
            AdminCommand::Rotate { id, overlap_seconds, expires_at }
        }
        "revoke" => {
            let RevokeBody { key } = read(body)?;
            AdminCommand::Revoke { id, key }
        }
        "tier" => {
            let TierBody { tier } = read(body)?;
            AdminCommand::SetTier { id, tier }
        }
        "limits" => {
            let LimitsBody { minute_limit, day_limit } = read(body)?;
            AdminCommand::SetLimits { id, minute: minute_limit, day: day_limit }
        }
        "expiry" => {
            let ExpiryBody { key, expires_at } = read(body)?;
            AdminCommand::SetExpiry { id, key, expires_at }
        }
        "describe" => {
            let NotesBody { name, contact, note } = read(body)?;
            AdminCommand::Describe { id, name, contact, note }
        }
        _ => return Err(CommandProblem::not_found()),
    })
}

fn import(body: &[u8]) -> Result<AdminCommand, CommandProblem> {
    let ImportBody { keys } = read(body)?;
    if keys.len() > MOST_IN_A_BATCH {
        return Err(CommandProblem::bad(format!("a batch has at most {MOST_IN_A_BATCH} keys: send several")));
    }
    Ok(AdminCommand::Import(keys.iter().map(|key| read_json(key.get())).collect()))
}

fn audit(query: Option<&str>) -> Result<AdminCommand, CommandProblem> {
    let pairs = QueryPairs::read(query, &["application", "before", "most"])?;
    Ok(AdminCommand::Audit(AuditQuery {
        application: pairs.get("application").map(known).transpose()?,
        before: pairs.number("before")?,
        most: pairs.number("most")?.unwrap_or(USUAL_PAGE),
    }))
}

fn page(query: Option<&str>) -> Result<(Option<ApplicationId>, usize), CommandProblem> {
    let pairs = QueryPairs::read(query, &["after", "most"])?;
    Ok((pairs.get("after").map(known).transpose()?, pairs.number("most")?.unwrap_or(USUAL_PAGE)))
}

fn post(id: ApplicationId, verb: &str, body: &impl Serialize) -> (Method, String, Vec<u8>) {
    (Method::POST, format!("{ROOT}/{id}/{verb}"), written(body))
}

fn written(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("texts and numbers always make JSON")
}

fn and(name: &str, value: Option<impl std::fmt::Display>) -> String {
    value.map(|value| format!("&{name}={value}")).unwrap_or_default()
}

fn known(id: &str) -> Result<ApplicationId, CommandProblem> {
    id.parse().map_err(|error: crate::keys::BadId| CommandProblem::bad(error.to_string()))
}

fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, CommandProblem> {
    json::read(body).map_err(|bad| CommandProblem::bad(format!("the body cannot be read: {bad}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::FieldChange;

    #[test]
    fn a_command_written_as_a_request_is_read_back() {
        let id: ApplicationId = "app_0123456789a".parse().unwrap();
        let new = NewKey { name: "n".into(), tier: "pro".into(), day_limit: Some(7), ..NewKey::default() };
        let line = format!(r#"{{"sha256":"{}","name":"n","tier":"pro"}}"#, "0a".repeat(32));
        let (keep, remove) = (FieldChange::Keep, FieldChange::Remove);
        let ends = Some("2027-01-31T00:00:00Z".to_owned());
        for command in [
            AdminCommand::Create(new),
            AdminCommand::List { after: Some(id), most: 5 },
            AdminCommand::List { after: None, most: 5 },
            AdminCommand::Show(id),
            AdminCommand::Rotate { id, overlap_seconds: 60, expires_at: None },
            AdminCommand::Rotate { id, overlap_seconds: 60, expires_at: ends.clone() },
            AdminCommand::Revoke { id, key: None },
            AdminCommand::Revoke { id, key: Some("sg_live_abcd".into()) },
            AdminCommand::SetTier { id, tier: "teams".into() },
            AdminCommand::SetLimits { id, minute: FieldChange::Set(3), day: FieldChange::Keep },
            AdminCommand::SetLimits { id, minute: FieldChange::Keep, day: FieldChange::Remove },
            AdminCommand::SetExpiry { id, key: ends, expires_at: FieldChange::Remove },
            AdminCommand::SetExpiry { id, key: None, expires_at: FieldChange::Set("soon".into()) },
            AdminCommand::Describe { id, name: Some("n".into()), contact: keep, note: remove },
            AdminCommand::Audit(AuditQuery { application: Some(id), before: Some(9), most: 7 }),
            AdminCommand::Audit(AuditQuery { application: None, before: None, most: 7 }),
            AdminCommand::Import(vec![read_json(&line), read_json(&line)]),
            AdminCommand::Export { after: Some(id), most: 5 },
        ] {
            let (method, target, body) = command.to_request();
            let (path, query) =
                target.split_once('?').map_or((target.as_str(), None), |(path, query)| (path, Some(query)));
            assert_eq!(AdminCommand::from_request(&method, path, query, &body), Ok(command));
        }
    }

    #[test]
    fn what_is_no_command_is_refused_with_what_would_do() {
        let many = format!(r#"{{"keys":[{}]}}"#, vec!["0"; MOST_IN_A_BATCH + 1].join(","));
        for (method, path, body, status) in [
            (Method::GET, "/v1/applicationsx", "", 404),
            (Method::DELETE, "/v1/applications", "", 404),
            (Method::GET, "/v1/applications/", "", 400),
            (Method::GET, "/v1/applications/x", "", 400),
            (Method::POST, "/v1/applications", "{", 400),
            (Method::POST, "/v1/applications", r#"{"name":"a","tier":"pro","admin":true}"#, 400),
            (Method::POST, "/v1/applications/app_0123456789a/rotate/x", "{}", 404),
            (Method::POST, "/v1/applications/app_0123456789a/elevate", "{}", 404),
            (Method::POST, "/v1/applications/app_0123456789a/limits", r#"{"hour_limit":1}"#, 400),
            (Method::POST, "/v1/applications/app_0123456789a/limits", r#"{"day_limit":-1}"#, 400),
            (Method::POST, "/v1/applications/import", r#"{"keys":{}}"#, 400),
            (Method::POST, "/v1/applications/import", &many, 400),
            (Method::PUT, "/v1/applications/import", "", 404),
            (Method::POST, "/v1/audit", "", 404),
        ] {
            let refused = AdminCommand::from_request(&method, path, None, body.as_bytes()).unwrap_err();
            assert_eq!(refused.status, status, "{path} {body}");
        }
        for query in ["most=x", "before=-1", "after=app_0123456789a", "application=weather"] {
            let refused = AdminCommand::from_request(&Method::GET, AUDIT, Some(query), b"").unwrap_err();
            assert_eq!(refused.status, 400, "{query}");
        }
    }
}
