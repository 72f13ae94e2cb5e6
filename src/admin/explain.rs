//! `POST /v1/explain`: how this gateway would answer a request now. Takes, fetches and records nothing.

use std::net::{IpAddr, Ipv4Addr};

use http::header::{AUTHORIZATION, HOST};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::gateway::{ExplainedKey, Gateway, Peer};
use crate::registry::Registrar;
use scoregate_base::clock::Wall;
use scoregate_base::json;
use scoregate_base::keys::ApplicationId;
use scoregate_store::StoredKey;

use super::command_problem::{CommandProblem, CommandResult};
use super::query::parsed_id;

/// Applications that are read at once: leases wait meanwhile.
const PAGE: usize = 1_000;
/// Keys that an error lists.
const MAX_LISTED: usize = 10;

/// A request to explain.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainBody {
    /// Method and target, such as `GET /api/v1/models`.
    pub request: String,
    /// Header fields, such as `Accept-Encoding: gzip`.
    #[serde(default)]
    pub headers: Vec<String>,
    /// The first characters of its key. The newest valid key of the application if absent.
    pub key: Option<String>,
    /// The application of its key.
    pub application: Option<String>,
    /// The address that it comes from, as the gateway sees it; loopback if absent.
    pub client: Option<IpAddr>,
}

/// Explains a request.
pub(super) async fn explain(
    gateway: &Gateway,
    registrar: &Registrar,
    body: &[u8],
) -> CommandResult {
    let body: ExplainBody = json::read(body).map_err(|bad| CommandProblem::bad(bad.to_string()))?;
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
        let bad = || {
            CommandProblem::bad("request: write method and target, such as `GET /api/v1/models`")
        };
        let (method, target) = self.request.split_once(' ').ok_or_else(bad)?;
        let (mut head, ()) = Request::builder()
            .method(method)
            .uri(target)
            .body(())
            .map_err(|_| bad())?
            .into_parts();
        for line in &self.headers {
            let field = line.split_once(':').and_then(|(name, value)| {
                Some((
                    name.parse::<HeaderName>().ok()?,
                    HeaderValue::from_str(value.trim()).ok()?,
                ))
            });
            let (name, value) =
                field.ok_or_else(|| CommandProblem::bad("headers: write each as `Name: value`"))?;
            if name == AUTHORIZATION || name == "x-api-key" {
                return Err(CommandProblem::bad(
                    "headers: leave out the key; `key` or `application` names it",
                ));
            }
            head.headers.append(name, value);
        }
        head.headers
            .entry(HOST)
            .or_insert(HeaderValue::from_static("localhost"));
        Ok(head)
    }

    /// The key that is meant.
    async fn stored_key(&self, registrar: &Registrar, now: Wall) -> CommandResult<StoredKey> {
        let mut found = Vec::new();
        let keys = |application: ApplicationId, keys: Vec<StoredKey>| {
            keys.into_iter()
                .filter(|key| self.fits(key))
                .map(move |key| (application, key))
        };
        match (&self.application, &self.key) {
            (Some(id), _) => {
                let stored = registrar.show(parsed_id(id)?).await?;
                found.extend(keys(stored.id, stored.keys));
            }
            (None, Some(_)) => {
                let mut after = None;
                loop {
                    let page = registrar.list(after, PAGE).await?;
                    found.extend(
                        page.applications
                            .into_iter()
                            .flat_map(|stored| keys(stored.id, stored.keys)),
                    );
                    after = page.next;
                    if after.is_none() {
                        break;
                    }
                }
            }
            (None, None) => return Err(CommandProblem::bad("send key or application")),
        }
        if self.key.is_none() {
            found.sort_by_key(|(_, key)| (key.is_active(now), key.created_at));
            found.drain(..found.len().saturating_sub(1));
        }
        let listed = found
            .iter()
            .take(MAX_LISTED)
            .map(|(id, key)| format!("{} of {id}", key.shown));
        let listed: Vec<String> = listed.collect();
        match <[_; 1]>::try_from(found) {
            Ok([(_, key)]) => Ok(key),
            Err(none) if none.is_empty() => {
                Err(CommandProblem::bad("no stored key begins with that"))
            }
            Err(several) => Err(CommandProblem::bad(format!(
                "{} keys begin with that; write more of it, or the application too: {}",
                several.len(),
                listed.join(", ")
            ))),
        }
    }

    /// Whether a key is meant. An imported key may be known by fewer characters than the operator has.
    fn fits(&self, key: &StoredKey) -> bool {
        let is_meant = |prefix: &String| {
            key.shown.starts_with(prefix)
                || (!key.shown.is_empty() && prefix.starts_with(&key.shown))
        };
        self.key.as_ref().is_none_or(is_meant)
    }
}
