//! Malformed and unusual HTTP/1 requests as bytes. Each has exactly one allowed response, connection state afterwards
//! and set of upstream requests: over plain TCP, over TLS, and split in two.
//!
//! Not for: HTTP/2 (`http2`) and slow clients (`deadlines`).

mod fields;
mod hosts;
mod ignored_headers;
mod keys;
mod message_framing;
mod row;
mod server;
mod targets;

use std::{collections::BTreeSet, time::Duration};

use crate::{
    backend::Received,
    client::Response,
    raw::{After, is_codec_response},
};

use row::{INDEX, MODELS, NO_BODY, Row, complete, expanded};
use server::{TestServer, Wire};

const TABLES: [&[Row]; 13] = [
    message_framing::LENGTHS,
    message_framing::CODINGS,
    message_framing::CONNECTIONS,
    fields::LINES,
    fields::NAMES,
    fields::SIZES,
    targets::FORMS,
    targets::SPELLINGS,
    targets::SUFFIXES,
    hosts::HOSTS,
    keys::KEYS,
    ignored_headers::IGNORED,
    message_framing::PLAIN,
];

/// A row without a response fails after this time.
const TIMEOUT: Duration = Duration::from_secs(30);

fn rows() -> impl Iterator<Item = &'static Row> {
    TABLES.into_iter().flatten()
}

/// Sends the bytes of a row in these parts. Returns the difference from the expected outcome, if any.
async fn run_row(
    server: &TestServer,
    row: &Row,
    parts: &[&[u8]],
    plain: &Response,
) -> Result<(), String> {
    let run = async {
        server.clear_cache().await;
        let received_before = server.backend.received().len();
        let mut connection = server.open().await;
        for part in parts {
            connection.write(part).await;
            // Gives the server a chance to read this part before the next one arrives.
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
        }
        let after = read_responses(server, row, parts, &mut connection, plain).await?;
        let received = server.backend.received();
        let upstream: Vec<&str> = received[received_before..]
            .iter()
            .map(|one| canonical(server, one))
            .collect();
        if after != row.after || upstream != row.upstream {
            return Err(format!("{after:?}, and the backend received {upstream:?}"));
        }
        if server.documents() > upstream.len() as u64 {
            return Err(format!("{} documents are stored", server.documents()));
        }
        Ok(())
    };
    let result = tokio::time::timeout(TIMEOUT, run).await;
    result
        .unwrap_or_else(|_| Err("no response in time".into()))
        .map_err(|difference| format!("{}: {difference}", row.name))
}

/// Reads the responses of a row, and returns the state of the connection afterwards.
async fn read_responses(
    server: &TestServer,
    row: &Row,
    parts: &[&[u8]],
    connection: &mut Wire,
    plain: &Response,
) -> Result<After, String> {
    let bytes = parts.concat();
    let is_head = bytes.starts_with(b"HEAD ");
    let mut closes = false;
    for (number, (status, code)) in row.responses.iter().enumerate() {
        let response = connection
            .read(is_head)
            .await
            .ok_or_else(|| format!("closed before response {number}"))?;
        let actual = match response.status {
            _ if is_codec_response(&response) && !is_head && response.status >= 400 => {
                NO_BODY.to_owned()
            }
            400.. if !is_head => response.code(),
            400.. => (*code).to_owned(),
            _ => String::new(),
        };
        if (response.status, actual.as_str()) != (*status, *code) {
            return Err(format!(
                "response {number} is {} {actual}, not {status} {code}",
                response.status
            ));
        }
        if actual != NO_BODY && number == 0 {
            check(server, &bytes, &response);
        }
        if row.upstream == [MODELS] && response.status == 200 {
            let same =
                response.body == plain.body && response.header("etag") == plain.header("etag");
            (same || number > 0)
                .then_some(())
                .ok_or("another response than for {GET}")?;
        }
        closes = response.closes();
    }
    if closes || row.after == After::Closed {
        let is_closed = connection.is_closed().await;
        return is_closed
            .then_some(After::Closed)
            .ok_or_else(|| "more bytes were sent".into());
    }
    connection
        .write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    let next = connection
        .read(false)
        .await
        .ok_or("closed without Connection: close")?;
    (next.body == b"alive\n")
        .then_some(After::Open)
        .ok_or_else(|| format!("an extra response: {}", next.status))
}

/// Checks a response against the rules of all responses.
fn check(server: &TestServer, bytes: &[u8], response: &Response) {
    let mut words = bytes.trim_ascii_start().split(u8::is_ascii_whitespace);
    let method = String::from_utf8_lossy(words.next().unwrap()).into_owned();
    let target = String::from_utf8_lossy(words.next().unwrap_or_default()).into_owned();
    let path = target
        .split_once("://")
        .and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..]));
    let target = path
        .unwrap_or(&target)
        .split('#')
        .next()
        .filter(|target| target.starts_with('/'));
    server.rules.check(&method, target.unwrap_or("/"), response);
}

/// The target of an upstream request, which must be a GET in the only form that the gateway sends.
fn canonical<'r>(server: &TestServer, received: &'r Received) -> &'r str {
    let target = received.target();
    assert_eq!(received.line, format!("GET {target} HTTP/1.1"));
    let headers: BTreeSet<(&str, &str)> = received
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let host = server.backend.address.to_string();
    let known = BTreeSet::from([
        ("accept", "application/json"),
        ("accept-encoding", "identity"),
        (
            "user-agent",
            concat!("scoregate/", env!("CARGO_PKG_VERSION")),
        ),
        ("host", &host),
    ]);
    assert_eq!((headers, received.headers.len()), (known, 4));
    target
}

/// The response to a valid request.
async fn plain_response(server: &TestServer) -> Response {
    let mut connection = server.open().await;
    connection
        .write(complete("/api/v1/models?period=24h", &server.keys.key).as_bytes())
        .await;
    connection.read(false).await.unwrap()
}

async fn run_all(server: &TestServer) {
    let plain = plain_response(server).await;
    let mut wrong = Vec::new();
    for row in rows() {
        let bytes = expanded(row.bytes, &server.keys);
        wrong.extend(run_row(server, row, &[&bytes], &plain).await.err());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn raw_bytes_there_are_more_than_150_different_malformed_requests() {
    assert!(rows().count() >= 150);
    for (number, row) in rows().enumerate() {
        let same = rows()
            .skip(number + 1)
            .find(|other| other.bytes == row.bytes || other.name == row.name);
        assert!(same.is_none(), "{}", row.name);
    }
}

#[tokio::test]
async fn raw_bytes_every_malformed_request_has_one_response_and_only_a_valid_get_reaches_the_backend()
 {
    run_all(&TestServer::plain().await).await;
}

#[tokio::test]
async fn raw_bytes_every_malformed_request_has_the_same_response_over_tls() {
    run_all(&TestServer::secure().await).await;
}

/// The positions at which a request is split: before and after every byte with a meaning in HTTP.
fn cuts(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let has_meaning = |byte: u8| b"\r\n:/?# \t\0\x0b;,".contains(&byte) || byte > 0x7f;
    (1..bytes.len()).filter(move |at| bytes[at - 1..=*at].iter().any(|byte| has_meaning(*byte)))
}

#[tokio::test]
async fn raw_bytes_a_request_split_at_any_byte_means_the_same() {
    let server = TestServer::plain().await;
    let plain = plain_response(&server).await;
    let mut wrong = Vec::new();
    // Every seventh row is enough to cover every table and every outcome.
    for row in rows().step_by(7) {
        let bytes = expanded(row.bytes, &server.keys);
        if bytes.len() > 600 {
            continue; // rows about sizes: the split position does not matter
        }
        if row.upstream.contains(&"/api/v1/models/atlas.css") {
            continue; // requests for models that are not listed are limited
        }
        for at in cuts(&bytes) {
            let (one, other) = bytes.split_at(at);
            if let Err(difference) = run_row(&server, row, &[one, other], &plain).await {
                wrong.push(format!("split at {at}, {difference}"));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn raw_bytes_no_pipelined_request_after_an_ambiguous_one_is_answered() {
    let server = TestServer::plain().await;
    let good = complete("/api/v1/index", &server.keys.key);
    for row in rows()
        .filter(|row| row.after == After::Closed && row.upstream.is_empty())
        .step_by(11)
    {
        server.clear_cache().await;
        let received_before = server.backend.received().len();
        let ambiguous = expanded(row.bytes, &server.keys);
        let mut connection = server.open().await;
        connection
            .write(
                &[
                    good.repeat(50).as_bytes(),
                    &ambiguous,
                    good.repeat(49).as_bytes(),
                ]
                .concat(),
            )
            .await;
        for number in 0..50 {
            let response = connection
                .read(false)
                .await
                .unwrap_or_else(|| panic!("{}: {number}", row.name));
            assert_eq!(response.status, 200, "{}: {number}", row.name);
        }
        let response = connection
            .read(ambiguous.starts_with(b"HEAD "))
            .await
            .unwrap();
        assert_eq!(response.status, row.responses[0].0, "{}", row.name);
        assert!(connection.is_closed().await, "{}", row.name);
        let received: Vec<Received> = server.backend.received().split_off(received_before);
        let upstream: Vec<_> = received.iter().map(|one| canonical(&server, one)).collect();
        assert_eq!(upstream, [INDEX], "{}", row.name);
    }
}

#[tokio::test]
async fn raw_bytes_a_hundred_pipelined_valid_requests_are_all_answered() {
    let server = TestServer::secure().await;
    let mut connection = server.open().await;
    connection
        .write(
            complete("/api/v1/index", &server.keys.key)
                .repeat(100)
                .as_bytes(),
        )
        .await;
    for _ in 0..100 {
        assert_eq!(connection.read(false).await.unwrap().status, 200);
    }
    assert_eq!(server.backend.received().len(), 1);
}

#[tokio::test]
async fn raw_bytes_a_truncated_request_is_not_answered_as_a_complete_one() {
    let server = TestServer::plain().await;
    let good = complete("/api/v1/index", &server.keys.key);
    for end in cuts(good.as_bytes()) {
        let mut connection = server.open().await;
        connection.write(&good.as_bytes()[..end]).await;
        connection.finish().await;
        let response = connection.read(false).await;
        assert!(
            response.is_none_or(|response| response.status == 400 && is_codec_response(&response)),
            "{end}"
        );
    }
    assert!(server.backend.received().is_empty());
}
