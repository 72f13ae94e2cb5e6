//! The gateway under test, its own or an external one; its keys; and its documents, which are found by its list of
//! models.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Runtime;

use super::client::{Client, Destination};
use super::fake_backend::FakeBackend;
use super::options::{Options, Profile};
use super::own_gateway::OwnGateway;
use super::plan::{Key, Plan, Spread};

const LIST: &str = "/api/v1/models";
/// Documents that every gateway has, most popular first. All tiers may request them.
const COMMON: [&str; 13] = [
    LIST,
    "/api/v1/index",
    "/api/v1/alerts",
    "/api/v1/models?period=24h",
    "/api/v1/models?period=7d",
    "/api/v1/providers",
    "/api/v1/incidents",
    "/api/v1/models?period=7d&sortBy=speed",
    "/api/v1/analytics/recommendations",
    "/api/v1/analytics/degradations",
    "/api/v1/analytics/provider-reliability",
    "/api/v1/analytics/transparency",
    "/api/v1/incidents?limit=100",
];
/// More models would add documents but no other kind of work.
const MAX_MODELS: usize = 100;
/// How many keys are tried to get that list.
const MAX_KEY_ATTEMPTS: usize = 5;

/// A gateway and what is known about it.
pub(crate) struct GatewayUnderTest {
    pub(crate) destination: Destination,
    pub(crate) keys: Vec<Key>,
    pub(crate) targets: Vec<String>,
    /// The process, if it is the bench's own.
    pub(crate) own: Option<OwnGateway>,
    /// The fake backend, if used.
    pub(crate) fake: Option<FakeBackend>,
}

impl GatewayUnderTest {
    /// Opens the gateway selected by options and profile.
    pub(crate) fn open(
        runtime: &Runtime,
        options: &Options,
        profile: Profile,
        keys_of_own: usize,
    ) -> Result<Self, String> {
        let (destination, keys, own, fake);
        if let Some(address) = &options.address {
            let file = options.keys.as_deref().ok_or("--address needs --keys")?;
            destination = Destination::new(address, options.h2, options.ca.as_deref())?;
            (keys, own, fake) = (read_keys(file)?, None, None);
        } else {
            fake =
                matches!(profile, Profile::HourChange | Profile::Outage).then(FakeBackend::start);
            let started = OwnGateway::start(runtime, fake.as_ref(), options.tls, keys_of_own);
            let authority = started.authority().map(|path| path.display().to_string());
            destination = Destination::new(&started.address(), options.h2, authority.as_deref())?;
            (keys, own) = (started.keys.clone(), Some(started));
        }
        let mut gateway = Self {
            destination,
            keys,
            targets: Vec::new(),
            own,
            fake,
        };
        gateway.targets = gateway.list_targets(runtime)?;
        Ok(gateway)
    }

    /// All documents, most popular first.
    fn list_targets(&self, runtime: &Runtime) -> Result<Vec<String>, String> {
        let mut status = 0;
        let mut body = Bytes::new();
        // A key may have no token left, for example after it was abused by a profile.
        for key in self.keys.iter().take(MAX_KEY_ATTEMPTS) {
            let answer = runtime.block_on(self.client().get(LIST, &key.text));
            (status, body) =
                answer.map_err(|error| format!("{}: {error}", self.destination.shown()))?;
            if status == 200 {
                break;
            }
        }
        let response: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let models = response["data"].as_array().filter(|_| status == 200);
        let models =
            models.ok_or_else(|| format!("{LIST} returned status {status} and no list"))?;
        // Ids that would need encoding are left out.
        let is_plain = |id: &&str| {
            id.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte))
        };
        let ids = models
            .iter()
            .filter_map(|model| model["id"].as_str())
            .filter(is_plain)
            .take(MAX_MODELS);
        let of_one = ids.flat_map(|id| {
            let detail = format!("/api/v1/models/{id}");
            [
                detail.clone(),
                format!("{detail}/history?period=7d"),
                format!("/api/v1/drift/{id}"),
            ]
        });
        Ok(COMMON
            .into_iter()
            .map(str::to_owned)
            .chain(of_one)
            .collect())
    }

    /// Requests every document once, as a free and as a paid caller.
    pub(crate) fn prime(&self, runtime: &Runtime) -> Result<(), String> {
        let client = self.client();
        for key in ["free", "pro"]
            .iter()
            .filter_map(|tier| self.keys.iter().find(|key| key.tier == *tier))
        {
            for target in &self.targets {
                let (status, _) = runtime.block_on(client.get(target, &key.text))?;
                if status != 200 {
                    return Err(format!("{target} returned status {status}"));
                }
            }
        }
        Ok(())
    }

    /// The plan of normal traffic.
    pub(crate) fn plan(&self, options: &Options, keys: Vec<Key>) -> Result<Arc<Plan>, String> {
        let tiers = options.tiers.clone().unwrap_or_default();
        self.plan_for(options, keys, tiers, options.conditional)
    }

    /// The plan of a single key, or of unknown keys.
    pub(crate) fn plan_without_tiers(
        &self,
        options: &Options,
        keys: Vec<Key>,
        conditional: f64,
    ) -> Result<Arc<Plan>, String> {
        self.plan_for(options, keys, BTreeMap::new(), conditional)
    }

    fn plan_for(
        &self,
        options: &Options,
        keys: Vec<Key>,
        tiers: BTreeMap<String, f64>,
        conditional: f64,
    ) -> Result<Arc<Plan>, String> {
        let documents = options.zipf_documents;
        let of_keys = options.zipf_keys;
        let spread = Spread {
            documents,
            keys: of_keys,
            tiers,
            conditional,
        };
        Plan::new(self.targets.clone(), keys, &spread, options.seed).map(Arc::new)
    }

    /// The requests per minute of a key, as reported by the gateway.
    pub(crate) fn minute_of(&self, runtime: &Runtime, key: &Key) -> Result<f64, String> {
        let (status, body) = runtime.block_on(self.client().get("/api/v1/me", &key.text))?;
        let response: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let limits = response["data"][0]["limits"].as_array();
        let minute =
            limits.and_then(|limits| limits.iter().find(|limit| limit["name"] == "minute"));
        let limit = minute.and_then(|minute| minute["limit"].as_f64());
        limit.ok_or_else(|| format!("/api/v1/me returned status {status} and no minute limit"))
    }

    fn client(&self) -> Client {
        Client::new(self.destination.clone(), 1, 1, Duration::from_secs(30))
    }
}

/// One line per key, optionally followed by a space and the tier.
fn read_keys(file: &Path) -> Result<Vec<Key>, String> {
    let text =
        std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut keys = Vec::new();
    for (number, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let (key, tier) = line.trim().split_once(' ').unwrap_or((line.trim(), "any"));
        if !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            // The line is not repeated: it may be a key with a typing error.
            return Err(format!(
                "{}, line {}: a key is visible ASCII",
                file.display(),
                number + 1
            ));
        }
        keys.push(Key {
            text: key.to_owned(),
            tier: tier.trim().to_owned(),
        });
    }
    Ok(keys)
}
