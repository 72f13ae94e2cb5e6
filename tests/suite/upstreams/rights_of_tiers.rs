//! Rights of tiers: what each tier may request and sees, on every path by which bytes can leave.

use std::collections::BTreeMap;
use std::time::Duration;

use scoregate::config::{read_text, resolve};
use scoregate_base::routes::{Endpoint, EndpointTable, Period};
use serde_json::{Value, json};

use crate::backend::{Act, Received, json as answer};
use crate::balances::wide;
use crate::client::Response;
use crate::world::World;

const SETTINGS: &str = r#"
guard.per_minute = 1000000
[upstream]
url = "{backend}"

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
fields = ["prices.margin"]
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
const TIERS: [Expected; 5] = [
    Expected { tier: "free", periods: &[Period::Day, Period::Week, Period::Month], ..PRO }.with(&[]),
    Expected {
        tier: "narrow",
        periods: &[Period::Day, Period::Week],
        history: Period::Day,
        endpoints: Some(&["models", "model", "history", "prices"]),
        ..PRO
    }
    .with(&[]),
    PRO,
    Expected { tier: "seller", incidents: Period::Week, ..PRO }.with(&["latestScore", "rebate"]),
    Expected { tier: "trial", periods: &[Period::Day, Period::Week, Period::Month], ..PRO }.with(&["margin"]),
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

    fn may(&self, endpoint: &str) -> bool {
        self.endpoints.is_none_or(|endpoints| endpoints.contains(&endpoint))
    }

    /// The periods that it may request of an endpoint.
    fn periods_of(&self, endpoint: &str) -> Vec<Period> {
        let longest = match endpoint {
            "history" => self.history,
            "incidents" => self.incidents,
            _ => Period::Month,
        };
        self.periods.iter().copied().filter(|period| *period <= longest).collect()
    }
}

fn prices(margin: &str) -> Act {
    answer(&format!(
        r#"{{"generated_at":"2026-11-21T12:00:00Z","data":[{{"margin":{margin},"id":"atlas","undeclared":{margin},"seller":{{"rebate":7.25,"name":"a"}}}}]}}"#
    ))
}

/// Data whose reserved fields have a value of their own.
fn backend(received: &Received) -> Act {
    let data = if received.target().contains("/prices") {
        r#"[{"margin":7.125,"id":"atlas","undeclared":1,"seller":{"rebate":7.25,"name":"a","x":2}}]"#
    } else if received.target().ends_with("/models/atlas") {
        r#"[{"id":"atlas","latestScore":7.5,"currentScore":80.25}]"#
    } else {
        r#"[{"id":"atlas","currentScore":80.25}]"#
    };
    answer(&format!(r#"{{"generated_at":"2026-11-21T12:00:00Z","data":{data}}}"#))
}

fn table() -> EndpointTable {
    resolve(&read_text(&SETTINGS.replace("{backend}", "http://127.0.0.1:4000")).unwrap()).unwrap().endpoints
}

/// The names of fields of a body, at any depth.
fn names(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.keys().cloned());
            members.values().for_each(|member| names(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        _ => {}
    }
}

/// A refusal names the missing right and a tier that has it.
fn check_refusal(
    expected: &Expected,
    endpoint: &Endpoint,
    period: Option<Period>,
    responses: &[Response],
    about: &str,
) {
    let (name, allowed) = (endpoint.name, expected.periods_of(endpoint.name));
    let is_latest = period == Some(Period::Latest) && expected.may(name);
    let stays = is_latest && !endpoint.route.is_configured();
    let code = if stays { "latest_requires_plan" } else { "plan_required" };
    let words: Vec<&str> = allowed.iter().map(|period| period.word()).collect();
    let words = if expected.may(name) { json!(words) } else { Value::Null };
    for got in responses {
        let body = got.json();
        assert_eq!((got.status, got.code().as_str()), (403, code), "{about}");
        assert_eq!(body["allowed"], words, "{about}");
        if stays {
            assert_eq!(body["tier"], Value::Null, "{about}");
            continue;
        }
        let other = TIERS.iter().find(|tier| Some(tier.tier) == body["tier"].as_str()).expect(about);
        let others = other.periods_of(name);
        assert!(other.may(name) && period.is_none_or(|one| others.contains(&one)), "{about}");
    }
}

#[tokio::test]
async fn every_tier_gets_its_periods_endpoints_and_fields_in_every_encoding_and_condition() {
    let world = World::with(SETTINGS, backend).await;
    let mut requests = 0;
    // By document and fields: equal rights get equal tags.
    let mut tags: BTreeMap<(String, Vec<String>), String> = BTreeMap::new();
    for expected in &TIERS {
        let customer = world.customer_with(expected.tier, wide()).await;
        for endpoint in table().stored() {
            let takes_a_period = endpoint.takes.iter().any(|param| param.name() == "period");
            let path = endpoint.documented_path().replace("{id}", "atlas");
            let asked: Vec<Option<Period>> =
                std::iter::once(None).chain(ALL.iter().map(|one| Some(*one))).collect();
            for period in asked.into_iter().filter(|period| takes_a_period || period.is_none()) {
                let target = period.map_or(path.clone(), |period| format!("{path}?period={}", period.word()));
                for coding in ["identity", "gzip", "br"] {
                    let request = || world.get(&target).key(&customer.key).header("Accept-Encoding", coding);
                    let got = request().send().await;
                    let about = format!("{} {target} {coding}", expected.tier);
                    let allowed = expected.periods_of(endpoint.name);
                    let is_allowed = period.is_none_or(|period| allowed.contains(&period));
                    let again = request().header("If-None-Match", got.header("etag")).send().await;
                    requests += 2;
                    if !expected.may(endpoint.name) || !is_allowed {
                        check_refusal(expected, endpoint, period, &[got, again], &about);
                        continue;
                    }
                    assert_eq!((got.status, again.status), (200, 304), "{about}");
                    let body: Value = serde_json::from_slice(&got.decoded()).unwrap();
                    let applied = if takes_a_period { period.or(allowed.first().copied()) } else { None };
                    assert_eq!(body["period"].as_str(), applied.map(|period| period.word()), "{about}");
                    let mut found = Vec::new();
                    names(&body["data"], &mut found);
                    found.retain(|name| PRO.fields.contains(&name.as_str()));
                    found.sort();
                    let of_endpoint: &[&str] = match endpoint.name {
                        "prices" => &["margin", "rebate"],
                        "model" => &["latestScore"],
                        _ => &[],
                    };
                    let visible = expected.fields.iter().filter(|name| of_endpoint.contains(name));
                    assert_eq!(found, visible.copied().collect::<Vec<_>>(), "{about}");
                    let document = format!("{path} {:?} {coding}", body["period"]);
                    let tag = tags.entry((document, found)).or_insert_with(|| got.header("etag").to_owned());
                    assert_eq!(tag, got.header("etag"), "{about}");
                }
            }
        }
    }
    assert!(requests > 1_000, "{requests}");
}

#[tokio::test]
async fn forms_of_all_sets_of_fields_survive_a_restart_and_are_gone_if_a_set_changes() {
    let world = World::with(SETTINGS, backend).await;
    let [seller, trial] =
        [world.customer_with("seller", wide()).await, world.customer_with("trial", wide()).await];
    let mut before = Vec::new();
    for customer in [&seller, &trial] {
        before.push(world.get_as(customer, "/api/v1/prices?period=7d").await.body);
    }
    assert_ne!(before[0], before[1]);
    let world = world.restarted().await;
    for (customer, before) in [&seller, &trial].into_iter().zip(before) {
        assert_eq!(world.get_as(customer, "/api/v1/prices?period=7d").await.body, before);
    }
    assert_eq!(world.backend.received().len(), 1);

    let identity = |settings: &str| {
        let settings = settings.replace("{backend}", "http://127.0.0.1:4000");
        resolve(&read_text(&settings).unwrap()).unwrap().backend_identity()
    };
    assert_eq!(identity(SETTINGS), identity(&SETTINGS.replace("day = 10\n", "day = 11\n")));
    assert_ne!(identity(SETTINGS), identity(&SETTINGS.replace("[\"prices.margin\"]", "[]")));
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
        assert_eq!(after.header("etag") == before.header("etag"), is_same, "{}", expected.tier);
    }
}

#[test]
fn settings_that_widen_rights_or_name_nothing_are_rejected_in_one_run() {
    let settings = r#"
        [upstream]
        url = "http://127.0.0.1:4000"
        [tiers.a]
        minute = 1
        day = 1
        paid = false
        periods = ["latest", "24h"]
        fields = ["model.latestScore"]
        history = "latest"
        endpoints = ["model", "prices"]
        [tiers.b]
        minute = 1
        day = 1
        paid = true
        periods = []
        incidents = "2d"
        fields = ["latestScore"]
        colour = "red"
    "#;
    let problems = resolve(&read_text(settings).unwrap()).unwrap_err().to_string();
    for (path, words) in [
        ("tiers.a.periods", "narrow"),
        ("tiers.a.fields", "narrow"),
        ("tiers.a.history", "narrow"),
        ("tiers.a.endpoints", "names of endpoints"),
        ("tiers.b.periods", "must remain"),
        ("tiers.b.incidents", "longest period"),
        ("tiers.b.fields", "\"model.latestScore\""),
        ("tiers.b.colour", "no such setting"),
    ] {
        let found = problems.lines().any(|line| line.contains(&format!("{path}:")) && line.contains(words));
        assert!(found, "{path}: {words}\n{problems}");
    }
}
