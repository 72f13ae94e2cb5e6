//! Payments change tiers: repeated requests to the side port, and the receiver in `docs/billing.md`.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use data_encoding::BASE64;
use futures_util::future::join_all;
use hmac::{Hmac, KeyInit as _, Mac as _};
use scoregate_base::clock::Clock;
use serde_json::{Value, json};
use sha2::Sha256;

use super::browser::Browser;
use crate::{
    client::{Connection, Response},
    world::World,
};

const TOKEN: &str = "a-token-of-the-side-port";
const SETTINGS: &str = "admin.token = \"a-token-of-the-side-port\"\n";
const KEY: &str = "8e03978e-40d5-43dd-bc93-6894a57f9324";

async fn post(world: &World, command: &str, body: &Value, key: &str) -> Response {
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("Authorization", bearer.as_str()), ("Idempotency-Key", key)];
    let target = format!("/v1/{command}");
    world
        .side("POST", &target, &body.to_string(), &headers)
        .await
}

async fn done(world: &World, command: &str, body: &Value, key: &str) -> Value {
    let response = post(world, command, body, key).await;
    let text = String::from_utf8_lossy(&response.body);
    assert_eq!(response.status, 200, "{text}");
    response.json()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[tokio::test]
async fn a_repeated_creation_returns_the_first_key_and_creates_nothing() {
    let world = World::with_sign_up(SETTINGS).await;
    let new = json!({"name": "Station", "tier": "pro"});
    let first = done(&world, "keys/create", &new, KEY).await;
    assert_eq!(
        world
            .get_by(word(&first["key"]), "/api/v1/models")
            .await
            .status,
        200
    );
    let id = &first["application"]["id"];
    let describe = json!({"id": id, "name": "Other"});
    assert_eq!(
        post(&world, "keys/update", &describe, KEY).await.status,
        422
    );
    assert_eq!(done(&world, "keys/create", &new, KEY).await, first);
    let world = world.restarted().await;
    assert_eq!(done(&world, "keys/create", &new, KEY).await, first);
    // The state after a kill of the process before it stored the response.
    world.rows("UPDATE idempotency_keys SET reply = NULL");
    let again = done(&world, "keys/create", &new, KEY).await;
    assert_eq!(
        (&again["key"], &again["application"]["id"]),
        (&first["key"], id)
    );
    assert_eq!(world.rows("SELECT count(*) FROM applications"), ["1"]);
    assert_eq!(world.rows("SELECT count(*) FROM audit"), ["1"]);
    let stored = world.rows("SELECT reply FROM idempotency_keys").concat();
    assert!(
        !stored.contains(word(&first["key"])) && stored.contains(word(id)),
        "{stored}"
    );

    let other = json!({"name": "Station", "tier": "teams"});
    let refused = post(&world, "keys/create", &other, KEY).await;
    assert_eq!(refused.status, 422);
    assert!(word(&refused.json()["error"]).contains("use a new key"));
    let another = done(&world, "keys/create", &new, "c0ffee00-40d5-43dd-bc93").await;
    assert!(another["key"] != first["key"] && &another["application"]["id"] != id);
}

#[tokio::test]
async fn concurrent_creations_with_one_key_create_one_application() {
    let world = World::with_sign_up(SETTINGS).await;
    let new = json!({"name": "Station", "tier": "pro"});
    let creations = (0..8).map(|_| done(&world, "keys/create", &new, KEY));
    let replies = join_all(creations).await;
    let first = &replies[0];
    for reply in &replies {
        assert_eq!(reply["key"], first["key"]);
        assert_eq!(reply["application"]["id"], first["application"]["id"]);
    }
    assert_eq!(world.rows("SELECT count(*) FROM applications"), ["1"]);
    assert_eq!(world.rows("SELECT count(*) FROM audit"), ["1"]);
}

#[tokio::test]
async fn a_repeated_rotation_creates_one_key() {
    let world = World::with_sign_up(SETTINGS).await;
    let customer = world.customer("pro").await;
    let rotation = json!({"id": customer.id, "overlap_hours": 0});
    let first = done(&world, "keys/rotate", &rotation, KEY).await;
    assert_eq!(done(&world, "keys/rotate", &rotation, KEY).await, first);
    world.rows("UPDATE idempotency_keys SET reply = NULL");
    let again = done(&world, "keys/rotate", &rotation, KEY).await;
    assert_eq!(again["key"], first["key"]);
    assert_eq!(world.rows("SELECT count(*) FROM keys"), ["2"]);
    assert_eq!(
        world.get_by(word(&first["key"]), "/api/v1/me").await.status,
        200
    );
    assert_eq!(world.get_by(&customer.key, "/api/v1/me").await.status, 401);
}

#[tokio::test]
async fn a_repeated_change_of_tier_does_not_undo_a_later_one() {
    let world = World::with_sign_up(SETTINGS).await;
    let customer = world.customer("free").await;
    let to = |tier: &str| json!({"id": customer.id, "tier": tier});
    let first = done(&world, "keys/set-tier", &to("pro"), KEY).await;
    done(
        &world,
        "keys/set-tier",
        &to("teams"),
        "c0ffee00-40d5-43dd-bc93",
    )
    .await;
    assert_eq!(done(&world, "keys/set-tier", &to("pro"), KEY).await, first);
    assert_eq!(world.rows("SELECT tier FROM applications"), ["teams"]);
}

#[tokio::test]
async fn only_some_commands_take_an_idempotency_key_and_a_refused_one_can_be_repeated() {
    let world = World::with_sign_up(SETTINGS).await;
    let customer = world.customer("free").await;
    let revoke = json!({"id": customer.id});
    assert_eq!(post(&world, "keys/revoke", &revoke, KEY).await.status, 400);
    assert_eq!(world.get_by(&customer.key, "/api/v1/me").await.status, 200);
    let unknown = json!({"id": "app_00000000000", "tier": "pro"});
    for key in ["short", &"x".repeat(256), "ümlautümlautümlaut"] {
        let refused = post(&world, "keys/set-tier", &unknown, key).await;
        assert_eq!(refused.status, 400);
        assert!(word(&refused.json()["error"]).starts_with("Idempotency-Key: write 16"));
    }
    for _ in 0..2 {
        let refused = post(&world, "keys/set-tier", &unknown, "c0ffee00-40d5-43dd-bc93").await;
        assert_eq!(refused.status, 404);
    }
}

/// The receiver, which runs until this value is dropped.
struct Receiver {
    program: Child,
    port: u16,
}

impl Receiver {
    fn start(world: &World, secret: &[u8]) -> Self {
        let page = include_str!("../../../docs/billing.md");
        let (_, rest) = page.split_once("```python\n").unwrap();
        let (text, _) = rest.split_once("```").unwrap();
        assert!(text.lines().count() < 60, "{}", text.lines().count());
        let mut program = Command::new("python3")
            .args(["-c", text])
            .env("WEBHOOK_SECRET", format!("whsec_{}", BASE64.encode(secret)))
            .env("SIDE_PORT", format!("http://{}", world.running.side))
            .env("ADMIN_TOKEN", TOKEN)
            .env("PORT", "0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = program.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap();
        Self { program, port }
    }

    /// Sends a message, and returns the status of the response; `None` if the receiver fails.
    async fn gets(&self, id: &str, at: u64, body: &Value, secret: &[u8]) -> Option<u16> {
        let body = body.to_string();
        let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
        mac.update(format!("{id}.{at}.{body}").as_bytes());
        let signature = BASE64.encode(&mac.finalize().into_bytes());
        let request = format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\nwebhook-id: {id}\r\n\
             webhook-timestamp: {at}\r\nwebhook-signature: v1,x v1,{signature}\r\n\r\n{body}",
            body.len()
        );
        let mut connection = Connection::open(([127, 0, 0, 1], self.port).into()).await;
        connection.write(request.as_bytes()).await;
        connection.read(false).await.map(|response| response.status)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        drop(self.program.kill());
        drop(self.program.wait());
    }
}

#[tokio::test]
async fn the_documented_receiver_sets_the_tier_of_signed_messages_once() {
    needs!("python3");
    let world = World::with_sign_up(SETTINGS).await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (_, key) = ann.create("One").await;
    let secret = [7; 24];
    let receiver = Receiver::start(&world, &secret);
    let now = Clock::system().now().wall.seconds();
    let event = |kind: &str, email: &str| json!({"type": kind, "data": {"customer_email": email, "price": "price_pro"}});
    let active = event("subscription.active", "Ann@example.org");
    let tier = || world.rows("SELECT tier FROM applications").concat();

    assert_eq!(
        receiver.gets("msg_1", now, &active, &[8; 24]).await,
        Some(401)
    );
    assert_eq!(
        receiver.gets("msg_1", now - 301, &active, &secret).await,
        Some(401)
    );
    assert_eq!(tier(), "free");
    assert_eq!(
        receiver.gets("msg_1", now, &active, &secret).await,
        Some(204)
    );
    assert_eq!(tier(), "pro");
    let latest = "/api/v1/models?period=latest";
    assert_eq!(world.get_by(&key, latest).await.status, 200);
    let ended = event("subscription.ended", "ann@example.org");
    assert_eq!(
        receiver.gets("msg_2", now, &ended, &secret).await,
        Some(204)
    );
    assert_eq!(tier(), "free");
    // Send the first message again.
    assert_eq!(
        receiver.gets("msg_1", now, &active, &secret).await,
        Some(204)
    );
    assert_eq!(tier(), "free");
    let unknown = event("subscription.active", "nn@example.org");
    assert_eq!(receiver.gets("msg_3", now, &unknown, &secret).await, None);
    assert_eq!(tier(), "free");
}
