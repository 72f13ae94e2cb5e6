//! The gateway under test; its documents, which are found by its list of models; and plans of requests for them.

use std::sync::Arc;

use super::{
    client::Client,
    fake_backend::FakeBackend,
    options::Profile,
    own_gateway::OwnGateway,
    plan::{Key, Plan},
};

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
/// The share of conditional requests in normal traffic.
const CONDITIONAL: f64 = 0.3;

/// A gateway and what is known about it.
pub struct GatewayUnderTest {
    pub own: OwnGateway,
    targets: Vec<String>,
    /// The fake backend, if used.
    pub fake: Option<FakeBackend>,
}

impl GatewayUnderTest {
    /// Starts the gateway of a profile.
    pub fn start(profile: Profile, keys: usize) -> Self {
        let is_fake = matches!(profile, Profile::HourChange | Profile::Outage);
        let fake = is_fake.then(FakeBackend::start);
        let own = OwnGateway::start(fake.as_ref(), keys);
        let response = Client::new(own.address()).get(LIST, &own.keys[0].text);
        assert_eq!(response.status, 200, "{LIST}");
        let list: serde_json::Value = serde_json::from_slice(&response.body).unwrap();
        let models = list["data"].as_array().unwrap().iter();
        let of_models = models.flat_map(|model| {
            let id = model["id"].as_str().unwrap();
            [
                format!("/api/v1/models/{id}"),
                format!("/api/v1/models/{id}/history?period=7d"),
                format!("/api/v1/drift/{id}"),
            ]
        });
        let targets = COMMON.into_iter().map(str::to_owned).chain(of_models);
        Self {
            targets: targets.collect(),
            own,
            fake,
        }
    }

    /// Requests every document once, as a free and as a paid caller.
    pub fn prime(&self) {
        let mut client = Client::new(self.own.address());
        for tier in ["free", "pro"] {
            let key = self.own.keys.iter().find(|key| key.tier == tier);
            for target in &self.targets {
                let response = client.get(target, &key.unwrap().text);
                assert_eq!(response.status, 200, "{target}");
            }
        }
    }

    /// The plan of normal traffic.
    pub fn plan(&self) -> Arc<Plan> {
        self.plan_of(self.own.keys.clone(), CONDITIONAL)
    }

    /// The plan of these keys.
    pub fn plan_of(&self, keys: Vec<Key>, conditional: f64) -> Arc<Plan> {
        Arc::new(Plan {
            targets: self.targets.clone(),
            keys,
            conditional,
        })
    }
}
