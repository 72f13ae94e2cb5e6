//! Requests to the backend, accepted response shapes, and timeouts.

use std::{collections::BTreeSet, time::Duration};

use scoregate::config::{read_secrets, read_text, resolve};

use crate::{backend::respond, world::World};

const MODELS: &str = "/api/v1/models?period=24h";

fn names(received: &crate::backend::Received) -> BTreeSet<&str> {
    assert!(received.headers.len() <= 7, "{received:?}");
    received
        .headers
        .iter()
        .map(|(name, _)| name.as_str())
        .collect()
}

#[tokio::test]
async fn the_backend_gets_the_listed_headers_and_nothing_of_the_client_s() {
    let world = World::new().await;
    let customer = world.paid().await;
    let request = world
        .get("/api/v1/models?unknown=x&sortBy=price&period=%37d")
        .key(&customer.key);
    let request = request
        .header("X-API-Key", &customer.key)
        .header("Cookie", "a=b")
        .header("Accept", "text/html");
    let request = request
        .header("Accept-Encoding", "br")
        .header("User-Agent", "canary")
        .header("X-Forwarded-For", "1.2.3.4");
    let request = request
        .header("X-Request-Id", "canary-12345")
        .header("If-None-Match", "\"canary\"");
    assert_eq!(
        request.header("Traceparent", "canary").send().await.status,
        200
    );
    let received = &world.backend.received()[0];
    assert_eq!(
        received.line,
        "GET /api/v1/models?period=7d&sortBy=price HTTP/1.1"
    );
    assert_eq!(
        names(received),
        ["accept", "accept-encoding", "host", "user-agent"].into()
    );
    let value = |name: &str| {
        received
            .headers
            .iter()
            .find(|(known, _)| known == name)
            .unwrap()
            .1
            .clone()
    };
    assert_eq!(
        (value("accept"), value("accept-encoding")),
        ("application/json".into(), "identity".into())
    );
    assert_eq!(value("host"), world.backend.address.to_string());
    let all = format!("{received:?}");
    assert!(!all.contains(&customer.key) && !all.contains("canary") && !all.contains("1.2.3.4"));
    assert_eq!(
        world
            .counted("scoregate_upstream_requests_total{result=\"success\"}")
            .await,
        1
    );
}

#[tokio::test]
async fn the_service_credential_is_sent_once_and_a_refresh_sends_the_backend_s_etag() {
    let settings = "[upstream]\nurl = \"{backend}\"\ncredential = \"service-secret\"";
    let tags = [
        ("etag", "W/\"v1\""),
        ("last-modified", "Sat, 21 Nov 2026 11:00:00 GMT"),
    ];
    let world = World::with(settings, move |_| respond("200 OK", &tags, "[]")).await;
    let customer = world.free().await;
    world.get_as(&customer, MODELS).await;
    world.pass(Duration::from_hours(25 + 1));
    world.get_as(&customer, MODELS).await;
    let received = world.backend.received();
    let listed = [
        "accept",
        "accept-encoding",
        "authorization",
        "host",
        "user-agent",
    ];
    assert_eq!(names(&received[0]), listed.into());
    assert_eq!(
        names(&received[1]),
        listed.into_iter().chain(["if-none-match"]).collect()
    );
    assert!(
        received[1]
            .headers
            .contains(&("if-none-match".into(), "W/\"v1\"".into()))
    );
    for one in &received {
        let credentials = one
            .headers
            .iter()
            .filter(|(name, _)| name == "authorization");
        assert_eq!(
            credentials.map(|(_, value)| &**value).collect::<Vec<_>>(),
            ["Bearer service-secret"]
        );
        assert!(!format!("{one:?}").contains(&customer.key));
    }
}

#[tokio::test]
async fn the_credential_is_sent_alone_in_another_header_beside_fixed_headers_and_shown_nowhere() {
    let file = tempfile::NamedTempFile::new().unwrap();
    crate::program::write_secret(file.path(), "canary-of-a-file\n");
    let settings = format!(
        "admin.token = \"a-token-of-the-side-port\"\n[upstream]\nurl = \"{{backend}}\"\ncredential = \"canary\"\ncredential_header = \"X-Internal-Key\"\n\
         headers = {{ X-Source = \"canary-of-the-settings\", X-Site = {{ file = \"{}\" }} }}",
        file.path().display()
    );
    let world = World::with(&settings, |_| respond("200 OK", &[], "[]")).await;
    let customer = world.free().await;
    let request = world
        .get(MODELS)
        .key(&customer.key)
        .header("X-Source", "mine")
        .header("X-Other", "mine");
    assert_eq!(request.send().await.status, 200);
    let received = &world.backend.received()[0];
    let value = |name: &str| {
        let values: Vec<&str> = received
            .headers
            .iter()
            .filter(|(known, _)| known == name)
            .map(|(_, value)| &**value)
            .collect();
        values.join(" and ")
    };
    assert_eq!(value("x-internal-key"), "canary");
    assert_eq!(
        (value("x-source"), value("x-site")),
        ("canary-of-the-settings".into(), "canary-of-a-file".into())
    );
    assert_eq!(
        (value("authorization"), value("x-other")),
        (String::new(), String::new())
    );
    let shown = world
        .side(
            "GET",
            "/v1/settings/list",
            "",
            &[("Authorization", "Bearer a-token-of-the-side-port")],
        )
        .await;
    let shown = String::from_utf8(shown.body).unwrap();
    assert!(
        shown.contains("X-Source") && !shown.contains("canary"),
        "{shown}"
    );
}

#[test]
fn files_of_headers_are_not_read_again_for_settings_that_a_reload_keeps() {
    let file = tempfile::NamedTempFile::new().unwrap();
    crate::program::write_secret(file.path(), "canary-of-a-file\n");
    let text = |headers: &str| format!("[upstream]\nurl = \"http://127.0.0.1:1\"\n{headers}");
    let path = file.path().display().to_string();
    let mut values = read_text(&text(&format!(
        "headers = {{ X-Site = {{ file = \"{path}\" }} }}"
    )))
    .unwrap();
    read_secrets(&mut values);
    let before = resolve(&values).unwrap();
    drop(file);
    let wanted = resolve(&read_text(&text("")).unwrap()).unwrap();
    let (_, changed) = wanted.in_place_of(&before).unwrap();
    assert_eq!(changed.at_next_start, ["upstream.headers"]);

    let mut values = read_text(&text(&format!(
        "headers = {{ X-Site = {{ file = \"{path}\" }} }}"
    )))
    .unwrap();
    read_secrets(&mut values);
    let refused = resolve(&values).unwrap_err().to_string();
    assert!(
        refused.contains("upstream.headers.X-Site:") && refused.contains("cannot be read"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_backend_with_dates_only_is_revalidated_by_date() {
    let dated = ("last-modified", "Sat, 21 Nov 2026 11:00:00 GMT");
    let world = World::with("", move |_| respond("200 OK", &[dated], "[]")).await;
    let customer = world.free().await;
    world.get_as(&customer, MODELS).await;
    world.pass(Duration::from_hours(26));
    world.get_as(&customer, MODELS).await;
    let again = &world.backend.received()[1];
    assert_eq!(
        names(again),
        [
            "accept",
            "accept-encoding",
            "host",
            "if-modified-since",
            "user-agent"
        ]
        .into()
    );
    assert!(
        again
            .headers
            .contains(&("if-modified-since".into(), dated.1.into()))
    );
}
