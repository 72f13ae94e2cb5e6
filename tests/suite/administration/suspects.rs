//! Evidence of use, from the requests to the findings that an operator sees.

use std::{collections::HashSet, time::Duration};

use serde_json::{Value, json};

use crate::{
    backend::{Act, Received, json as answer},
    mail::webhooks::clear_receiver,
    world::{Customer, World, good},
};

const SETTINGS: &str = "admin.token = \"a-token-of-the-side-port\"\nsite.sign_up = false\n";
const LISTED: u32 = 60;

/// A working backend with enough models that a share of them is meaningful.
fn many_models(received: &Received) -> Act {
    if !received.target().contains("/models?") {
        return good(received);
    }
    let item = |number| json!({ "id": format!("m{number}"), "name": "A model", "currentScore": 80.25, "lastUpdated": "2026-11-21T11:59:00Z" });
    let items: Vec<Value> = (0..LISTED).map(item).collect();
    answer(
        &json!({ "success": true, "generated_at": "2026-11-21T12:00:00Z", "data": items })
            .to_string(),
    )
}

async fn read(world: &World, below: &str) -> Value {
    let key = [("Authorization", "Bearer a-token-of-the-side-port")];
    let response = world
        .side("GET", &format!("/v1/suspects{below}"), "", &key)
        .await;
    assert_eq!(
        response.status,
        200,
        "{}",
        String::from_utf8_lossy(&response.body)
    );
    response.json()
}

/// Requests the first models.
async fn sweep(world: &World, customer: &Customer, models: u32, agent: &str) {
    for number in 0..models {
        let target = format!("/api/v1/models/m{number}");
        let request = world
            .get(&target)
            .key(&customer.key)
            .header("user-agent", agent);
        assert_eq!(request.send().await.status, 200, "{target}");
    }
}

/// Days and hours with requests.
fn hours(evidence: &Value) -> Vec<(String, usize)> {
    let days = evidence["days"].as_array().unwrap().iter();
    days.flat_map(|day| {
        let hours = day["hours"].as_array().unwrap().iter().enumerate();
        let used = hours
            .filter(|(_, hour)| hour["requests"] != 0)
            .map(|(number, _)| number);
        let name = day["day"].as_str().unwrap().to_owned();
        used.map(move |hour| (name.clone(), hour))
            .collect::<Vec<_>>()
    })
    .collect()
}

/// The evidence, once this many hours are merged. The clock advances minute by minute until the hour is over and can be
/// merged. Then, for each minute, background tasks get the time of twenty requests.
async fn merged(world: &World, customer: &Customer, expected: usize) -> Value {
    for request in 0.. {
        let evidence = read(world, &format!("/show?id={}", customer.id)).await;
        if hours(&evidence).len() >= expected {
            return evidence;
        }
        if request < 66 || request % 20 == 0 {
            world.pass(Duration::from_mins(1));
        }
    }
    unreachable!("the loop does not end")
}

/// Sends the requests of a mirror and a regular client on three days, and advances to the morning after them.
async fn mirrored(world: &World, mirror: &Customer, regular: &Customer) {
    let mut expected = 0;
    for _ in 0..3 {
        for _ in 0..2 {
            assert_eq!(
                world
                    .get_as(regular, "/api/v1/models?period=24h")
                    .await
                    .status,
                200
            );
            sweep(world, mirror, LISTED, "mirror/1.0").await;
            sweep(world, regular, 5, "dashboard/2.1 (linux)").await;
            expected += 1;
            // Wait until the next hour has begun and this one is merged.
            merged(world, mirror, expected).await;
        }
        world.pass(Duration::from_hours(22));
    }
}

/// Ids of messages to the operator that were queued.
fn told(world: &World) -> Vec<String> {
    world.rows("SELECT id FROM notices WHERE id LIKE 'suspects.%'")
}

#[tokio::test]
async fn a_mirror_is_listed_with_its_evidence_and_a_regular_client_is_not() {
    let world = World::with(SETTINGS, many_models).await;
    let mirror = world.customer("pro").await;
    let regular = world.customer("pro").await;
    mirrored(&world, &mirror, &regular).await;
    let view = read(&world, "/list").await;
    let suspects = view["suspects"].as_array().unwrap();
    assert!(
        suspects
            .iter()
            .all(|suspect| suspect["application"] == mirror.id.to_string()),
        "{view}"
    );
    let suspect = &suspects[0];
    assert_eq!(
        (&suspect["suspicion"], &suspect["rule"]),
        (&json!("mirror"), &json!("each_refresh"))
    );
    let sentence = suspect["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with("The share of the models that it requested in each of several hours was 100 %; the threshold is 40 %;"),
        "{sentence}"
    );
    assert_eq!(view["applications"], 2);
    let evidence = read(&world, &format!("/show?id={}", mirror.id)).await;
    assert_eq!(evidence["suspects"], view["suspects"]);
    let days: HashSet<String> = hours(&evidence).into_iter().map(|(day, _)| day).collect();
    assert_eq!((days.len(), hours(&evidence).len()), (3, 6));
    let day = &evidence["days"][0];
    assert_eq!(
        (&day["delivered"], &day["networks"], &day["products"]),
        (&json!(2 * LISTED), &json!(1), &json!(1))
    );
    assert!(
        day["models"].as_f64().unwrap() > 0.97 && day["limited"] == 0,
        "{day}"
    );
    let other = read(&world, &format!("/show?id={}", regular.id)).await;
    let share = other["days"][0]["models"].as_f64().unwrap();
    assert!(
        (0.07..0.10).contains(&share) && other["suspects"] == json!([]),
        "{other}"
    );
}

#[tokio::test]
async fn suspects_of_the_days_that_ended_are_counted_and_sent_to_the_operator_once() {
    let (address, mut received) = clear_receiver().await;
    let settings = format!(
        "{SETTINGS}operator.webhook = \"http://{address}/in\"\noperator.webhook_secret = \"whsec_{}\"\n",
        "c2VjcmV0".repeat(4)
    );
    let world = World::with(&settings, many_models).await;
    let mirror = world.customer("pro").await;
    let regular = world.customer("pro").await;
    mirrored(&world, &mirror, &regular).await;
    let message = loop {
        world.pass(Duration::from_secs(20));
        if let Ok(message) = tokio::time::timeout(Duration::from_secs(1), received.recv()).await {
            break message.unwrap();
        }
    };
    assert_eq!(message.header("webhook-id"), "suspects.2026-11-23");
    let body: Value = serde_json::from_str(&message.body).unwrap();
    let data = &body["data"];
    assert_eq!(
        (&body["type"], &data["from"], &data["to"]),
        (
            &json!("suspects"),
            &json!("2026-11-17"),
            &json!("2026-11-23")
        )
    );
    assert_eq!(
        (&data["applications"], &data["findings"]),
        (&json!(2), &json!(2)),
        "{data}"
    );
    let suspect = &data["suspects"][0];
    assert_eq!(
        (&suspect["application"], &suspect["suspicion"]),
        (&json!(mirror.id.to_string()), &json!("mirror"))
    );
    message.answer("HTTP/1.1 204 No Content\r\n\r\n");
    let found = "scoregate_suspects{suspicion=\"mirror\"}";
    assert_eq!(world.counted(found).await, 1);

    let world = world.restarted().await;
    while world.counted(found).await == 0 {
        world.pass(Duration::from_secs(20));
    }
    assert_eq!(told(&world), ["suspects.2026-11-23"]);
}

#[tokio::test]
async fn evidence_of_the_current_hour_is_recorded_when_the_program_stops() {
    let world = World::with(SETTINGS, good).await;
    let customer = world.customer("pro").await;
    sweep(&world, &customer, 7, "tool").await;
    let world = world.restarted().await;
    sweep(&world, &customer, 9, "tool").await;
    let evidence = merged(&world, &customer, 1).await;
    let delivered = |evidence: &Value| evidence["days"][0]["delivered"].clone();
    assert_eq!(
        (delivered(&evidence), &evidence["days"][0]["products"]),
        (json!(16), &json!(1))
    );
}

#[tokio::test]
async fn numbers_of_days_that_are_not_kept_are_refused() {
    let world = World::with(SETTINGS, good).await;
    let key = [("Authorization", "Bearer a-token-of-the-side-port")];
    for (query, status) in [
        ("?days=40", 200),
        ("?days=0", 400),
        ("?days=41", 400),
        ("?day=1", 400),
    ] {
        let target = format!("/v1/suspects/list{query}");
        assert_eq!(
            world.side("GET", &target, "", &key).await.status,
            status,
            "{query}"
        );
    }
    assert_eq!(
        world
            .side("GET", "/v1/suspects/show?id=app_00000000000", "", &key)
            .await
            .status,
        404
    );
    assert_eq!(
        world.side("GET", "/v1/suspects/list", "", &[]).await.status,
        401
    );
}
