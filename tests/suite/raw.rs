//! Requests as bytes, for those that no well-behaved client sends, and the state of the connection afterwards.

use serde_json::Value as Json;

use crate::client::{Connection, Response};
use crate::world::World;

/// The state of a connection after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The next request on it is answered.
    Open,
    /// It is closed without further bytes.
    Closed,
}

/// Sends bytes on a new connection and returns one response and the state of the connection, which must match the
/// response's `Connection` header.
pub async fn exchange(world: &World, bytes: &[u8]) -> (Response, After) {
    let mut connection = Connection::open(world.address()).await;
    connection.write(bytes).await;
    let response = connection.read(bytes.starts_with(b"HEAD ")).await;
    let response = response.unwrap_or_else(|| panic!("no response: {}", show(bytes)));
    if response.closes() {
        assert!(connection.is_closed().await, "it sent Connection: close and stayed open: {}", show(bytes));
        return (response, After::Closed);
    }
    connection.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let next = connection
        .read(false)
        .await
        .unwrap_or_else(|| panic!("closed without Connection: close: {}", show(bytes)));
    assert_eq!(next.body, b"alive\n", "an extra response: {}", show(bytes));
    (response, After::Open)
}

/// A GET with a key for a target of any bytes.
pub fn get(target: &[u8], key: &str) -> Vec<u8> {
    let head = format!(" HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n\r\n");
    [b"GET ", target, head.as_bytes()].concat()
}

/// Whether a response is from the codec: no body, and none of the API's headers.
pub fn is_codec_response(response: &Response) -> bool {
    response.body.is_empty() && response.header("x-request-id").is_empty()
}

/// Escapes bytes for a message.
pub fn show(bytes: &[u8]) -> String {
    bytes.iter().take(120).map(|byte| byte.escape_ascii().to_string()).collect()
}

/// An error's body without its request id.
pub fn without_request_id(response: &Response) -> Json {
    let mut body = response.json();
    let id = body.as_object_mut().and_then(|body| body.remove("request_id"));
    assert!(
        id.is_some_and(|id| id == response.header("x-request-id")),
        "the body contains another request id"
    );
    body
}
