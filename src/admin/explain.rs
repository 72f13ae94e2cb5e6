//! `POST /v1/requests/explain`: explains how this gateway would answer a request now. No unit is taken, and nothing is
//! fetched or recorded.

use std::net::{IpAddr, Ipv4Addr};

use clap::{ArgGroup, Args};
use http::{
    HeaderName, HeaderValue, Request,
    header::{AUTHORIZATION, HOST},
    request::Parts,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    gateway::{ExplainedKey, Gateway, Peer},
    registry::Registrar,
};
use scoregate_base::{clock::Wall, keys::ApplicationId};
use scoregate_store::{StoredApplication, StoredKey};

use super::command_problem::{CommandProblem, CommandResult};

/// Maximum number of applications that are read in one call. Leases wait in the meantime.
const PAGE: usize = 1_000;
/// Maximum number of keys that an error lists.
const MAX_LISTED: usize = 10;

/// A key with its application.
type ApplicationKey = (ApplicationId, StoredKey);

/// A request to explain.
#[derive(Clone, Debug, Args, Deserialize, Serialize)]
#[command(group = ArgGroup::new("caller").required(true).multiple(true))]
#[serde(deny_unknown_fields)]
pub struct ExplainBody {
    /// Method and target, such as `GET /api/v1/models`.
    #[arg(value_name = "REQUEST")]
    pub request: String,
    /// The first characters of the key; the rest is not sent.
    #[arg(long, value_name = "PREFIX", group = "caller")]
    pub key: Option<String>,
    /// The application; without --key its newest valid key is used.
    #[arg(long, value_name = "APP", group = "caller")]
    pub app: Option<ApplicationId>,
    /// A header field of the request, except for the key.
    #[arg(long, value_name = "NAME: VALUE")]
    #[serde(default)]
    pub header: Vec<String>,
    /// The address that the request comes from; loopback if absent.
    #[arg(long, value_name = "IP")]
    pub client: Option<IpAddr>,
}

/// Explains a request.
pub async fn explain(gateway: &Gateway, registrar: &Registrar, body: ExplainBody) -> CommandResult {
    let head = body.head()?;
    let StoredKey { digest, shown, .. } =
        body.stored_key(registrar, gateway.clock.now().wall).await?;
    let address = body.client.unwrap_or(Ipv4Addr::LOCALHOST.into());
    let key = ExplainedKey {
        digest,
        prefix: shown,
    };
    Ok(json!(gateway.explain(
        &head,
        &key,
        Peer {
            address,
            is_encrypted: false,
            is_tool_call: false
        }
    )))
}

impl ExplainBody {
    fn head(&self) -> CommandResult<Parts> {
        let (method, target) = self.request.split_once(' ').ok_or_else(bad_request)?;
        let (mut head, ()) = Request::builder()
            .method(method)
            .uri(target)
            .body(())
            .map_err(|_| bad_request())?
            .into_parts();
        for line in &self.header {
            let field = line.split_once(':').and_then(|(name, value)| {
                Some((
                    name.parse::<HeaderName>().ok()?,
                    HeaderValue::from_str(value.trim()).ok()?,
                ))
            });
            let (name, value) =
                field.ok_or_else(|| CommandProblem::bad("header: write each as `Name: value`"))?;
            if name == AUTHORIZATION || name == "x-api-key" {
                return Err(CommandProblem::bad(
                    "header: omit the key; select it with `key` or `app`",
                ));
            }
            head.headers.append(name, value);
        }
        head.headers
            .entry(HOST)
            .or_insert(HeaderValue::from_static("localhost"));
        Ok(head)
    }

    /// The key that the options select.
    async fn stored_key(&self, registrar: &Registrar, now: Wall) -> CommandResult<StoredKey> {
        let mut found = match self.app {
            Some(id) => self.fitting(registrar.show(id).await?).collect(),
            None if self.key.is_some() => self.all_fitting(registrar).await?,
            None => return Err(CommandProblem::bad("set key or app")),
        };
        if self.key.is_none() {
            found.sort_by_key(|(_, key)| (key.is_active(now), key.created_at));
            found.drain(..found.len().saturating_sub(1));
        }
        match <[_; 1]>::try_from(found) {
            Ok([(_, key)]) => Ok(key),
            Err(found) => Err(CommandProblem::bad(ambiguous(&found))),
        }
    }

    /// The matching keys of all applications.
    async fn all_fitting(&self, registrar: &Registrar) -> CommandResult<Vec<ApplicationKey>> {
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let page = registrar.list(after, PAGE).await?;
            for stored in page.applications {
                found.extend(self.fitting(stored));
            }
            after = page.next;
            if after.is_none() {
                return Ok(found);
            }
        }
    }

    fn fitting(&self, stored: StoredApplication) -> impl Iterator<Item = ApplicationKey> {
        let id = stored.id;
        let keys = stored.keys.into_iter();
        keys.filter(|key| self.fits(key)).map(move |key| (id, key))
    }

    /// Whether a key matches the prefix. The stored prefix of an imported key may be shorter than the given text.
    fn fits(&self, key: &StoredKey) -> bool {
        self.key.as_ref().is_none_or(|prefix: &String| {
            key.shown.starts_with(prefix)
                || (!key.shown.is_empty() && prefix.starts_with(&key.shown))
        })
    }
}

fn bad_request() -> CommandProblem {
    CommandProblem::bad("request: write method and target, such as `GET /api/v1/models`")
}

/// The problem with a prefix that matches no key or several keys.
fn ambiguous(found: &[ApplicationKey]) -> String {
    if found.is_empty() {
        return "no stored key begins with this text".into();
    }
    let listed: Vec<String> = found
        .iter()
        .take(MAX_LISTED)
        .map(|(id, key)| format!("{} of {id}", key.shown))
        .collect();
    format!(
        "{} keys begin with this text; write more characters, or add the application: {}",
        found.len(),
        listed.join(", ")
    )
}
