//! What can be done to applications and keys, as data: read from a request of the side port, written as one by the
//! command line, and performed in one place. So a running and a stopped system obey the same commands.

use std::time::Duration;

use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::Wall;
use crate::gateway::{NewApplication, Registrar, RegistrarError};
use crate::keys::ApplicationId;
use crate::store::{OwnLimits, StoreError};

use super::view::{ApplicationView, IssuedView, PageView};

const ROOT: &str = "/v1/applications";

/// Something to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is a command of `scoregate keys`, whose help says it")]
pub enum Command {
    Create(NewKey),
    List { after: Option<ApplicationId>, most: usize },
    Show(ApplicationId),
    Rotate { id: ApplicationId, overlap_seconds: u64 },
    Revoke { id: ApplicationId, key: Option<String> },
    SetTier { id: ApplicationId, tier: String },
}

/// A wish for a new application with its first key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the fields' names are the JSON's, documented in README and `keys create --help`"
)]
pub struct NewKey {
    pub name: String,
    pub tier: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minute_limit: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day_limit: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RotateBody {
    overlap_seconds: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RevokeBody {
    key: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TierBody {
    tier: String,
}

/// Why a command was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The HTTP status it has on the side port.
    pub status: u16,
    /// What is wrong and what would do.
    pub error: String,
}

impl Problem {
    fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status: status.as_u16(), error: error.into() }
    }

    /// The operator's input is wrong.
    pub fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    pub(super) fn forbidden(error: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, error)
    }

    pub(super) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "send the admin token as `Authorization: Bearer TOKEN`")
    }

    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there are /metrics, /healthz, /readyz and /v1/applications here")
    }

    /// Whether the operator can mend it.
    pub fn is_input(&self) -> bool {
        self.status < 500
    }
}

impl From<RegistrarError> for Problem {
    fn from(error: RegistrarError) -> Self {
        let status = match &error {
            RegistrarError::UnknownTier { .. }
            | RegistrarError::BadText(_)
            | RegistrarError::BadLimit
            | RegistrarError::BadExpiry => StatusCode::BAD_REQUEST,
            RegistrarError::NoSuchKey { .. }
            | RegistrarError::Store(StoreError::UnknownApplication(_) | StoreError::UnknownKey(_)) => {
                StatusCode::NOT_FOUND
            }
            RegistrarError::Store(StoreError::Exists(_)) => StatusCode::CONFLICT,
            RegistrarError::Store(
                StoreError::Unavailable { .. } | StoreError::Damaged { .. } | StoreError::Newer { .. },
            )
            | RegistrarError::NoRandomness(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string())
    }
}

/// Carries a command out, in the name of `who`.
pub async fn perform(registrar: &Registrar, command: Command, who: &str) -> Result<Value, Problem> {
    match command {
        Command::Create(new) => {
            let issued = registrar.create(who, new.into_wish()?).await?;
            json(&IssuedView::from(&issued))
        }
        Command::List { after, most } => json(&PageView::from(&registrar.list(after, most).await?)),
        Command::Show(id) => json(&ApplicationView::from(&registrar.show(id).await?)),
        Command::Rotate { id, overlap_seconds } => {
            let issued = registrar.rotate(who, id, Duration::from_secs(overlap_seconds)).await?;
            json(&IssuedView::from(&issued))
        }
        Command::Revoke { id, key } => {
            json(&ApplicationView::from(&registrar.revoke(who, id, key.as_deref()).await?))
        }
        Command::SetTier { id, tier } => {
            json(&ApplicationView::from(&registrar.set_tier(who, id, &tier).await?))
        }
    }
}

fn json(view: &impl Serialize) -> Result<Value, Problem> {
    serde_json::to_value(view)
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

impl NewKey {
    fn into_wish(self) -> Result<NewApplication, Problem> {
        let expires_at = match self.expires_at {
            None => None,
            Some(text) => Some(Wall::parse_rfc3339(&text).ok_or_else(|| {
                Problem::bad("expires_at has to be an instant such as 2027-01-31T00:00:00Z")
            })?),
        };
        let own = OwnLimits { minute: self.minute_limit, day: self.day_limit };
        Ok(NewApplication {
            name: self.name,
            tier: self.tier,
            own,
            contact: self.contact,
            note: self.note,
            expires_at,
        })
    }
}

impl Command {
    /// The request that asks for this command: method, target, body.
    pub fn to_request(&self) -> (Method, String, Vec<u8>) {
        let body = |value: &dyn Fn() -> serde_json::Result<Vec<u8>>| {
            value().expect("texts and numbers always make JSON")
        };
        match self {
            Self::Create(new) => (Method::POST, ROOT.into(), body(&|| serde_json::to_vec(new))),
            Self::List { after, most } => {
                let after = after.map(|id| format!("&after={id}")).unwrap_or_default();
                (Method::GET, format!("{ROOT}?most={most}{after}"), Vec::new())
            }
            Self::Show(id) => (Method::GET, format!("{ROOT}/{id}"), Vec::new()),
            Self::Rotate { id, overlap_seconds } => {
                let wish = RotateBody { overlap_seconds: *overlap_seconds };
                (Method::POST, format!("{ROOT}/{id}/rotate"), body(&|| serde_json::to_vec(&wish)))
            }
            Self::Revoke { id, key } => {
                let wish = RevokeBody { key: key.clone() };
                (Method::POST, format!("{ROOT}/{id}/revoke"), body(&|| serde_json::to_vec(&wish)))
            }
            Self::SetTier { id, tier } => {
                let wish = TierBody { tier: tier.clone() };
                (Method::POST, format!("{ROOT}/{id}/tier"), body(&|| serde_json::to_vec(&wish)))
            }
        }
    }

    /// The command that a request asks for.
    pub fn from_request(
        method: &Method,
        path: &str,
        query: Option<&str>,
        body: &[u8],
    ) -> Result<Self, Problem> {
        let rest = path.strip_prefix(ROOT).ok_or_else(Problem::not_found)?;
        let mut parts = rest.split('/').skip(1);
        let (id, verb) = (parts.next(), parts.next());
        let id = id
            .map(|id| id.parse::<ApplicationId>().map_err(|error| Problem::bad(error.to_string())))
            .transpose()?;
        if parts.next().is_some() || !(rest.is_empty() || rest.starts_with('/')) {
            return Err(Problem::not_found());
        }
        match (method.as_str(), id, verb) {
            ("POST", None, None) => Ok(Self::Create(read(body)?)),
            ("GET", None, None) => list(query.unwrap_or("")),
            ("GET", Some(id), None) => Ok(Self::Show(id)),
            ("POST", Some(id), Some("rotate")) => {
                let RotateBody { overlap_seconds } = read(body)?;
                Ok(Self::Rotate { id, overlap_seconds })
            }
            ("POST", Some(id), Some("revoke")) => {
                let RevokeBody { key } = read(body)?;
                Ok(Self::Revoke { id, key })
            }
            ("POST", Some(id), Some("tier")) => {
                let TierBody { tier } = read(body)?;
                Ok(Self::SetTier { id, tier })
            }
            (_, _, _) => Err(Problem::not_found()),
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| Problem::bad(format!("the body is not as it should be: {error}")))
}

fn list(query: &str) -> Result<Command, Problem> {
    let (mut after, mut most) = (None, 100);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("after", id)) => {
                after =
                    Some(id.parse().map_err(|error: crate::keys::BadId| Problem::bad(error.to_string()))?);
            }
            Some(("most", number)) => {
                most = number.parse().map_err(|_| Problem::bad("`most` has to be a number"))?;
            }
            Some(_) | None => return Err(Problem::bad("the query may have `after` and `most`")),
        }
    }
    Ok(Command::List { after, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_written_as_a_request_is_read_back() {
        let id: ApplicationId = "app_0123456789a".parse().unwrap();
        let new = NewKey { name: "n".into(), tier: "pro".into(), day_limit: Some(7), ..NewKey::default() };
        for command in [
            Command::Create(new),
            Command::List { after: Some(id), most: 5 },
            Command::List { after: None, most: 5 },
            Command::Show(id),
            Command::Rotate { id, overlap_seconds: 60 },
            Command::Revoke { id, key: None },
            Command::Revoke { id, key: Some("sg_live_abcd".into()) },
            Command::SetTier { id, tier: "teams".into() },
        ] {
            let (method, target, body) = command.to_request();
            let (path, query) =
                target.split_once('?').map_or((target.as_str(), None), |(path, query)| (path, Some(query)));
            assert_eq!(Command::from_request(&method, path, query, &body), Ok(command));
        }
    }

    #[test]
    fn what_is_no_command_is_refused_with_what_would_do() {
        for (method, path, body, status) in [
            (Method::GET, "/v1/applicationsx", "", 404),
            (Method::DELETE, "/v1/applications", "", 404),
            (Method::GET, "/v1/applications/x", "", 400),
            (Method::POST, "/v1/applications", "{", 400),
            (Method::POST, "/v1/applications", r#"{"name":"a","tier":"pro","admin":true}"#, 400),
            (Method::POST, "/v1/applications/app_0123456789a/rotate/x", "{}", 404),
        ] {
            let refused = Command::from_request(&method, path, None, body.as_bytes()).unwrap_err();
            assert_eq!(refused.status, status, "{path} {body}");
        }
    }
}
