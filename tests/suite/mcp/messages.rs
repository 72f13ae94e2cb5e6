//! Messages that need no key: handshakes, lists, and refused messages.

use std::time::Duration;

use scoregate_base::routes::ENDPOINTS;
use serde_json::{Value, json};

use super::session::{gateway, post, rpc, send};
use crate::{
    client::Response,
    world::{REGIONS, World},
};

const STATELESS: &str = "2026-07-28";

fn meta() -> Value {
    json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }})
}

/// The header fields of a request in the newest protocol revision.
fn fields(method: &str) -> [(&str, &str); 2] {
    [("MCP-Protocol-Version", STATELESS), ("Mcp-Method", method)]
}

fn error_code(response: &Response) -> i64 {
    response.json()["error"]["code"].as_i64().unwrap()
}

#[tokio::test]
async fn a_handshake_agrees_on_a_revision_and_tools_are_listed_without_a_key() {
    let world = gateway("").await;
    for version in ["2025-06-18", "2025-11-25"] {
        let agreed = send(
            &world,
            &rpc("initialize", &json!({"protocolVersion": version})),
            &[],
        )
        .await;
        let result = &agreed.json()["result"];
        assert_eq!(
            (agreed.status, &result["protocolVersion"]),
            (200, &json!(version))
        );
        assert_eq!(result["capabilities"], json!({"tools": {}}));
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let accepted = send(&world, initialized, &[("MCP-Protocol-Version", version)]).await;
        assert_eq!((accepted.status, accepted.body.len()), (202, 0));
        let list = send(
            &world,
            &rpc("tools/list", &json!({})),
            &[("MCP-Protocol-Version", version)],
        )
        .await;
        let list = list.json();
        let tools = list["result"]["tools"].as_array().unwrap();
        let names: Vec<_> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        let expected: Vec<_> = ENDPOINTS
            .iter()
            .map(|row| format!("get_{}", row.name))
            .collect();
        assert_eq!(names, expected);
    }
    assert_eq!(
        world
            .counted("scoregate_mcp_requests_total{result=\"listed\"}")
            .await,
        6
    );
}

#[tokio::test]
async fn the_stateless_revision_is_discovered_and_its_lists_state_how_long_they_may_be_kept() {
    let world = gateway("").await;
    let found = send(
        &world,
        &rpc("server/discover", &meta()),
        &fields("server/discover"),
    )
    .await
    .json();
    assert_eq!(
        found["result"]["supportedVersions"],
        json!([STATELESS, "2025-11-25", "2025-06-18"])
    );
    assert_eq!(
        found["result"]["ttlMs"], 0,
        "nothing is known about the next refresh"
    );
    // A response states when the next document is expected.
    let customer = world.paid().await;
    world.get_as(&customer, "/api/v1/models").await;
    for method in ["server/discover", "tools/list"] {
        let listed = send(&world, &rpc(method, &meta()), &fields(method)).await;
        let result = listed.json()["result"].clone();
        assert_eq!(
            (&result["resultType"], &result["cacheScope"]),
            (&json!("complete"), &json!("private"))
        );
        assert_eq!(result["ttlMs"], 3_600_000, "{method}");
        assert_eq!(listed.header("cache-control"), "private, no-store");
    }
    let ping = send(&world, &rpc("ping", &meta()), &fields("ping")).await;
    assert_eq!((ping.status, error_code(&ping)), (404, -32_601));
}

#[tokio::test]
async fn a_configured_endpoint_is_a_tool_with_its_own_parameters() {
    let world = gateway(REGIONS).await;
    let list = send(&world, &rpc("tools/list", &json!({})), &[])
        .await
        .json();
    let tools = list["result"]["tools"].as_array().unwrap();
    let tool = tools
        .iter()
        .find(|tool| tool["name"] == "get_regions")
        .unwrap();
    assert_eq!(tool["description"], "Regions.");
    assert_eq!(
        tool["inputSchema"]["properties"]["unit"]["enum"],
        json!(["token"])
    );
}

#[tokio::test]
async fn headers_agree_with_the_message_and_unknown_versions_and_methods_are_refused() {
    let world = gateway("").await;
    let ping = rpc("ping", &json!({}));
    let list = rpc("tools/list", &meta());
    for (body, headers, status, code) in [
        (&list, vec![], 400, -32_020),
        (
            &list,
            vec![("MCP-Protocol-Version", STATELESS)],
            400,
            -32_020,
        ),
        (
            &list,
            vec![
                ("MCP-Protocol-Version", STATELESS),
                ("Mcp-Method", "tools/call"),
            ],
            400,
            -32_020,
        ),
        (
            &list,
            vec![
                ("MCP-Protocol-Version", "2025-11-25"),
                ("Mcp-Method", "tools/list"),
            ],
            400,
            -32_020,
        ),
        (
            &ping,
            vec![("MCP-Protocol-Version", "2030-01-01")],
            400,
            -32_022,
        ),
        (
            &ping,
            vec![("MCP-Protocol-Version", STATELESS)],
            400,
            -32_602,
        ),
        (&rpc("resources/list", &json!({})), vec![], 200, -32_601),
        (
            &rpc("tools/call", &json!({"name": "get_nothing"})),
            vec![],
            200,
            -32_602,
        ),
        (&"[]".to_owned(), vec![], 400, -32_600),
        (&"{".to_owned(), vec![], 400, -32_700),
        (&"[".repeat(60_000), vec![], 400, -32_700),
    ] {
        let response = send(&world, body, &headers).await;
        let short: String = body.chars().take(99).collect();
        assert_eq!(
            (response.status, error_code(&response)),
            (status, code),
            "{short} {headers:?}"
        );
    }
}

#[tokio::test]
async fn a_page_of_another_origin_is_refused_unless_it_may_read_the_api() {
    let world = gateway("cors.origins = [\"https://dash.example.org\"]\n").await;
    let ping = rpc("ping", &json!({}));
    for (origin, status, allowed) in [
        ("http://localhost", 200, ""),
        ("http://evil.example", 403, ""),
        ("https://dash.example.org", 200, "https://dash.example.org"),
        ("https://dash.example.com", 403, ""),
        ("null", 403, ""),
    ] {
        let response = send(&world, &ping, &[("Origin", origin)]).await;
        let header = response.header("access-control-allow-origin");
        assert_eq!((response.status, header), (status, allowed), "{origin}");
    }
    let twice = [
        ("Origin", "http://localhost"),
        ("Origin", "http://localhost"),
    ];
    assert_eq!(send(&world, &ping, &twice).await.status, 403);
    let preflight = "OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: https://dash.example.org\r\n\
        Access-Control-Request-Method: POST\r\n\r\n";
    let mut connection = world.connect().await;
    connection.write(preflight.as_bytes()).await;
    let response = connection.read(false).await.unwrap();
    assert_eq!(
        (
            response.status,
            response.header("access-control-allow-methods")
        ),
        (204, "POST")
    );
    assert!(
        response
            .header("access-control-allow-headers")
            .contains("Mcp-Method")
    );
    assert_eq!(
        world
            .counted("scoregate_mcp_requests_total{result=\"preflight\"}")
            .await,
        1
    );
}

#[tokio::test]
async fn with_a_base_url_only_pages_of_its_origin_are_accepted_whatever_the_host_is() {
    let world = gateway("service.base_url = \"https://api.example/api/v1\"\n").await;
    for (origin, host, status) in [
        ("https://api.example", "api.example", 200),
        ("https://api.example", "10.0.0.1:8080", 200),
        ("http://evil.example", "evil.example", 403),
        ("https://evil.example", "evil.example", 403),
        ("http://localhost", "localhost", 403),
    ] {
        let message = post(&rpc("ping", &json!({})), &[("Origin", origin)]);
        let message = message.replace("Host: localhost", &format!("Host: {host}"));
        let mut connection = world.connect().await;
        connection.write(message.as_bytes()).await;
        let response = connection.read(false).await.unwrap();
        assert_eq!(response.status, status, "{origin} at {host}");
    }
    assert_eq!(
        world
            .counted("scoregate_mcp_requests_total{result=\"rejected\"}")
            .await,
        3
    );
}

#[tokio::test]
async fn other_methods_and_types_are_refused_and_without_the_setting_there_is_no_service() {
    let world = gateway("").await;
    let off = World::new().await;
    for method in ["GET", "HEAD", "DELETE", "PUT"] {
        let request = format!("{method} /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let mut connection = world.connect().await;
        connection.write(request.as_bytes()).await;
        let response = connection.read(method == "HEAD").await.unwrap();
        assert_eq!(
            (response.status, response.header("allow")),
            (405, "POST, OPTIONS"),
            "{method}"
        );
    }
    let bytes = post("{}", &[]).replace("application/json", "text/plain");
    let mut connection = world.connect().await;
    connection.write(bytes.as_bytes()).await;
    let response = connection.read(false).await.unwrap();
    assert_eq!((response.status, response.closes()), (415, true));
    assert_eq!(
        send(&off, "", &[]).await.header("allow"),
        "GET, HEAD, OPTIONS"
    );
}

#[tokio::test]
async fn what_needs_no_key_is_limited_by_address_and_calls_with_a_key_are_not() {
    let world = gateway("guard.per_minute = 3\n").await;
    let customer = world.paid().await;
    let ping = rpc("ping", &json!({}));
    let wrong = rpc("tools/call", &json!({"name": "get_nothing"}));
    for (body, status) in [
        (&ping, 200),
        (&"{".into(), 400),
        (&wrong, 200),
        (&ping, 429),
        (&"{".into(), 429),
    ] {
        assert_eq!(send(&world, body, &[]).await.status, status, "{body}");
    }
    for _ in 0..9 {
        let result = super::session::result(&world, &customer.key, "get_models", &json!({})).await;
        assert_eq!(result["isError"], false);
    }
    world.pass(Duration::from_mins(1));
    assert_eq!(send(&world, &ping, &[]).await.status, 200);
}
