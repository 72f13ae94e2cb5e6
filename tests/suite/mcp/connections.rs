//! Connections of language models: they are kept open after a message of known length, and closed after anything else.

use std::time::Duration;

use serde_json::json;

use super::session::{call, gateway, post, rpc, send_on};

#[tokio::test]
async fn a_connection_serves_many_calls_and_other_requests_between_them() {
    let world = gateway("").await;
    let customer = world.paid().await;
    let mut connection = world.connect().await;
    for number in 0..20 {
        let called = send_on(
            &mut connection,
            &call("get_models", &json!({})),
            &[("X-API-Key", &customer.key)],
        )
        .await;
        assert_eq!((called.status, called.closes()), (200, false), "{number}");
        let read = connection
            .send(world.get("/api/v1/index").key(&customer.key))
            .await;
        assert_eq!((read.status, read.closes()), (200, false), "{number}");
    }
}

#[tokio::test]
async fn messages_in_one_piece_or_byte_by_byte_are_answered_in_order() {
    let world = gateway("").await;
    let customer = world.paid().await;
    let key = [("X-API-Key", customer.key.as_str())];
    let one = call("get_index", &json!({}));
    let other = call("get_model", &json!({"id": "atlas"}));
    let bytes = [post(&one, &key), post(&other, &key)].concat();
    for part in [1, 7, bytes.len()] {
        let mut connection = world.connect().await;
        for piece in bytes.as_bytes().chunks(part) {
            connection.write(piece).await;
        }
        for field in ["index", "model"] {
            let response = connection.read(false).await.unwrap();
            assert_eq!(
                (response.status, response.closes()),
                (200, false),
                "{field} by {part}"
            );
        }
    }
}

#[tokio::test]
async fn what_follows_a_message_is_checked_like_the_first_request() {
    let world = gateway("").await;
    let ping = post(&rpc("ping", &json!({})), &[]);
    for smuggled in [
        "GET /api/v1/index#a HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /api/v1/index HTTP/1.1\nHost: localhost\n\n",
        "GET /api/v1/index HTTP/1.1\r\nHost: localhost\n\r\n",
        "{\"jsonrpc\":\"2.0\"}\r\n\r\n",
    ] {
        for together in [true, false] {
            let mut connection = world.connect().await;
            if together {
                connection
                    .write([&ping, smuggled].concat().as_bytes())
                    .await;
                assert_eq!(connection.read(false).await.unwrap().status, 200);
            } else {
                connection.write(ping.as_bytes()).await;
                assert_eq!(connection.read(false).await.unwrap().status, 200);
                connection.write(smuggled.as_bytes()).await;
            }
            let refused = connection.read(false).await.unwrap();
            assert_eq!(refused.status, 400, "{smuggled:?} {together}");
            assert!(connection.is_closed().await, "{smuggled:?} {together}");
        }
    }
}

#[tokio::test]
async fn a_message_of_another_framing_closes_the_connection() {
    let world = gateway("").await;
    let ping = rpc("ping", &json!({}));
    let plain = post(&ping, &[]);
    let long = post(&"x".repeat((64 << 10) + 1), &[]);
    let chunked = plain.replace(
        &format!("Content-Length: {}", ping.len()),
        "Transfer-Encoding: chunked",
    );
    let empty = post("", &[]);
    let follow = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (request, status) in [
        (&long, 413),
        (&chunked, 400),
        (&plain.replace("/mcp", "/mcp/"), 400),
    ] {
        let mut connection = world.connect().await;
        connection
            .write([request, follow].concat().as_bytes())
            .await;
        let response = connection.read(false).await.unwrap();
        assert_eq!((response.status, response.closes()), (status, true));
        assert!(connection.read(false).await.is_none(), "no request follows");
    }
    // There is no body: the next bytes are a request.
    let mut connection = world.connect().await;
    connection.write([&empty, follow].concat().as_bytes()).await;
    assert_eq!(connection.read(false).await.unwrap().status, 400);
    assert_eq!(connection.read(false).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_message_arrives_within_5_seconds_and_takes_a_guard_token_until_then() {
    let world = gateway("guard.per_minute = 1\n").await;
    let mut slow = world.connect().await;
    let bytes = post(&rpc("ping", &json!({})), &[]);
    let (begin, rest) = bytes.split_at(bytes.len() - 3);
    slow.write(begin.as_bytes()).await;
    let mut reading = Box::pin(slow.read(false));
    let response = loop {
        if let std::task::Poll::Ready(response) = futures_util::poll!(&mut reading) {
            break response.unwrap();
        }
        world.pass(Duration::from_millis(100));
        tokio::task::yield_now().await;
    };
    drop(reading);
    assert_eq!(
        (response.status, response.closes()),
        (408, true),
        "{rest} is missing"
    );
}

#[tokio::test]
async fn messages_over_http2_are_answered_on_one_connection() {
    let world = gateway("").await;
    let customer = world.paid().await;
    let client = world.http2_client().await;
    let body: &'static [u8] = call("get_index", &json!({})).into_bytes().leak();
    for _ in 0..3 {
        let headers = [
            ("content-type", "application/json"),
            ("x-api-key", customer.key.as_str()),
        ];
        let response = client.sends("POST", "/mcp", &headers, body).await.unwrap();
        assert_eq!(
            (response.status, &response.json()["result"]["isError"]),
            (200, &json!(false))
        );
    }
}
