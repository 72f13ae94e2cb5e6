//! Rights of tiers: the requests and fields that each tier may have, on every path on which data leaves the gateway.

use std::{collections::BTreeMap, time::Duration};

use scoregate::config::{Config, read_text, resolve};
use scoregate_base::routes::{Endpoint, Param, Period};
use serde_json::{Value, json};

use crate::{
    backend::{Act, Received, json as answer},
    balances::wide,
    client::Response,
    world::{Customer, World},
};

pub const SETTINGS: &str = r#"
guard.per_minute = 1000000

[endpoints.prices]
path = "/prices"
summary = "Prices of all models."
parameters = ["period"]
fields = [
    { name = "id", type = "string", meaning = "Identifier of the model." },
    { name = "margin", type = "number", meaning = "Margin.", paid = true },
    { name = "seller", type = "object", meaning = "Seller.", fields = [
        { name = "name", type = "string", meaning = "Name." },
        { name = "rebate", type = "number", meaning = "Rebate.", paid = true },
    ] },
]
[freshness.prices]
ttl = "5m"
stale_while_revalidate = "1s"

[tiers.free]
minute = 1
day = 10
paid = false
[tiers.narrow]
minute = 60
day = 1000
paid = true
periods = ["24h", "7d"]
history = "24h"
endpoints = ["models", "model", "history", "prices"]
fields = []
[tiers.pro]
minute = 60
day = 10000
paid = true
[tiers.seller]
minute = 60
day = 5000
paid = true
incidents = "7d"
fields = ["model.latestScore", "prices.seller.rebate"]
[tiers.trial]
minute = 1
day = 20
paid = false
fields = ["prices.margin", "prices.seller.rebate"]
"#;

/// A tier as the test expects it.
struct Expected {
    tier: &'static str,
    periods: &'static [Period],
    history: Period,
    incidents: Period,
    endpoints: Option<&'static [&'static str]>,
    fields: &'static [&'static str],
}

const ALL: &[Period] = &[Period::Latest, Period::Day, Period::Week, Period::Month];
const NOT_LATEST: &[Period] = &[Period::Day, Period::Week, Period::Month];
/// The fields that only some callers see: name, value in the data, and endpoint.
const RESERVED: [(&str, &str, &str); 3] = [
    ("latestScore", "7.5", "model"),
    ("margin", "7.125", "prices"),
    ("rebate", "7.25", "prices"),
];
/// The tier that sees the most fields is first, so that requests of the others use its tags.
const TIERS: [Expected; 5] = [
    PRO,
    Expected {
        tier: "free",
        periods: NOT_LATEST,
        ..PRO
    }
    .with(&[]),
    Expected {
        tier: "narrow",
        periods: &[Period::Day, Period::Week],
        history: Period::Day,
        endpoints: Some(&["models", "model", "history", "prices"]),
        ..PRO
    }
    .with(&[]),
    Expected {
        tier: "seller",
        incidents: Period::Week,
        ..PRO
    }
    .with(&["latestScore", "rebate"]),
    Expected {
        tier: "trial",
        periods: NOT_LATEST,
        ..PRO
    }
    .with(&["margin", "rebate"]),
];
const PRO: Expected = Expected {
    tier: "pro",
    periods: ALL,
    history: Period::Month,
    incidents: Period::Month,
    endpoints: None,
    fields: &["latestScore", "margin", "rebate"],
};

impl Expected {
    const fn with(self, fields: &'static [&'static str]) -> Self {
        Self { fields, ..self }
    }

    /// The reserved fields of an endpoint that the tier sees.
    fn fields_of(&self, endpoint: &str) -> Vec<&'static str> {
        let of_endpoint = RESERVED.iter().filter(|(.., of)| *of == endpoint);
        of_endpoint
            .map(|(name, ..)| *name)
            .filter(|name| self.fields.contains(name))
            .collect()
    }

    fn may(&self, endpoint: &str) -> bool {
        self.endpoints
            .is_none_or(|endpoints| endpoints.contains(&endpoint))
    }

    /// The periods that the tier may request from an endpoint.
    fn periods_of(&self, endpoint: &str) -> Vec<Period> {
        let longest = match endpoint {
            "history" => self.history,
            "incidents" => self.incidents,
            _ => Period::Month,
        };
        self.periods
            .iter()
            .copied()
            .filter(|period| *period <= longest)
            .collect()
    }
}

fn prices(margin: &str) -> Act {
    answer(&format!(
        r#"{{"generated_at":"2026-11-21T12:00:00Z","data":[{{"margin":{margin},"id":"atlas","undeclared":{margin},"seller":{{"rebate":7.25,"name":"a"}}}}]}}"#
    ))
}

/// Data whose reserved fields have unique values.
pub fn backend(received: &Received) -> Act {
    let data = if received.target().contains("/prices") {
        r#"[{"margin":7.125,"id":"atlas","undeclared":7.375,"seller":{"rebate":7.25,"name":"a","x":2}}]"#
    } else if received.target().ends_with("/models/atlas") {
        r#"[{"id":"atlas","latestScore":7.5,"currentScore":80.25}]"#
    } else {
        r#"[{"id":"atlas","currentScore":80.25}]"#
    };
    answer(&format!(
        r#"{{"generated_at":"2026-11-21T12:00:00Z","data":{data}}}"#
    ))
}

fn settings(text: &str) -> Config {
    resolve(
        &read_text(&format!(
            "{text}\n[upstream]\nurl = \"http://127.0.0.1:4000\""
        ))
        .unwrap(),
    )
    .unwrap()
}

/// A request of the table: the requested document, and the rights of the tier.
struct Asked<'a> {
    world: &'a World,
    customer: &'a Customer,
    expected: &'a Expected,
    endpoint: &'a Endpoint,
    period: Option<Period>,
    coding: &'a str,
}

/// Entity tags of forms, by document and encoding, and by the fields in the form.
type Tags = BTreeMap<(String, String), BTreeMap<Vec<&'static str>, String>>;

impl Asked<'_> {
    fn takes_a_period(&self) -> bool {
        self.endpoint.takes.contains(&Param::Period)
    }

    fn allowed(&self) -> Vec<Period> {
        self.expected.periods_of(self.endpoint.name)
    }

    fn may(&self) -> bool {
        self.expected.may(self.endpoint.name)
            && self.period.is_none_or(|one| self.allowed().contains(&one))
    }

    fn target(&self) -> String {
        let path = self.endpoint.documented_path().replace("{id}", "atlas");
        self.period.map_or(path.clone(), |period| {
            format!("{path}?period={}", period.word())
        })
    }

    /// Only the tier that sees all reserved fields gets undeclared fields.
    fn sees_undeclared(&self) -> bool {
        self.expected.tier == "pro" && self.endpoint.name == "prices"
    }

    /// Sends the request, and checks the status and the price: units of minute and day, tokens of the guard.
    async fn sent(&self, method: &str, tag: &str, status: u16) -> Response {
        let about = format!(
            "{} {method} {} {} {tag}",
            self.expected.tier,
            self.target(),
            self.coding
        );
        let request = self
            .world
            .request(method, &self.target())
            .key(&self.customer.key);
        let request = request.header("Accept-Encoding", self.coding);
        let request = if tag.is_empty() {
            request
        } else {
            request.header("If-None-Match", tag)
        };
        let before = self.world.left(self.customer);
        let response = request.send().await;
        let spent = before.spent(self.world.left(self.customer));
        let price = match status {
            200 => (1, 1, 0),
            304 => (1, 0, 0),
            _ => (0, 0, 1),
        };
        assert_eq!((response.status, spent), (status, price), "{about}");
        response
    }

    /// Sends the request with GET, with HEAD, with its own tag, and with the tags of other forms.
    async fn check(&self, tags: &mut Tags) {
        if !self.may() {
            let others = tags.values().flat_map(BTreeMap::values).take(3);
            let others = others.map(String::as_str).collect::<Vec<_>>().join(", ");
            for tag in ["", "*", &others] {
                self.check_refusal(&self.sent("GET", tag, 403).await);
                assert!(self.sent("HEAD", tag, 403).await.body.is_empty());
            }
            return;
        }
        let got = self.sent("GET", "", 200).await;
        self.check_body(&got);
        let tag = got.header("etag").to_owned();
        let mut fields = self.expected.fields_of(self.endpoint.name);
        fields.extend(self.sees_undeclared().then_some("undeclared"));
        let applied = got_period(&got).unwrap_or_default();
        let path = self.endpoint.documented_path();
        let forms = tags
            .entry((format!("{path} {applied}"), self.coding.to_owned()))
            .or_default();
        // Equal fields have equal tags. Different fields have different tags, which do not match.
        assert_eq!(forms.entry(fields).or_insert_with(|| tag.clone()), &tag);
        let others: Vec<&str> = forms
            .values()
            .map(String::as_str)
            .filter(|other| *other != tag)
            .collect();
        assert_eq!(others.len() + 1, forms.len(), "{forms:?}");
        for tag in others {
            assert_eq!(self.sent("GET", tag, 200).await.body, got.body);
        }
        for tag in [&*tag, "*"] {
            let unchanged = self.sent("GET", tag, 304).await;
            assert!(unchanged.body.is_empty() && unchanged.header("etag") == got.header("etag"));
        }
        let head = self.sent("HEAD", "", 200).await;
        let same = [
            "etag",
            "content-length",
            "content-encoding",
            "last-modified",
        ];
        assert!(
            same.iter()
                .all(|name| head.header(name) == got.header(name))
                && head.body.is_empty()
        );
    }

    /// A body has the reserved fields that the tier sees, and no byte of other reserved fields.
    fn check_body(&self, got: &Response) {
        let text = String::from_utf8(got.decoded()).unwrap();
        let tier = self.expected.tier;
        let about = format!("{tier} {} {} {text}", self.target(), self.coding);
        let seen = self.expected.fields_of(self.endpoint.name);
        for (name, value, _) in RESERVED {
            let occurs = [text.contains(name), text.contains(value)];
            assert_eq!(occurs, [seen.contains(&name); 2], "{name}: {about}");
        }
        assert_eq!(
            text.contains("undeclared"),
            self.sees_undeclared(),
            "{about}"
        );
        let first = self.allowed().first().copied();
        let applied = if self.takes_a_period() {
            self.period.or(first)
        } else {
            None
        };
        assert_eq!(
            got_period(got),
            applied.map(|period| period.word().to_owned()),
            "{about}"
        );
    }

    /// A refusal names the missing right and a tier that has it.
    fn check_refusal(&self, got: &Response) {
        let name = self.endpoint.name;
        let body = got.json();
        let about = format!("{} {} {body}", self.expected.tier, self.target());
        let of_the_specification = !self.endpoint.route.is_configured();
        let is_latest =
            self.period == Some(Period::Latest) && self.expected.may(name) && of_the_specification;
        assert_eq!(
            got.code(),
            if is_latest {
                "latest_requires_plan"
            } else {
                "plan_required"
            },
            "{about}"
        );
        let words: Vec<&str> = self.allowed().iter().map(|period| period.word()).collect();
        let words = if self.expected.may(name) {
            json!(words)
        } else {
            Value::Null
        };
        assert_eq!(body["allowed"], words, "{about}");
        let other = TIERS.iter().find(|tier| {
            body["message"]
                .as_str()
                .unwrap()
                .contains(&format!("`{}`", tier.tier))
        });
        let other = other.expect(&about);
        let others = other.periods_of(name);
        assert!(
            other.may(name) && self.period.is_none_or(|one| others.contains(&one)),
            "{about}"
        );
        let tier = if is_latest {
            Value::Null
        } else {
            json!(other.tier)
        };
        assert_eq!(body["tier"], tier, "{about}");
    }
}

fn got_period(got: &Response) -> Option<String> {
    let body: Value = serde_json::from_slice(&got.decoded()).unwrap();
    body["period"].as_str().map(str::to_owned)
}

#[tokio::test]
async fn every_tier_gets_its_rights_in_every_period_encoding_method_and_condition() {
    let world = World::with(SETTINGS, backend).await;
    let mut tags = Tags::new();
    let mut cases = 0;
    for expected in &TIERS {
        let customer = world.customer_with(expected.tier, wide()).await;
        for endpoint in settings(SETTINGS).endpoints.stored() {
            for period in std::iter::once(None).chain(ALL.iter().map(|one| Some(*one))) {
                for coding in ["identity", "gzip", "br"] {
                    let world = &world;
                    let customer = &customer;
                    let asked = Asked {
                        world,
                        customer,
                        expected,
                        endpoint,
                        period,
                        coding,
                    };
                    if period.is_none() || asked.takes_a_period() {
                        asked.check(&mut tags).await;
                        cases += 1;
                    }
                }
            }
        }
    }
    assert!(cases > 600, "{cases}");
}

#[tokio::test]
async fn forms_of_all_sets_of_fields_survive_a_restart_and_are_gone_if_a_set_changes() {
    let world = World::with(SETTINGS, backend).await;
    let [seller, trial] = [
        world.customer_with("seller", wide()).await,
        world.customer_with("trial", wide()).await,
    ];
    let mut before = Vec::new();
    for customer in [&seller, &trial] {
        before.push(
            world
                .get_as(customer, "/api/v1/prices?period=7d")
                .await
                .body,
        );
    }
    assert_ne!(before[0], before[1]);
    let world = world.restarted().await;
    for (customer, before) in [&seller, &trial].into_iter().zip(before) {
        assert_eq!(
            world
                .get_as(customer, "/api/v1/prices?period=7d")
                .await
                .body,
            before
        );
    }
    assert_eq!(world.backend.received().len(), 1);

    let identity = |text: &str| settings(text).backend_identity();
    assert_eq!(
        identity(SETTINGS),
        identity(&SETTINGS.replace("day = 10\n", "day = 11\n"))
    );
    assert_ne!(
        identity(SETTINGS),
        identity(&SETTINGS.replace("[\"prices.margin\", ", "["))
    );
}

#[tokio::test]
async fn data_that_only_some_tiers_see_changes_no_byte_of_the_other_forms() {
    let world = World::with(SETTINGS, |_| prices("7.125")).await;
    let mut customers = Vec::new();
    for expected in &TIERS {
        customers.push((expected, world.customer_with(expected.tier, wide()).await));
    }
    let mut before = Vec::new();
    for (_, customer) in &customers {
        before.push(world.get_as(customer, "/api/v1/prices?period=7d").await);
    }
    world.backend.set_script(|_| prices("9.25"));
    world.pass(Duration::from_mins(6));
    for ((expected, customer), before) in customers.iter().zip(before) {
        let after = world.get_as(customer, "/api/v1/prices?period=7d").await;
        let is_same = !expected.fields.contains(&"margin");
        assert_eq!(after.body == before.body, is_same, "{}", expected.tier);
        assert_eq!(
            after.header("etag") == before.header("etag"),
            is_same,
            "{}",
            expected.tier
        );
    }
}

#[tokio::test]
async fn the_documentation_shows_the_rights_of_each_tier() {
    let world = World::with(SETTINGS, backend).await;
    let html = String::from_utf8(world.get("/docs").send().await.body).unwrap();
    let text = html.replace("<code>", "").replace("</code>", "");
    for rights in [
        "all but latest",
        "all but latest, 1m, index, alerts, incidents, providers, degradations, recommendations, \
         provider_reliability, transparency, drift; history up to 24h; reserved fields: none",
        "all",
        "all; incidents up to 7d; reserved fields: model.latestScore, prices.seller.rebate",
        "all but latest; reserved fields: prices.margin, prices.seller.rebate",
    ] {
        assert!(text.contains(&format!(">{rights}</td>")), "{rights}");
    }
}
