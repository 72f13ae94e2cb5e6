//! The backend of the shipped mapping, simulated with the shapes of its responses: numeric ids, words in capitals,
//! numbers in strings, other names. Every response is validated against the gateway's own description by the client of
//! the tests.

use std::time::Duration;

use scoregate_base::routes::{ENDPOINTS, Param, Period};
use serde_json::{Value, json as object};

use crate::{
    backend::{Act, Received, json, respond},
    client::Response,
    world::{Customer, World},
};

const SHIPPED: &str = include_str!("../../../deploy/backends/dashboard.toml");
const TYPED: [(&str, &str); 1] = [("content-type", "application/json; charset=utf-8")];
const SECOND: Duration = Duration::from_secs(1);

/// A score as the detail embeds it, for paid callers only.
const LATEST: &str = r#"{"id":90017,"modelId":17,"ts":"2026-11-21T11:40:02.120Z","stupidScore":71.25,"displayScore":71,"axes":{"correctness":0.91}}"#;

#[rustfmt::skip]
const RECORDED: [(&str, &str); 9] = [
    ("/dashboard/scores", r#"{"success":true,"data":[
        {"id":"17","name":"atlas-4","provider":"meridian","currentScore":71,"score":71,"trend":"up","status":"good","lastUpdated":"2026-11-21T11:40:02.120Z",
         "weeklyBest":80,"weeklyWorst":"unavailable","confidenceLower":68.50,"confidenceUpper":74,"history":[{"timestamp":"2026-11-21T11:40:02.120Z","score":71}],"isNew":false},
        {"id":18,"name":"boreas","provider":"meridian","currentScore":"unavailable","trend":"unavailable","status":"unavailable","lastUpdated":null,
         "confidenceLower":null,"confidenceUpper":null,"unavailableReason":"no runs","isStale":true},
        {"id":"19","name":"caldera","provider":"northwind","currentScore":"64.5","trend":"sideways","status":"offline","lastUpdated":"yesterday"}],
        "cached":true,"timestamp":"2026-11-21T11:41:00.000Z"}"#),
    ("/dashboard/global-index", r#"{"success":true,"data":{"current":{"timestamp":"2026-11-21T11:00:00.000Z","globalScore":62,"modelsCount":3},
        "history":[{"timestamp":"2026-11-21T10:00:00.000Z","globalScore":61,"modelsCount":3,"hoursAgo":1}],"trend":"up","performingWell":2,"totalModels":3,
        "lastUpdated":"2026-11-21T11:41:00.000Z"}}"#),
    ("/dashboard/alerts", r#"{"success":true,"data":[{"name":"caldera","provider":"northwind","issue":"Below its average","severity":"warning",
        "detectedAt":"2026-11-21T09:00:00.000Z"},{"name":"atlas-4","provider":"meridian","issue":"Offline","severity":"high","detectedAt":"now"}]}"#),
    ("/dashboard/incidents", r#"{"success":true,"data":[{"id":5,"modelId":17,"modelName":"atlas-4","provider":"meridian","incidentType":"service_disruption",
        "severity":"major","title":"Down","description":"No responses","detectedAt":"2026-11-20T09:00:00.000Z","resolvedAt":null,"metadata":{"failureRate":40.0}},
        {"id":6,"modelId":null,"modelName":"Unknown Model","provider":"northwind","incidentType":"other","severity":"critical","description":null,
        "detectedAt":"2026-11-20T08:00:00.000Z","resolvedAt":"2026-11-20T10:00:00.000Z","metadata":null}],"period":"7d","totalIncidents":2}"#),
    ("/providers", r#"{"success":true,"data":{"meridian":{"status":"operational","responseTime":120,"lastChecked":"2026-11-21 11:40:00"},
        "northwind":{"status":"unknown","responseTime":null,"lastChecked":null},"other":{"status":"rate limited"}}}"#),
    ("/analytics/degradations", r#"{"success":true,"data":[{"modelId":17,"modelName":"atlas-4","provider":"meridian","currentScore":55,"baselineScore":65,
        "dropPercentage":15,"zScore":"-0.50","severity":"minor","detectedAt":"2026-11-21T11:41:00.000Z","message":"Declining","type":"declining_trend"}],
        "timestamp":"2026-11-21T11:41:00.000Z"}"#),
    ("/analytics/recommendations", r#"{"success":true,"data":{"bestForCode":{"id":"17","name":"atlas-4","vendor":"meridian","score":71,"reason":"First"},
        "mostReliable":null,"fastestResponse":{"id":"18","score":"unavailable"},"avoidNow":[]}}"#),
    ("/analytics/provider-reliability", r#"{"success":true,"data":[{"provider":"meridian","trustScore":91,"totalIncidents":2,"incidentsPerMonth":2,
        "avgRecoveryHours":"2.50","lastIncident":"2026-11-19T11:41:00.000Z","trend":"reliable","activeModels":2,"isAvailable":true},
        {"provider":"northwind","trustScore":null,"totalIncidents":0,"avgRecoveryHours":"n/a","lastIncident":null,"trend":"unreliable"}]}"#),
    ("/analytics/transparency", r#"{"success":true,"data":{"summary":{"lastUpdate":"2026-11-21T11:41:00.000Z","coverage":99.90,"modelsFresh":2},
        "modelFreshness":[{"model":"atlas-4","minutesAgo":1,"status":"fresh"}]}}"#),
];

/// Numbers and decimal strings up to the first other character.
fn parse_int(text: &str) -> Option<u32> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Model 17 has scores, 18 and 19 have none, and all others are unknown.
fn recorded(received: &Received) -> Act {
    let path = received.target().split('?').next().unwrap();
    if let Some((_, body)) = RECORDED.iter().find(|(known, _)| *known == path) {
        return json(body);
    }
    let (endpoint, id) = path.rsplit_once('/').unwrap();
    let id = parse_int(id);
    let invalid = |body: &str| respond("400 Bad Request", &TYPED, body);
    match (endpoint, id) {
        ("/api/models", None | Some(0)) => invalid(r#"{"error":"Invalid model ID"}"#),
        ("/api/models", Some(id @ 17..=19)) => {
            let latest = if id == 17 { LATEST } else { "null" };
            json(&format!(
                r#"{{"id":{id},"name":"atlas-4","vendor":"meridian","version":null,"displayName":null,"usesReasoningEffort":0,"latestScore":{latest}}}"#
            ))
        }
        ("/api/models", Some(_)) => {
            respond("404 Not Found", &TYPED, r#"{"error":"Model not found"}"#)
        }
        ("/dashboard/history", Some(17)) => json(
            r#"{"success":true,"period":"24h","data":[{"timestamp":"2026-11-21T11:40:02.120Z","score":71,"stupidScore":71.25,"suite":"hourly",
                "axes":{"correctness":0.91},"confidence_lower":68.50,"confidence_upper":null},{"timestamp":"2026-11-21T10:40:02.120Z","score":"70.10"}]}"#,
        ),
        ("/dashboard/history", _) => json(r#"{"success":true,"data":[],"period":"24h"}"#),
        ("/api/drift/signature", None) => {
            invalid(r#"{"success":false,"error":"Invalid model ID"}"#)
        }
        ("/api/drift/signature", Some(id @ 17)) => json(&format!(
            r#"{{"success":true,"data":{{"modelId":{id},"modelName":"atlas-4","timestamp":"2026-11-21T11:41:00.000Z","baselineScore":69,"currentScore":71,
                "confidenceInterval":[68,74],"regime":"VOLATILE","variance24h":2.5,"driftStatus":"WARNING","pageHinkleyCUSUM":0.0,
                "axes":{{"correctness":{{"value":0.91,"trend":"up","changeMagnitude":6,"status":"STABLE"}}}}}},"cached":false}}"#
        )),
        ("/api/drift/signature", Some(id @ 18..=19)) => json(&format!(
            r#"{{"success":false,"error":"No scores found for model {id}"}}"#
        )),
        ("/api/drift/signature", Some(id)) => json(&format!(
            r#"{{"success":false,"error":"Model {id} not found"}}"#
        )),
        _ => respond("500 Internal Server Error", &[], "there is no such route"),
    }
}

async fn world() -> World {
    // Without this setting, pages of a gateway on loopback show its port.
    let settings = format!("service.base_url = \"https://api.example\"\n{SHIPPED}");
    World::with(&settings.replace("127.0.0.1:4000", "{address}"), recorded).await
}

/// All documents about model 17 and about no model, with the parameters that a caller may send.
fn targets(is_paid: bool) -> Vec<String> {
    let mut targets = Vec::new();
    for row in &ENDPOINTS {
        let path = row.documented_path().replace("{id}", "17");
        let periods: Vec<&str> = Period::ALL
            .iter()
            .filter(|period| is_paid || **period != Period::Latest)
            .map(|period| period.word())
            .collect();
        if row.takes.contains(&Param::Period) {
            targets.extend(
                periods
                    .iter()
                    .map(|period| format!("{path}?period={period}")),
            );
        }
        targets.push(path);
    }
    targets
}

async fn item(world: &World, customer: &Customer, path: &str) -> Value {
    let got: Response = world.get_as(customer, path).await;
    assert_eq!(
        got.status,
        200,
        "{path}: {}",
        String::from_utf8_lossy(&got.body)
    );
    got.json()["data"][0].clone()
}

#[tokio::test]
async fn every_answer_of_a_mapped_backend_is_valid_by_the_gateway_s_own_description() {
    let world = world().await;
    let free = world.free().await;
    let paid = world.paid().await;
    for (customer, is_paid) in [(&paid, true), (&free, false)] {
        for target in targets(is_paid) {
            for method in ["GET", "HEAD"] {
                // The client of the tests validates status, headers and body.
                let got = world
                    .request(method, &target)
                    .key(&customer.key)
                    .send()
                    .await;
                assert_eq!(
                    got.status,
                    200,
                    "{method} {target}: {}",
                    String::from_utf8_lossy(&got.body)
                );
            }
        }
    }
    assert_eq!(
        world
            .counted("scoregate_upstream_requests_total{result=\"invalid\"}")
            .await,
        0
    );
}

#[tokio::test]
async fn ids_words_and_numbers_of_the_backend_become_those_of_the_api() {
    let world = world().await;
    let paid = world.paid().await;
    let models = world.get_as(&paid, "/api/v1/models?period=24h").await;
    let text = String::from_utf8(models.body.clone()).unwrap();
    assert!(
        text.contains(r#""confidenceLower":68.50"#) && text.contains(r#""currentScore":64.5}"#),
        "{text}"
    );
    let ids: Vec<Value> = models.json()["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].clone())
        .collect();
    assert_eq!(ids, ["17", "18", "19"]);
    // This API has neither of these words, and the third value is not a time.
    let odd = &models.json()["data"][2];
    assert_eq!(
        (odd.get("trend"), odd.get("status"), odd.get("lastUpdated")),
        (None, None, None),
        "{odd}"
    );

    let detail = item(&world, &paid, "/api/v1/models/17").await;
    assert_eq!(
        (&detail["id"], &detail["provider"], detail.get("vendor")),
        (&"17".into(), &"meridian".into(), None)
    );
    let point = item(&world, &paid, "/api/v1/models/17/history?period=7d").await;
    assert_eq!(
        (&point["score"], point["confidenceLower"].to_string()),
        (&71.into(), "68.5".into())
    );
    let drift = item(&world, &paid, "/api/v1/drift/17").await;
    assert_eq!(
        (&drift["regime"], &drift["modelId"]),
        (&"drifting".into(), &"17".into())
    );
    let incident = item(&world, &paid, "/api/v1/incidents?period=7d").await;
    let expected = object!({"id": "5", "modelId": "17", "kind": "outage", "severity": "warning", "resolvedAt": null});
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&incident[name], value, "{incident}");
    }
    let provider = item(
        &world,
        &paid,
        "/api/v1/analytics/provider-reliability?period=7d",
    )
    .await;
    assert_eq!(
        (&provider["reliability"], &provider["avgRecoveryHours"]),
        (&91.into(), &2.5.into())
    );
    let degradation = item(&world, &paid, "/api/v1/analytics/degradations?period=7d").await;
    assert_eq!(
        (&degradation["modelId"], &degradation["zScore"]),
        (&"17".into(), &object!(-0.5))
    );
}

#[tokio::test]
async fn aliases_unscored_and_unknown_ids_of_a_mapped_backend_are_404_without_documents() {
    let world = world().await;
    let paid = world.paid().await;
    assert_eq!(
        world
            .get_as(&paid, "/api/v1/models?period=24h")
            .await
            .status,
        200
    );
    let paths = [
        "/api/v1/models/{id}",
        "/api/v1/models/{id}/history?period=24h",
        "/api/v1/drift/{id}",
    ];
    let asked = world.backend.received().len();
    for path in paths {
        for alias in ["17abc", "017", "17.0", "0", "atlas-4"] {
            let got = world.get_as(&paid, &path.replace("{id}", alias)).await;
            assert_eq!(
                (got.status, got.code().as_str()),
                (404, "model_not_found"),
                "{path} {alias}"
            );
        }
    }
    assert_eq!(
        world.backend.received().len(),
        asked,
        "no alias is requested"
    );
    for path in paths {
        world.pass(SECOND);
        let got = world.get_as(&paid, &path.replace("{id}", "99")).await;
        assert_eq!(
            (got.status, got.code().as_str()),
            (404, "model_not_found"),
            "{path}"
        );
    }
    // A model without a score has a detail and an empty history, but no drift signature.
    assert_eq!(
        item(&world, &paid, "/api/v1/models/18").await["latestScore"],
        Value::Null
    );
    let history = world
        .get_as(&paid, "/api/v1/models/18/history?period=24h")
        .await;
    assert_eq!((history.status, &history.json()["count"]), (200, &0.into()));
    assert_eq!(
        world.get_as(&paid, "/api/v1/drift/18").await.code(),
        "model_not_found"
    );
    assert_eq!(world.documents(), 3);
    assert_eq!(
        world
            .counted("scoregate_upstream_requests_total{result=\"invalid\"}")
            .await,
        0
    );
}
