//! Ids that the backend parses differently from the client: no document is stored under an alias, and every response is
//! about the requested model.

use std::time::Duration;

use crate::{
    backend::{Act, Received, json, respond},
    world::World,
};

const SECOND: Duration = Duration::from_secs(1);
const TYPED: [(&str, &str); 1] = [("content-type", "application/json; charset=utf-8")];

/// The paths about one model.
const ABOUT_ONE: [&str; 3] = [
    "/api/v1/models/{id}",
    "/api/v1/models/{id}/history?period=24h",
    "/api/v1/drift/{id}",
];

fn at(path: &str, id: &str) -> String {
    path.replace("{id}", id)
}

/// A backend that parses the leading digits of an id, as `parseInt` does.
fn lenient(received: &Received) -> Act {
    let target = received.target().trim_start_matches("/api/v1");
    if target.starts_with("/models?") {
        return json(r#"{"data":[{"id":"200","name":"Atlas"},{"id":"201","name":"Boreas"}]}"#);
    }
    let asked = target.split(['/', '?']).nth(2).unwrap();
    let digits: String = asked.chars().take_while(char::is_ascii_digit).collect();
    let Ok(number) = digits.parse::<u64>() else {
        return respond("400 Bad Request", &TYPED, r#"{"error":"Invalid model id"}"#);
    };
    json(&match target {
        history if history.contains("/history") => {
            format!(r#"{{"modelId":{number},"data":[{{"id":9,"score":70}}]}}"#)
        }
        drift if drift.starts_with("/drift") => format!(r#"{{"data":{{"modelId":"{number}"}}}}"#),
        _ => format!(r#"{{"data":{{"id":"{number}","latestScore":71.50}}}}"#),
    })
}

#[tokio::test]
async fn an_answer_about_another_model_is_a_404_and_never_stored() {
    let world = World::with("", lenient).await;
    let customer = world.paid().await;
    for path in ABOUT_ONE {
        for (id, status) in [
            ("200", 200),
            ("200abc", 404),
            ("0200", 404),
            ("201.5", 404),
            ("201", 200),
        ] {
            world.pass(SECOND);
            let got = world.get_as(&customer, &at(path, id)).await;
            assert_eq!(got.status, status, "{path} {id}");
            if status == 404 {
                assert_eq!(
                    (got.code().as_str(), got.header("retry-after")),
                    ("model_not_found", "")
                );
                let asked = world.backend.received().len();
                assert_eq!(
                    world.get_as(&customer, &at(path, id)).await.code(),
                    "model_not_found"
                );
                assert_eq!(
                    world.backend.received().len(),
                    asked,
                    "the result is remembered"
                );
            }
        }
    }
    // Two models on three paths.
    assert_eq!(world.documents(), 6);
    assert_eq!(
        world
            .counted("scoregate_upstream_requests_total{result=\"not_found\"}")
            .await,
        9
    );
    assert_eq!(
        world
            .counted("scoregate_upstream_requests_total{result=\"invalid\"}")
            .await,
        0
    );
}

#[tokio::test]
async fn a_stored_document_is_removed_once_the_backend_answers_about_another_model() {
    let world = World::with("", lenient).await;
    let customer = world.paid().await;
    assert_eq!(
        world.get_as(&customer, "/api/v1/models/200").await.status,
        200
    );
    world.pass(Duration::from_hours(26));
    world.backend.set_script(|_| json(r#"{"data":{"id":201}}"#));
    assert_eq!(
        world.get_as(&customer, "/api/v1/models/200").await.code(),
        "model_not_found"
    );
    assert_eq!(world.documents(), 0);
}

#[tokio::test]
async fn ids_outside_the_expression_are_a_404_before_anything_is_asked_of_the_backend() {
    let expressions: String = ["model", "history", "drift"]
        .map(|name| format!("[mapping.{name}]\nid = '[1-9][0-9]{{0,8}}'\n"))
        .concat();
    let world = World::with(&expressions, lenient).await;
    let customer = world.paid().await;
    for path in ABOUT_ONE {
        for id in ["200abc", "abc", "0200", "1234567890", "2.0", "made-up"] {
            let got = world.get_as(&customer, &at(path, id)).await;
            assert_eq!(
                (got.status, got.code().as_str()),
                (404, "model_not_found"),
                "{path} {id}"
            );
            assert_eq!(got.header("retry-after"), "", "a final response");
        }
    }
    assert_eq!(world.backend.received().len(), 0, "not even the list");
    // Refused ids do not delay lookups of valid ids.
    for path in ABOUT_ONE {
        world.pass(SECOND);
        assert_eq!(
            world.get_as(&customer, &at(path, "200")).await.status,
            200,
            "{path}"
        );
    }
    assert_eq!(
        world
            .counted("scoregate_upstream_requests_total{result=\"not_found\"}")
            .await,
        0
    );
}

#[tokio::test]
async fn a_400_to_an_id_is_a_404_unless_the_model_is_known() {
    let world = World::with("", lenient).await;
    let customer = world.paid().await;
    assert_eq!(
        world
            .get_as(&customer, "/api/v1/models?period=24h")
            .await
            .status,
        200
    );
    for path in ABOUT_ONE {
        world.pass(SECOND);
        let got = world.get_as(&customer, &at(path, "abc")).await;
        assert_eq!(
            (got.status, got.code().as_str()),
            (404, "model_not_found"),
            "{path}"
        );
    }
    // The model is listed, so the backend rejected something else.
    for path in ABOUT_ONE {
        world.backend.next(respond(
            "400 Bad Request",
            &TYPED,
            r#"{"error":"Invalid period"}"#,
        ));
        let got = world.get_as(&customer, &at(path, "200")).await;
        assert_eq!(
            (got.status, got.code().as_str()),
            (502, "upstream_invalid"),
            "{path}"
        );
    }
    // A page from a proxy is not a response of the backend.
    world.pass(SECOND);
    world.backend.next(respond(
        "400 Bad Request",
        &[("content-type", "text/html")],
        "<h1>Bad request</h1>",
    ));
    assert_eq!(
        world.get_as(&customer, "/api/v1/models/xyz").await.code(),
        "upstream_invalid"
    );
    // A 400 to a request without an id is not one either.
    world.backend.next(respond("400 Bad Request", &TYPED, "{}"));
    assert_eq!(
        world.get_as(&customer, "/api/v1/index").await.code(),
        "upstream_invalid"
    );
}

#[tokio::test]
async fn an_unlisted_id_that_may_not_be_looked_up_yet_is_answered_truthfully() {
    let world = World::with("", lenient).await;
    let customer = world.paid().await;
    assert_eq!(
        world
            .get_as(&customer, "/api/v1/models?period=24h")
            .await
            .status,
        200
    );
    assert_eq!(
        world.get_as(&customer, "/api/v1/models/7abc").await.code(),
        "model_not_found"
    );
    let left = world.left(&customer);
    let refused = world.get_as(&customer, "/api/v1/models/8abc").await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (404, "model_not_found")
    );
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(
        refused.json()["message"],
        "Wait 1 s. This id is not in the list of models, and cannot be looked up right now."
    );
    assert_eq!(world.left(&customer), left, "it is free");
}
