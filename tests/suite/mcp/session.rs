//! A client of the Model Context Protocol, as bytes.

use serde_json::{Value, json};

use crate::{
    backend::{Act, Received},
    client::{Connection, Response},
    world::{World, good},
};

/// The setting that switches the service on.
pub const ON: &str = "mcp.enabled = true\n";

/// A gateway with the service.
pub async fn gateway(settings: &str) -> World {
    gateway_of(settings, good).await
}

pub async fn gateway_of(
    settings: &str,
    script: impl Fn(&Received) -> Act + Send + Sync + 'static,
) -> World {
    World::with(&format!("{ON}{settings}"), script).await
}

/// A JSON-RPC request.
pub fn rpc(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string()
}

/// A tool call.
pub fn call(tool: &str, arguments: &Value) -> String {
    rpc("tools/call", &json!({"name": tool, "arguments": arguments}))
}

/// The bytes of a POST with this body.
pub fn post(body: &str, headers: &[(&str, &str)]) -> String {
    let mut head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in [("Content-Type", "application/json")].iter().chain(headers) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    format!("{head}\r\n{body}")
}

/// Sends a message on a new connection.
pub async fn send(world: &World, body: &str, headers: &[(&str, &str)]) -> Response {
    let mut connection = world.connect().await;
    send_on(&mut connection, body, headers).await
}

pub async fn send_on(
    connection: &mut Connection,
    body: &str,
    headers: &[(&str, &str)],
) -> Response {
    connection.write(post(body, headers).as_bytes()).await;
    connection.read(false).await.expect("a response")
}

/// The result of a call with a key.
pub async fn result(world: &World, key: &str, tool: &str, arguments: &Value) -> Value {
    let response = send(world, &call(tool, arguments), &[("X-API-Key", key)]).await;
    assert_eq!(
        response.status,
        200,
        "{}",
        String::from_utf8_lossy(&response.body)
    );
    response.json()["result"].clone()
}
