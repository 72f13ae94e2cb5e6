//! Keys: the headers that may contain them, values that are not keys, and the time from which a key is refused.

use std::time::Duration;

use scoregate::registry::{DescriptionChange, KeyDetails, NewApplication};
use scoregate_base::{
    keys::KeyForm,
    limits::{LimitSetting, OwnLimits},
};

use crate::{
    client::RequestBuilder,
    raw::without_request_id,
    world::{Customer, World, good},
};

const WIDE: &str = "guard.per_minute = 100000";
const ME: &str = "/api/v1/me";

/// Requests `/me` with these header fields.
fn me(world: &World, headers: &[(&str, &str)]) -> RequestBuilder {
    headers
        .iter()
        .fold(world.get(ME), |request, (name, value)| {
            request.header(name, value)
        })
}

#[tokio::test]
async fn auth_a_key_in_the_wrong_header_is_refused_and_the_error_names_the_right_header() {
    let world = World::with(WIDE, good).await;
    let Customer { key, .. } = world.customer("pro").await;
    let belongs = "Send the key as `Authorization: Bearer KEY` or `X-API-Key: KEY`.";
    let message_of = async |target: &str, header: Option<&str>| {
        let request = world.get(target);
        let response = match header {
            Some(value) => request.header("Authorization", value),
            None => request,
        };
        let response = response.send().await;
        assert_eq!(
            (response.status, response.code().as_str()),
            (401, "api_key_required"),
            "{target} {header:?}"
        );
        assert!(
            !response.header("www-authenticate").is_empty() && !response.fingerprint.contains(&key)
        );
        response.json()["message"].as_str().unwrap().to_owned()
    };
    let names = [
        "api_key",
        "apikey",
        "api-key",
        "key",
        "token",
        "access_token",
        "X-API-Key",
        "API%5fKEY",
    ];
    for name in names {
        let message = message_of(&format!("{ME}?x=1&{name}={key}"), None).await;
        let expected = format!(
            "{belongs} A key in the query string is never read. Rotate a key that was sent in a URL: proxies and \
             servers log URLs."
        );
        assert_eq!(message, expected, "{name}");
    }
    for value in [
        &format!("Basic {key}"),
        "basic dTpw",
        &format!("Token {key}"),
        &key,
    ] {
        let message = message_of(ME, Some(value)).await;
        assert_eq!(
            message,
            format!("{belongs} The Authorization header does not use the Bearer scheme.")
        );
    }
    // Other header names are ignored, and so are empty values.
    for target in [
        ME,
        "/api/v1/me?monkey=1",
        "/api/v1/me?x=key",
        "/api/v1/me?%zz=1",
    ] {
        let message = message_of(target, Some("Bearer")).await;
        assert_eq!(
            message, "Send `Authorization: Bearer KEY` or `X-API-Key: KEY`. No key was sent.",
            "{target}"
        );
    }
}

#[tokio::test]
async fn auth_every_invalid_key_gets_the_same_response() {
    let world = World::with(WIDE, good).await;
    let one = world.customer("pro").await;
    let other = world.customer("pro").await;
    let revoked = world.customer("pro").await;
    world
        .running
        .registrar
        .revoke("test", revoked.id, None)
        .await
        .unwrap();
    let unknown = KeyForm::new("sg_live", false).mint().unwrap();
    let wrong_checksum = typo(&one.key);
    let bearer = format!("Bearer {}", one.key);
    let known = world.get(ME).key("x").send().await;
    let before = world.running.gateway().key_directory.len();
    // Further spellings are tested in `raw_bytes/keys.rs`.
    for headers in [
        &[("X-API-Key", unknown.expose())][..],
        &[("X-API-Key", &wrong_checksum)],
        &[("X-API-Key", &revoked.key)],
        &[("X-API-Key", "tp_1234567890abcdef")],
        &[("Authorization", &bearer), ("X-API-Key", &other.key)],
        &[("Authorization", &bearer), ("X-API-Key", unknown.expose())],
        &[("X-API-Key", &one.key), ("X-API-Key", "")],
    ] {
        let response = me(&world, headers).send().await;
        assert_eq!(
            (response.status, without_request_id(&response)),
            (401, without_request_id(&known)),
            "{headers:?}"
        );
        assert_eq!(
            response.header("x-ratelimit-resource"),
            "guard",
            "{headers:?}"
        );
        assert_eq!(
            response.header("www-authenticate"),
            known.header("www-authenticate")
        );
    }
    assert_eq!(known.code(), "invalid_api_key");
    assert_eq!(world.running.gateway().key_directory.len(), before);
    assert_eq!(world.refused("invalid_api_key").await, 8);
}

/// A key with another last character: its checksum is wrong.
fn typo(key: &str) -> String {
    let last = if key.ends_with('0') { '1' } else { '0' };
    format!("{}{last}", &key[..key.len() - 1])
}

#[tokio::test]
async fn auth_a_key_is_refused_from_its_expiry_time() {
    let world = World::new().await;
    let ends = world.clock.now().wall.plus(Duration::from_mins(1));
    let new = NewApplication {
        name: "short".into(),
        tier: "pro".into(),
        expires_at: Some(ends),
        ..NewApplication::default()
    };
    let issued = world.running.registrar.create("test", new).await.unwrap();
    let request = world.get(ME).key(issued.key.expose());
    world.pass(Duration::from_millis(59_999));
    let response = request.clone().send().await;
    assert_eq!(
        (
            response.status,
            &response.json()["data"][0]["key_expires_at"]
        ),
        (200, &ends.rfc3339().into())
    );
    world.pass(Duration::from_millis(1));
    assert_eq!(request.send().await.code(), "invalid_api_key");
}

#[tokio::test]
async fn auth_after_a_rotation_both_keys_are_valid_until_the_overlap_ends_and_share_one_quota() {
    let world = World::new().await;
    let old = world
        .customer_with("pro", OwnLimits::NONE.with(LimitSetting::Day, 10))
        .await;
    let response = world.get_as(&old, "/api/v1/models").await;
    assert_eq!(response.number("x-ratelimit-remaining"), 9);
    let issued = world
        .running
        .registrar
        .rotate(
            "test",
            old.id,
            Duration::from_mins(1),
            KeyDetails::default(),
        )
        .await
        .unwrap();
    let new = issued.key.expose();
    let response = world.get_by(new, "/api/v1/models").await;
    assert_eq!(
        (response.status, response.number("x-ratelimit-remaining")),
        (200, 8)
    );
    let response = world.get_as(&old, "/api/v1/models").await;
    assert_eq!(
        (response.status, response.number("x-ratelimit-remaining")),
        (200, 7)
    );
    world.pass(Duration::from_mins(1));
    assert_eq!(
        world.get_as(&old, "/api/v1/models").await.code(),
        "invalid_api_key"
    );
    let response = world.get_by(new, "/api/v1/models").await;
    assert_eq!(
        (response.status, response.number("x-ratelimit-remaining")),
        (200, 6)
    );
}

#[tokio::test]
async fn auth_a_revocation_applies_at_once_on_an_open_connection() {
    let world = World::new().await;
    let customer = world.customer("pro").await;
    let request = world.get("/api/v1/models").key(&customer.key);
    let mut connection = world.connect().await;
    assert_eq!(connection.send(request.clone()).await.status, 200);
    world
        .running
        .registrar
        .revoke("test", customer.id, None)
        .await
        .unwrap();
    let response = connection.send(request.clone()).await;
    assert_eq!(
        (
            response.code().as_str(),
            response.header("x-ratelimit-resource")
        ),
        ("invalid_api_key", "guard")
    );
    drop(connection);
    assert_eq!(
        world
            .restarted()
            .await
            .get_as(&customer, "/api/v1/models")
            .await
            .status,
        401
    );
}

#[tokio::test]
async fn auth_one_of_two_keys_can_be_revoked_and_the_other_stays_valid() {
    let world = World::new().await;
    let old = world.customer("pro").await;
    let issued = world
        .running
        .registrar
        .rotate(
            "test",
            old.id,
            Duration::from_mins(10),
            KeyDetails::default(),
        )
        .await
        .unwrap();
    world
        .running
        .registrar
        .revoke("test", old.id, Some(&old.key))
        .await
        .unwrap();
    assert_eq!(world.get_as(&old, ME).await.code(), "invalid_api_key");
    assert_eq!(
        world.get(ME).key(issued.key.expose()).send().await.status,
        200
    );
}

#[tokio::test]
async fn auth_a_tier_change_applies_at_once_on_an_open_connection() {
    let world = World::new().await;
    let customer = world.customer("free").await;
    let latest = world.get("/api/v1/models?period=latest").key(&customer.key);
    let mut connection = world.connect().await;
    assert_eq!(
        connection.send(latest.clone()).await.code(),
        "latest_requires_plan"
    );
    assert_eq!(
        connection
            .send(world.get("/api/v1/models").key(&customer.key))
            .await
            .status,
        200
    );
    world
        .running
        .registrar
        .set_tier("test", customer.id, "pro")
        .await
        .unwrap();
    let response = connection.send(latest.clone()).await;
    assert_eq!(
        (response.status, response.number("x-ratelimit-limit")),
        (200, 10_000)
    );
    // The usage of the day and of the minute is kept.
    assert_eq!(response.number("x-ratelimit-remaining"), 9_998);
    assert!(
        response.header("ratelimit").starts_with("\"minute\";r=58;"),
        "{}",
        response.header("ratelimit")
    );
    world
        .running
        .registrar
        .set_tier("test", customer.id, "free")
        .await
        .unwrap();
    assert_eq!(connection.send(latest).await.code(), "latest_requires_plan");
    let response = connection.send(world.get(ME).key(&customer.key)).await;
    assert_eq!(
        (
            response.number("x-ratelimit-limit"),
            response.number("x-ratelimit-remaining")
        ),
        (10, 8)
    );
}

#[tokio::test]
async fn auth_a_renamed_application_is_shown_at_once() {
    let world = World::new().await;
    let customer = world.customer("pro").await;
    let name = Some("Another name".to_owned());
    let change = DescriptionChange {
        name,
        ..DescriptionChange::default()
    };
    world
        .running
        .registrar
        .describe("test", customer.id, change)
        .await
        .unwrap();
    let me = world.get_as(&customer, "/api/v1/me").await;
    assert_eq!(me.json()["data"][0]["application"]["name"], "Another name");
}
