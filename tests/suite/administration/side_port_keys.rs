//! Keys and other routes of the side port that need its token: access control, the audit trail, and responses without
//! secrets.

use std::time::Duration;

use scoregate_base::keys::Digest;
use scoregate_store::AuditQuery;
use serde_json::{Value, json};

use crate::{
    client::{Connection, Response},
    world::{World, good},
};

const TOKEN: &str = "a-token-of-the-side-port";
const WITH_TOKEN: &str = "admin.token = \"a-token-of-the-side-port\"";

async fn request_side(world: &World, method: &str, target: &str, body: &Value) -> Response {
    let bearer = format!("Bearer {TOKEN}");
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    world
        .side(method, target, &body, &[("Authorization", &bearer)])
        .await
}

fn line(text: &str) -> Value {
    json!({"sha256": Digest::of(text).to_string(), "name": "n", "tier": "pro"})
}

/// Every route, with a valid body.
fn routes(id: &str) -> Vec<(&'static str, String, Value)> {
    let read = |target: &str| ("GET", target.to_owned(), Value::Null);
    let change = |command: &str, body: Value| ("POST", format!("/v1/{command}"), body);
    vec![
        change("keys/create", json!({"name": "n", "tier": "pro"})),
        read("/v1/keys/list"),
        read(&format!("/v1/keys/show?id={id}")),
        change(
            "keys/rotate",
            json!({"id": id, "overlap_hours": 1, "expires_at": "2099-01-01T00:00:00Z"}),
        ),
        change("keys/set-tier", json!({"id": id, "tier": "teams"})),
        change(
            "keys/set-limits",
            json!({"id": id, "limits": {"minute": 5, "day": null}}),
        ),
        change(
            "keys/set-expiry",
            json!({"id": id, "at": "2026-11-21T12:00:30Z"}),
        ),
        change(
            "keys/update",
            json!({"id": id, "url": "https://example.org", "contact": "ops@example.org", "note": null}),
        ),
        change("keys/import", json!({"keys": [line("elsewhere")]})),
        read("/v1/keys/export?limit=500"),
        read("/v1/keys/audit?limit=50"),
        read("/v1/usage/top?most=5"),
        read(&format!("/v1/usage/show?id={id}")),
        read("/v1/usage/top?fleet=true"),
        read("/v1/suspects/list"),
        read(&format!("/v1/suspects/show?id={id}")),
        change(
            "requests/explain",
            json!({"request": "GET /api/v1/models", "app": id}),
        ),
        read("/v1/nodes/list"),
        change(
            "status/post",
            json!({"title": "t", "message": "m", "state": "identified"}),
        ),
        change("status/post", json!({"incident": 1, "message": "m"})),
        change("status/resolve", json!({"incident": 1, "message": "m"})),
        read("/v1/status/list?limit=5"),
        read("/v1/accounts/list?limit=5&email=example.org"),
        read("/v1/upstream/show"),
        read("/v1/settings/list"),
        read("/v1/log/show"),
        read("/v1/cache/list"),
        change("cache/purge", json!({"documents": "all", "hard": true})),
        change("keys/revoke", json!({"id": id, "key": null})),
    ]
}

#[tokio::test]
async fn every_side_port_route_needs_the_token_and_refuses_browsers_and_foreign_hosts() {
    let world = World::with(WITH_TOKEN, good).await;
    let customer = world.customer("pro").await;
    let before = world.running.registrar.show(customer.id).await.unwrap();
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    for (method, target, body) in routes(&customer.id.to_string()) {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        for (host, headers, status) in [
            ("localhost", "", 401),
            (
                "localhost",
                "Authorization: Bearer a-token-of-the-side-porT\r\n",
                401,
            ),
            ("localhost", "X-API-Key: a-token-of-the-side-port\r\n", 401),
            ("evil.example", &bearer, 421),
            (
                "localhost",
                &format!("{bearer}Origin: http://localhost\r\n"),
                403,
            ),
            ("localhost", &format!("{bearer}Origin: null\r\n"), 403),
        ] {
            let mut connection = Connection::open(world.running.side).await;
            let length = body.len();
            let head = format!(
                "{method} {target} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n{headers}"
            );
            connection
                .write(format!("{head}\r\n{body}").as_bytes())
                .await;
            let response = connection.read(false).await.unwrap();
            assert_eq!(
                response.status, status,
                "{method} {target} {host} {headers}"
            );
        }
    }
    assert_eq!(
        world.running.registrar.show(customer.id).await.unwrap(),
        before
    );
    let all = world
        .running
        .registrar
        .audit(AuditQuery {
            limit: 100,
            ..AuditQuery::default()
        })
        .await
        .unwrap()
        .0;
    assert_eq!(all.len(), 1, "a refused request changed something");
}

#[tokio::test]
async fn no_route_returns_a_secret_except_the_two_that_create_one() {
    let world = World::with(WITH_TOKEN, good).await;
    let customer = world.customer("pro").await;
    let mut issued = vec![customer.key.clone()];
    for (method, target, body) in routes(&customer.id.to_string()) {
        let response = request_side(&world, method, &target, &body).await;
        assert_eq!(response.status, 200, "{target}: {}", response.fingerprint);
        let text = String::from_utf8(response.body.clone()).unwrap();
        for secret in issued.iter().map(String::as_str).chain([TOKEN]) {
            assert!(!text.contains(secret), "{target} returned a secret");
        }
        let key = response.json()["key"].as_str().map(str::to_owned);
        assert_eq!(
            key.is_some(),
            target.ends_with("/create") || target.ends_with("/rotate")
        );
        issued.extend(key);
    }
}

#[tokio::test]
async fn the_audit_trail_has_actor_action_and_time_of_each_kind_of_change() {
    let world = World::with(WITH_TOKEN, good).await;
    let customer = world.customer("pro").await;
    for (method, target, body) in routes(&customer.id.to_string()) {
        request_side(&world, method, &target, &body).await;
    }
    let more = json!({"keys": [{
        "sha256": Digest::of("further").to_string(), "name": "a pro application", "tier": "teams",
        "application": customer.id.to_string(),
    }]});
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("Authorization", bearer.as_str()), ("X-Operator", "anna")];
    world
        .side("POST", "/v1/keys/import", &more.to_string(), &headers)
        .await;
    let response = request_side(
        &world,
        "GET",
        &format!("/v1/keys/audit?id={}", customer.id),
        &Value::Null,
    )
    .await
    .json();
    let records = response["records"].as_array().unwrap().clone();
    let words: Vec<(&str, &str)> = records
        .iter()
        .map(|record| {
            (
                record["action"].as_str().unwrap(),
                record["actor"].as_str().unwrap(),
            )
        })
        .collect();
    let site = "admin-api";
    assert_eq!(
        words,
        [
            ("add_key", "admin-api:anna"),
            ("revoke_all", site),
            ("describe", site),
            ("set_expiry", site),
            ("set_limits", site),
            ("set_tier", site),
            ("rotate", site),
            ("create", "test"),
        ]
    );
    for record in &records {
        assert_eq!(record["at"], crate::world::NOON);
        assert_eq!(record["application"], customer.id.to_string());
        assert!(!record["detail"].as_str().unwrap().contains(&customer.key));
    }
    let page = request_side(&world, "GET", "/v1/keys/audit?limit=3", &Value::Null)
        .await
        .json();
    let before = page["next"].as_u64().unwrap();
    let rest = request_side(
        &world,
        "GET",
        &format!("/v1/keys/audit?before={before}"),
        &Value::Null,
    )
    .await
    .json();
    assert_eq!(
        page["records"].as_array().unwrap().len() + rest["records"].as_array().unwrap().len(),
        13
    );
    assert!(rest["next"].is_null());
}

#[tokio::test]
async fn a_batch_returns_a_result_for_each_key_and_its_size_is_bounded() {
    let world = World::with(WITH_TOKEN, good).await;
    let batch = json!({"keys": [line("a"), line("a"), {"sha256": "x"}, 7, line("b")]});
    let response = request_side(&world, "POST", "/v1/keys/import", &batch)
        .await
        .json();
    let outcomes: Vec<&str> = response["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(
        outcomes,
        ["imported", "rejected", "rejected", "rejected", "imported"]
    );
    assert_eq!(
        (response["imported"].as_u64(), response["rejected"].as_u64()),
        (Some(2), Some(3))
    );
    assert_eq!(
        (
            &response["results"][1]["field"],
            &response["results"][3]["field"]
        ),
        (&json!("sha256"), &json!("line"))
    );
    assert_eq!(world.running.gateway().key_directory.len(), 2);
    assert_eq!(world.counted("scoregate_keys").await, 2);
    let many = json!({"keys": vec![0; 501]});
    assert_eq!(
        request_side(&world, "POST", "/v1/keys/import", &many)
            .await
            .status,
        400
    );
    let large = json!({"name": "x".repeat(70_000), "tier": "pro"});
    assert_eq!(
        request_side(&world, "POST", "/v1/keys/create", &large)
            .await
            .status,
        413
    );
    let whole =
        json!({"keys": (0..500).map(|number| line(&number.to_string())).collect::<Vec<_>>()});
    assert_eq!(
        request_side(&world, "POST", "/v1/keys/import", &whole)
            .await
            .json()["imported"],
        500
    );
}

#[tokio::test]
async fn changed_limits_and_expiry_times_apply_at_once() {
    let world = World::with(WITH_TOKEN, good).await;
    let customer = world.customer("pro").await;
    let change = async |action: &str, fields: Value| {
        let mut body = fields;
        body["id"] = json!(customer.id);
        request_side(&world, "POST", &format!("/v1/keys/{action}"), &body).await
    };
    change("set-limits", json!({"limits": {"day": 77}})).await;
    let response = world.get_as(&customer, "/api/v1/me").await;
    assert_eq!(response.header("x-ratelimit-limit"), "77");
    change("set-limits", json!({"limits": {"day": null}})).await;
    let response = world.get_as(&customer, "/api/v1/me").await;
    assert_eq!(response.header("x-ratelimit-limit"), "10000");
    change("set-expiry", json!({"at": "2026-11-21T13:00:00Z"})).await;
    world.pass(Duration::from_hours(1));
    assert_eq!(
        world.get_as(&customer, "/api/v1/me").await.code(),
        "invalid_api_key"
    );
    let ended = change("set-expiry", json!({"at": null})).await;
    assert_eq!(
        ended.status, 409,
        "an expired key was extended without being named"
    );
    let named = json!({"at": null, "key": customer.key});
    assert_eq!(change("set-expiry", named).await.status, 200);
    assert_eq!(world.get_as(&customer, "/api/v1/me").await.status, 200);
    for action in ["set-limits", "set-expiry", "update"] {
        assert_eq!(change(action, json!({})).await.status, 400, "{action}");
    }
}

#[tokio::test]
async fn the_last_use_of_a_key_is_shown_by_the_hour() {
    let world = World::with(WITH_TOKEN, good).await;
    let customer = world.customer("pro").await;
    let target = format!("/v1/keys/show?id={}", customer.id);
    assert!(
        request_side(&world, "GET", &target, &Value::Null)
            .await
            .json()["keys"][0]["last_used_at"]
            .is_null()
    );
    world.pass(Duration::from_mins(20));
    assert_eq!(world.get_as(&customer, "/api/v1/me").await.status, 200);
    world.running.keys.keeper.store_uses(0).await;
    for target in [target.as_str(), "/v1/keys/list"] {
        let response = request_side(&world, "GET", target, &Value::Null)
            .await
            .json();
        let application = response
            .get("applications")
            .map_or(&response, |all| &all[0]);
        assert_eq!(
            application["keys"][0]["last_used_at"],
            "2026-11-21T12:00:00Z"
        );
    }
}

#[tokio::test]
async fn last_uses_are_stored_periodically() {
    let world = World::with(WITH_TOKEN, good).await;
    let customer = world.customer("pro").await;
    assert_eq!(world.get_as(&customer, "/api/v1/me").await.status, 200);
    while world
        .running
        .registrar
        .show(customer.id)
        .await
        .unwrap()
        .keys[0]
        .last_used_at
        .is_none()
    {
        world.pass(Duration::from_secs(30));
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_change_whose_client_disconnected_applies_once_it_is_durable() {
    let world = World::with(WITH_TOKEN, good).await;
    let mut start = 0;
    for _ in 0..20 {
        let customer = world.customer("pro").await;
        let other = world.customer("pro").await;
        let mut connection = Connection::open(world.running.side).await;
        let body = json!({"id": customer.id}).to_string();
        let length = body.len();
        let request = format!(
            "POST /v1/keys/revoke HTTP/1.1\r\nHost: localhost\r\n\
             Authorization: Bearer {TOKEN}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        connection.write(request.as_bytes()).await;
        // The side port has one thread: after this response it has handled the other request.
        world.scrape().await;
        drop(connection);
        let mut is_durable = false;
        for _ in 0..500 {
            is_durable |= world
                .running
                .registrar
                .show(customer.id)
                .await
                .unwrap()
                .keys[0]
                .revoked_at
                .is_some();
            if is_durable {
                break;
            }
        }
        if is_durable {
            start += 1;
            // The next change waits for the previous one.
            world
                .running
                .registrar
                .revoke("test", other.id, None)
                .await
                .unwrap();
            assert_eq!(
                world.get_as(&customer, "/api/v1/me").await.code(),
                "invalid_api_key"
            );
        }
    }
    assert!(
        start > 0,
        "every client disconnected before its request was sent"
    );
}
