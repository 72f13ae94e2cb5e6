//! Requests as bytes: tricks about where a request ends and what it means, each with the one answer it may get, what
//! becomes of the connection, and what the backend hears of it. Over plain TCP, over TLS, and cut in two.
//!
//! Not for: HTTP/2; nor for what the codec can be made to do over time (`deadlines`).

mod believed;
mod ends;
mod fields;
mod hosts;
mod keys;
mod row;
mod stage;
mod targets;

use std::collections::BTreeSet;
use std::time::Duration;

use crate::backend::Received;
use crate::client::Answer;
use crate::raw::{After, is_bare};

use row::{INDEX, MODELS, NO_BODY, Row, spelled_out, whole};
use stage::{Stage, Wire};

/// All of them.
const TABLES: [&[Row]; 12] = [
    ends::LENGTHS,
    ends::CODINGS,
    ends::CONNECTIONS,
    fields::LINES,
    fields::NAMES,
    fields::SIZES,
    targets::FORMS,
    targets::SPELLINGS,
    targets::SUFFIXES,
    hosts::HOSTS,
    keys::KEYS,
    believed::BELIEVED,
];

/// Where an answer never comes, the row fails.
const AT_LAST: Duration = Duration::from_secs(30);

fn rows() -> impl Iterator<Item = &'static Row> {
    TABLES.into_iter().flatten()
}

/// Plays a row, its bytes in these parts; what it came to if that is not what it has to come to.
async fn play(stage: &Stage, row: &Row, parts: &[&[u8]], plain: &Answer) -> Result<(), String> {
    let play = async {
        stage.forget().await;
        let heard_before = stage.backend.received().len();
        let mut wire = stage.open().await;
        for part in parts {
            wire.write(part).await;
            // Lets the other side read this part, where it comes to that, before the next one is there.
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
        }
        let after = answers(stage, row, parts, &mut wire, plain).await?;
        let heard = stage.backend.received();
        let heard: Vec<&str> = heard[heard_before..].iter().map(|one| canonical(stage, one)).collect();
        if after != row.after || heard != row.heard {
            return Err(format!("{after:?}, and the backend heard {heard:?}"));
        }
        if stage.documents() > heard.len() as u64 {
            return Err(format!("{} documents are stored", stage.documents()));
        }
        Ok(())
    };
    let played = tokio::time::timeout(AT_LAST, play).await;
    played.unwrap_or_else(|_| Err("it never ended".into())).map_err(|told| format!("{}: {told}", row.name))
}

/// Reads the answers of a row and finds out what became of the connection.
async fn answers(
    stage: &Stage,
    row: &Row,
    parts: &[&[u8]],
    wire: &mut Wire,
    plain: &Answer,
) -> Result<After, String> {
    let bytes = parts.concat();
    let is_head = bytes.starts_with(b"HEAD ");
    let mut closes = false;
    for (number, (status, code)) in row.told.iter().enumerate() {
        let told = wire.read(is_head).await.ok_or_else(|| format!("closed before answer {number}"))?;
        let said = match told.status {
            _ if is_bare(&told) && !is_head && told.status >= 400 => NO_BODY.to_owned(),
            400.. if !is_head => told.code(),
            400.. => (*code).to_owned(),
            _ => String::new(),
        };
        if (told.status, said.as_str()) != (*status, *code) {
            return Err(format!("answer {number} is {} {said}, not {status} {code}", told.status));
        }
        if said != NO_BODY && number == 0 {
            check(stage, &bytes, &told);
        }
        if row.heard == [MODELS] && told.status == 200 {
            let same = told.body == plain.body && told.header("etag") == plain.header("etag");
            (same || number > 0).then_some(()).ok_or("the answer is another one")?;
        }
        closes = told.closes();
    }
    if closes || row.after == After::Closed {
        let is_closed = wire.is_closed().await;
        return is_closed.then_some(After::Closed).ok_or_else(|| "something more was sent".into());
    }
    wire.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let next = wire.read(false).await.ok_or("closed unsaid")?;
    (next.body == b"alive\n").then_some(After::Open).ok_or_else(|| format!("in between: {}", next.status))
}

/// Holds an answer against what is true of all answers.
fn check(stage: &Stage, bytes: &[u8], told: &Answer) {
    let mut words = bytes.trim_ascii_start().split(u8::is_ascii_whitespace);
    let method = String::from_utf8_lossy(words.next().unwrap()).into_owned();
    let target = String::from_utf8_lossy(words.next().unwrap_or_default()).into_owned();
    let target = target.split('#').next().filter(|target| target.starts_with('/'));
    stage.rules.check(&method, target.unwrap_or("/"), told);
}

/// The target of what the backend heard, which has to be a GET in the one form that the gateway makes.
fn canonical<'r>(stage: &Stage, received: &'r Received) -> &'r str {
    let target = received.target();
    assert_eq!(received.line, format!("GET {target} HTTP/1.1"));
    let headers: BTreeSet<(&str, &str)> =
        received.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let host = stage.backend.address.to_string();
    let known = BTreeSet::from([
        ("accept", "application/json"),
        ("accept-encoding", "identity"),
        ("user-agent", concat!("scoregate/", env!("CARGO_PKG_VERSION"))),
        ("host", &host),
    ]);
    assert_eq!((headers, received.headers.len()), (known, 4));
    target
}

/// The answer that a good request gets.
async fn plain_answer(stage: &Stage) -> Answer {
    let mut wire = stage.open().await;
    wire.write(whole("/api/v1/models?period=24h", &stage.keys.key).as_bytes()).await;
    wire.read(false).await.unwrap()
}

async fn play_all(stage: &Stage) {
    let plain = plain_answer(stage).await;
    let mut wrong = Vec::new();
    for row in rows() {
        let bytes = spelled_out(row.bytes, &stage.keys);
        wrong.extend(play(stage, row, &[&bytes], &plain).await.err());
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn raw_bytes_there_are_more_than_150_different_malformed_requests() {
    assert!(rows().count() >= 150);
    for (number, row) in rows().enumerate() {
        let same = rows().skip(number + 1).find(|other| other.bytes == row.bytes || other.name == row.name);
        assert!(same.is_none(), "{}", row.name);
    }
}

#[tokio::test]
async fn raw_bytes_every_malformed_request_has_one_response_and_only_a_valid_get_reaches_the_backend() {
    play_all(&Stage::plain().await).await;
}

#[tokio::test]
async fn raw_bytes_every_malformed_request_has_the_same_response_over_tls() {
    play_all(&Stage::secure().await).await;
}

/// Where a request is cut in two: around every byte that means something, and nowhere near all the others.
fn cuts(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let means_something = |byte: u8| b"\r\n:/?# \t\0\x0b;,".contains(&byte) || byte > 0x7f;
    (1..bytes.len()).filter(move |at| bytes[at - 1..=*at].iter().any(|byte| means_something(*byte)))
}

#[tokio::test]
async fn raw_bytes_a_request_split_at_any_byte_means_the_same() {
    let stage = Stage::plain().await;
    let plain = plain_answer(&stage).await;
    let mut wrong = Vec::new();
    // One row in seven is of every table and of every way to end.
    for row in rows().step_by(7) {
        let bytes = spelled_out(row.bytes, &stage.keys);
        if bytes.len() > 600 {
            continue; // sizes have no places to be cut at
        }
        for at in cuts(&bytes) {
            let (one, other) = bytes.split_at(at);
            if let Err(told) = play(&stage, row, &[one, other], &plain).await {
                wrong.push(format!("cut at {at}, {told}"));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn raw_bytes_no_pipelined_request_after_an_ambiguous_one_is_answered() {
    let stage = Stage::plain().await;
    let good = whole("/api/v1/index", &stage.keys.key);
    for doubt in rows().filter(|row| row.after == After::Closed && row.heard.is_empty()).step_by(11) {
        stage.forget().await;
        let heard = stage.backend.received().len();
        let doubtful = spelled_out(doubt.bytes, &stage.keys);
        let mut wire = stage.open().await;
        wire.write(&[good.repeat(50).as_bytes(), &doubtful, good.repeat(49).as_bytes()].concat()).await;
        for number in 0..50 {
            let told = wire.read(false).await.unwrap_or_else(|| panic!("{}: {number}", doubt.name));
            assert_eq!(told.status, 200, "{}: {number}", doubt.name);
        }
        let told = wire.read(doubtful.starts_with(b"HEAD ")).await.unwrap();
        assert_eq!(told.status, doubt.told[0].0, "{}", doubt.name);
        assert!(wire.is_closed().await, "{}", doubt.name);
        let heard: Vec<Received> = stage.backend.received().split_off(heard);
        assert_eq!(
            heard.iter().map(|one| canonical(&stage, one)).collect::<Vec<_>>(),
            [INDEX],
            "{}",
            doubt.name
        );
    }
}

#[tokio::test]
async fn raw_bytes_a_hundred_pipelined_valid_requests_are_all_answered() {
    let stage = Stage::secure().await;
    let mut wire = stage.open().await;
    wire.write(whole("/api/v1/index", &stage.keys.key).repeat(100).as_bytes()).await;
    for _ in 0..100 {
        assert_eq!(wire.read(false).await.unwrap().status, 200);
    }
    assert_eq!(stage.backend.received().len(), 1);
}

#[tokio::test]
async fn raw_bytes_a_truncated_request_is_not_answered_as_a_complete_one() {
    let stage = Stage::plain().await;
    let good = whole("/api/v1/index", &stage.keys.key);
    for end in cuts(good.as_bytes()) {
        let mut wire = stage.open().await;
        wire.write(&good.as_bytes()[..end]).await;
        wire.finish().await;
        let told = wire.read(false).await;
        assert!(told.is_none_or(|told| told.status == 400 && is_bare(&told)), "{end}");
    }
    assert!(stage.backend.received().is_empty());
}
