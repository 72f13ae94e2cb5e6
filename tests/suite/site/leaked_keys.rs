//! The receiver of leaked keys.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use data_encoding::BASE64;
use parking_lot::Mutex;
use rcgen::{KeyPair, SigningKey as _};
use scoregate::registry::KeyDetails;
use scoregate_base::keys::{Digest, KeyForm};
use serde_json::{Value, json};

use super::browser::Browser;
use crate::{
    backend::{Received, json as json_response},
    client::{Connection, Response},
    world::{Customer, World, good},
};

pub const PATH: &str = "/secret-scanning";
const PLACE: &str = "https://github.com/octocat/Hello-World/blob/1234/foo/bar.txt";

/// The scanner, with the key that signs its reports.
pub struct Scanner {
    pair: KeyPair,
    identifier: String,
}

/// A token in the format of a report.
pub fn token(token: &str, url: &str) -> Value {
    json!({"token": token, "type": "scoregate_api_key", "url": url, "source": "content"})
}

impl Scanner {
    pub fn new(identifier: &str) -> Self {
        Self {
            pair: KeyPair::generate().unwrap(),
            identifier: identifier.into(),
        }
    }

    /// The scanner's public key in the published format.
    pub fn published(&self) -> String {
        let key = json!({"key_identifier": self.identifier, "key": self.pair.public_key_pem(), "is_current": true});
        json!({"public_keys": [key]}).to_string()
    }

    /// A gateway that accepts its reports.
    async fn gateway(&self, directory: &Path, settings: &str) -> World {
        let file = directory.join("public_keys.json");
        std::fs::write(&file, self.published()).unwrap();
        let leaks = format!("leaks.public_keys = \"{}\"\n{settings}", file.display());
        World::with_sign_up(&leaks).await
    }

    fn signature(&self, body: &[u8]) -> String {
        BASE64.encode(&self.pair.sign(body).unwrap())
    }

    /// The headers with the signature of a body.
    pub fn signed(&self, body: &[u8]) -> [(&'static str, String); 2] {
        [
            ("github-public-key-identifier", self.identifier.clone()),
            ("github-public-key-signature", self.signature(body)),
        ]
    }

    /// Sends a report.
    pub async fn report(&self, address: SocketAddr, tokens: &[Value]) -> Response {
        let body = Value::from(tokens.to_vec()).to_string();
        let signature = self.signature(body.as_bytes());
        post(
            address,
            body.as_bytes(),
            &[
                (IDENTIFIER, self.identifier.as_str()),
                (SIGNATURE, signature.as_str()),
            ],
        )
        .await
    }

    /// Sends a report, and returns the labels of its tokens.
    async fn labels(&self, world: &World, tokens: &[Value]) -> Vec<String> {
        let response = self.report(world.address(), tokens).await;
        assert_eq!(
            response.status,
            200,
            "{}",
            String::from_utf8_lossy(&response.body)
        );
        let labels = response.json();
        labels
            .as_array()
            .unwrap()
            .iter()
            .map(|label| label["label"].as_str().unwrap().to_owned())
            .collect()
    }
}

const IDENTIFIER: &str = "Github-Public-Key-Identifier";
const SIGNATURE: &str = "GITHUB-PUBLIC-KEY-SIGNATURE";

async fn post(address: SocketAddr, body: &[u8], headers: &[(&str, &str)]) -> Response {
    let mut head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut connection = Connection::open(address).await;
    connection
        .write(&[head.as_bytes(), b"\r\n", body].concat())
        .await;
    connection.read(false).await.expect("a response")
}

async fn status_of(world: &World, key: &str) -> u16 {
    world.get_by(key, "/api/v1/me").await.status
}

async fn counted(world: &World, result: &str) -> u32 {
    world
        .counted(&format!(
            "scoregate_leaked_keys_total{{result=\"{result}\"}}"
        ))
        .await
}

#[tokio::test]
async fn a_leaked_key_is_revoked_and_its_owner_is_told_where_it_was_found() {
    let scanner = Scanner::new("one");
    let directory = tempfile::tempdir().unwrap();
    let world = scanner.gateway(directory.path(), "").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (path, key) = ann.create("Station").await;
    let Customer { key: other, .. } = world.customer("pro").await;
    let unknown = KeyForm::new("sg_live", false).mint().unwrap();
    let mistyped = key.replace(key.chars().last().unwrap(), "~");
    let bad = "https://evil.example/<a href=x>\r\nBcc: all@example.org";
    let response = scanner
        .report(
            world.address(),
            &[
                token(&key, PLACE),
                token("ghp_0123456789abcdef0123456789abcdef0123", PLACE),
                token(unknown.expose(), PLACE),
                token(&mistyped, PLACE),
                token(&key, bad),
            ],
        )
        .await;
    assert_eq!(
        (response.status, response.header("content-type")),
        (200, "application/json")
    );
    let labels = response.json();
    let expected = |text: &str, label: &str| json!({"token_hash": Digest::of(text).to_string(), "token_type": "scoregate_api_key", "label": label});
    assert_eq!(labels[0], expected(&key, "true_positive"));
    assert_eq!(labels[2], expected(unknown.expose(), "false_positive"));
    let words: Vec<_> = labels
        .as_array()
        .unwrap()
        .iter()
        .map(|label| label["label"].as_str().unwrap())
        .collect();
    let yes = "true_positive";
    let no = "false_positive";
    assert_eq!(words, [yes, no, no, no, yes]);
    assert!(
        !String::from_utf8_lossy(&response.body).contains(&key),
        "no token is repeated"
    );

    assert_eq!(
        (
            status_of(&world, &key).await,
            status_of(&world, &other).await
        ),
        (401, 200)
    );
    let mails = world.rows(
        "SELECT replace(subject || ' ' || text || ' ' || html, char(10), ' ') FROM mail_queue
                            WHERE kind = 'notice' AND recipient = 'ann@example.org'",
    );
    let [mail] = mails.as_slice() else {
        panic!("{mails:?}")
    };
    assert_eq!(mail.matches(PLACE).count(), 2, "{mail}");
    assert!(
        mail.contains(&key[..12]) && mail.contains("was revoked") && !mail.contains(&key),
        "{mail}"
    );
    let links = mail.matches("<a href=\"http://127.0.0.1:8080/account\">");
    assert_eq!(mail.matches("href").count(), links.count(), "{mail}");
    let has_foreign_text = mail.contains("evil.example") || mail.contains("Bcc");
    assert!(!has_foreign_text, "{mail}");
    let id = path.rsplit('/').next().unwrap();
    let trail = world.rows(&format!(
        "SELECT who || ' ' || what || ' ' || detail FROM audit WHERE application = '{id}' ORDER BY id DESC LIMIT 2"
    ));
    assert!(
        trail
            .iter()
            .all(|row| row.starts_with("secret scanning revoke_leaked_key key sg_live_")),
        "{trail:?}"
    );
    assert!(
        trail
            .iter()
            .any(|row| row.ends_with(&format!(", found at {PLACE}"))),
        "{trail:?}"
    );
    assert_eq!(
        (
            counted(&world, "changed").await,
            counted(&world, "unknown").await
        ),
        (1, 1)
    );
    assert_eq!(
        (
            counted(&world, "foreign").await,
            counted(&world, "repeated").await
        ),
        (2, 0)
    );
}

#[tokio::test]
async fn a_report_that_is_sent_again_changes_no_reinstated_key_for_90_days() {
    let scanner = Scanner::new("one");
    let directory = tempfile::tempdir().unwrap();
    let world = scanner
        .gateway(directory.path(), "leaks.action = \"expire\"\n")
        .await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (path, key) = ann.create("Station").await;
    let expiry = || {
        world
            .rows("SELECT coalesce(expires_at, 'never') FROM keys")
            .remove(0)
    };
    let hour = Duration::from_hours(1);
    assert_eq!(
        scanner.labels(&world, &[token(&key, PLACE)]).await,
        ["true_positive"]
    );
    assert_eq!(status_of(&world, &key).await, 200);
    assert_ne!(expiry(), "never");
    ann.visit(&path).await;
    let digest = ann.hidden("key");
    let keep = format!("{path}/keep");
    assert_eq!(ann.submit(&keep, &[("key", &digest)]).await.status, 303);
    for _ in 0..2 {
        assert_eq!(
            scanner.labels(&world, &[token(&key, PLACE)]).await,
            ["true_positive"]
        );
        assert_eq!(expiry(), "never");
    }
    assert_eq!(counted(&world, "repeated").await, 2);
    assert_eq!(
        world.rows("SELECT count(*) FROM mail_queue WHERE kind = 'notice'"),
        ["1"]
    );

    world.pass(89 * 24 * hour);
    scanner.labels(&world, &[token(&key, PLACE)]).await;
    assert_eq!(expiry(), "never");
    world.pass(2 * 24 * hour);
    scanner.labels(&world, &[token(&key, PLACE)]).await;
    assert_ne!(expiry(), "never");
    assert_eq!(status_of(&world, &key).await, 200);
    world.pass(hour);
    assert_eq!(status_of(&world, &key).await, 401);
    assert_eq!(
        scanner.labels(&world, &[token(&key, "")]).await,
        ["true_positive"],
        "it has expired"
    );
    assert_eq!(
        world.rows("SELECT count(*) FROM mail_queue WHERE kind = 'notice'"),
        ["1"],
        "the first one is outdated, and an expired key causes none"
    );
}

#[tokio::test]
async fn a_body_that_no_published_key_has_signed_changes_nothing_and_costs_a_guard_token() {
    let scanner = Scanner::new("one");
    let directory = tempfile::tempdir().unwrap();
    let world = scanner
        .gateway(directory.path(), "guard.per_minute = 7\n")
        .await;
    let Customer { key, .. } = world.customer("pro").await;
    let body = Value::from(vec![token(&key, PLACE)]).to_string();
    let body = body.as_bytes();
    let signed = scanner.signature(body);
    let foreign = Scanner::new("one").signature(body);
    let address = world.address();
    let cut = &body[..body.len() - 1];
    let signed_cut = scanner.signature(cut);
    let spaced = [body, b" "].concat();
    let signature = signed.as_str();
    let foreign = foreign.as_str();
    for (body, headers, status) in [
        (body, vec![(IDENTIFIER, "two"), (SIGNATURE, signature)], 401),
        (body, vec![(IDENTIFIER, "one"), (SIGNATURE, foreign)], 401),
        (body, vec![(IDENTIFIER, "one"), (SIGNATURE, "?")], 401),
        (body, vec![(IDENTIFIER, "one")], 401),
        (cut, vec![(IDENTIFIER, "one"), (SIGNATURE, signature)], 401),
        (
            &spaced[..],
            vec![(IDENTIFIER, "one"), (SIGNATURE, signature)],
            401,
        ),
        (
            cut,
            vec![(IDENTIFIER, "one"), (SIGNATURE, signed_cut.as_str())],
            400,
        ),
        // The guard is used up.
        (body, vec![(IDENTIFIER, "two"), (SIGNATURE, signature)], 429),
    ] {
        let response = post(address, body, &headers).await;
        assert_eq!(response.status, status, "{headers:?}");
        assert_eq!(
            response.header("retry-after"),
            if status == 429 { "60" } else { "" }
        );
    }
    assert_eq!(status_of(&world, &key).await, 200);
    world.pass(Duration::from_mins(1));
    for _ in 0..20 {
        scanner.labels(&world, &[]).await;
    }
    assert_eq!(
        scanner.labels(&world, &[token(&key, PLACE)]).await,
        ["true_positive"],
        "reports cost no token"
    );
    assert_eq!(world.rows("SELECT revoked_at IS NULL FROM keys"), ["0"]);
}

#[tokio::test]
async fn a_report_has_at_most_1_mib_and_arrives_within_5_seconds() {
    let scanner = Scanner::new("one");
    let directory = tempfile::tempdir().unwrap();
    let world = scanner.gateway(directory.path(), "").await;
    for (size, status) in [(1 << 20, 200), ((1 << 20) + 1, 413)] {
        let mut body = vec![b' '; size];
        body.splice(..2, *b"[]");
        let signature = scanner.signature(&body);
        let headers = [(IDENTIFIER, "one"), (SIGNATURE, signature.as_str())];
        let answered = post(world.address(), &body, &headers).await;
        assert_eq!(answered.status, status);
    }
    let signature = scanner.signature(b"[]");
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: x\r\n{IDENTIFIER}: one\r\n{SIGNATURE}: {signature}\r\nContent-Length: 9\r\n\r\n["
    );
    let mut slow = world.connect().await;
    slow.write(head.as_bytes()).await;
    let mut reading = Box::pin(slow.read(false));
    let response = loop {
        if let std::task::Poll::Ready(response) = futures_util::poll!(&mut reading) {
            break response.unwrap();
        }
        world.pass(Duration::from_millis(100));
        tokio::task::yield_now().await;
    };
    assert_eq!((response.status, response.closes()), (408, true));
}

#[tokio::test]
async fn no_body_is_awaited_after_a_head_that_cannot_be_valid() {
    let scanner = Scanner::new("one");
    let directory = tempfile::tempdir().unwrap();
    let world = scanner.gateway(directory.path(), "").await;
    let signature = scanner.signature(b"[]");
    let long = BASE64.encode(&[0x30, 0x84, 0, 0, 0, 6, 2, 1, 1, 2, 1, 1]);
    for (identifier, signature) in [
        ("two", signature.as_str()),
        ("one", "x"),
        ("one", "MEQ="),
        ("one", &long),
        ("one", &signature.to_lowercase()),
    ] {
        let mut connection = world.connect().await;
        let head = format!(
            "POST {PATH} HTTP/1.1\r\nHost: x\r\n{IDENTIFIER}: {identifier}\r\n{SIGNATURE}: {signature}\r\nContent-Length: 9\r\n\r\n["
        );
        connection.write(head.as_bytes()).await;
        let refused = connection.read(false).await.unwrap();
        assert_eq!(
            (refused.status, refused.closes()),
            (401, true),
            "{signature}"
        );
    }
}

#[tokio::test]
async fn other_methods_have_an_allow_header_of_their_own_and_without_the_setting_there_is_no_receiver()
 {
    let scanner = Scanner::new("one");
    let directory = tempfile::tempdir().unwrap();
    let world = scanner.gateway(directory.path(), "").await;
    let send = async |world: &World, method: &str| {
        let request = format!("{method} {PATH} HTTP/1.1\r\nHost: x\r\n\r\n");
        let mut connection = world.connect().await;
        connection.write(request.as_bytes()).await;
        connection.read(method == "HEAD").await.unwrap()
    };
    for method in ["GET", "HEAD", "PUT", "OPTIONS", "DELETE"] {
        let response = send(&world, method).await;
        assert_eq!(
            (response.status, response.header("allow")),
            (405, "POST"),
            "{method}"
        );
    }
    let off = World::new().await;
    assert_eq!(
        send(&off, "GET").await.status,
        401,
        "as any path of the API"
    );
    let response = post(off.address(), b"", &[]).await;
    assert_eq!(
        (response.status, response.header("allow")),
        (405, "GET, HEAD, OPTIONS")
    );
}

#[tokio::test]
async fn reports_of_any_size_are_received_over_http2() {
    let scanner = Scanner::new("one");
    let directory = tempfile::tempdir().unwrap();
    let world = scanner.gateway(directory.path(), "").await;
    let client = world.http2_client().await;
    for size in [2, 100_000, 1 << 20, 1 << 20] {
        let mut body = vec![b' '; size];
        body.splice(..2, *b"[]");
        let signature = scanner.signature(&body);
        let headers = [(IDENTIFIER, "one"), (SIGNATURE, signature.as_str())];
        let response = client
            .sends("POST", PATH, &headers, body.leak())
            .await
            .unwrap();
        assert_eq!(
            (response.status, response.body),
            (200, b"[]".to_vec()),
            "{size}"
        );
    }
    let refused = client
        .sends(
            "POST",
            PATH,
            &[(IDENTIFIER, "two")],
            vec![b' '; 1 << 20].leak(),
        )
        .await;
    assert!(refused.is_none_or(|response| response.status == 401));
}

#[tokio::test]
async fn a_report_of_1000_keys_is_answered_while_other_requests_are() {
    let scanner = Scanner::new("one");
    let directory = tempfile::tempdir().unwrap();
    let world = scanner.gateway(directory.path(), "").await;
    let owner = world.customer("pro").await;
    let form = KeyForm::new("sg_live", false);
    let mut keys = Vec::new();
    for number in 0..1_000 {
        let secret = form.mint().unwrap();
        if number % 5 == 0 {
            let issued = world
                .running
                .registrar
                .add_key("test", owner.id, KeyDetails::default())
                .await
                .unwrap();
            keys.push(issued.key.expose().to_owned());
        } else {
            keys.push(secret.expose().to_owned());
        }
    }
    let tokens: Vec<Value> = keys.iter().map(|key| token(key, PLACE)).collect();
    let (labels, other) = tokio::join!(
        scanner.labels(&world, &tokens),
        status_of(&world, &owner.key)
    );
    assert_eq!((labels.len(), other), (1_000, 200));
    assert_eq!(
        labels
            .iter()
            .filter(|label| *label == "true_positive")
            .count(),
        200
    );
    assert_eq!(
        (
            counted(&world, "changed").await,
            counted(&world, "unknown").await
        ),
        (200, 800)
    );
    assert_eq!(
        world.rows("SELECT count(*) FROM keys WHERE revoked_at IS NULL"),
        ["1"]
    );
}

#[tokio::test]
async fn the_public_keys_of_a_url_are_fetched_by_the_clock_and_never_because_of_a_request() {
    let published = Arc::new(Mutex::new(Scanner::new("one").published()));
    let one = Scanner::new("one");
    let two = Scanner::new("two");
    *published.lock() = one.published();
    let served = Arc::clone(&published);
    let script = move |received: &Received| {
        if received.target().ends_with("/keys") {
            json_response(&served.lock())
        } else {
            good(received)
        }
    };
    let settings = "leaks.public_keys = \"{backend}/keys\"\nguard.per_minute = 1000000\n";
    let world = World::with(settings, script).await;
    let fetches = || {
        world
            .backend
            .received()
            .iter()
            .filter(|received| received.target().ends_with("/keys"))
            .count()
    };
    let accepted = async |scanner: &Scanner| {
        while scanner.report(world.address(), &[]).await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    accepted(&one).await;
    *published.lock() = two.published();
    for _ in 0..20 {
        assert_eq!(two.report(world.address(), &[]).await.status, 401);
    }
    assert_eq!(fetches(), 1);
    world.pass(Duration::from_hours(1));
    accepted(&two).await;
    assert_eq!(fetches(), 2);
    assert_eq!(one.report(world.address(), &[]).await.status, 401);
    // An unusable list is ignored, and the list is fetched again after five minutes.
    "no list".clone_into(&mut published.lock());
    world.pass(Duration::from_hours(1));
    while fetches() < 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(two.report(world.address(), &[]).await.status, 200);
}

#[tokio::test]
async fn a_changed_file_of_public_keys_is_read_within_10_seconds() {
    let one = Scanner::new("one");
    let two = Scanner::new("two");
    let directory = tempfile::tempdir().unwrap();
    let world = one
        .gateway(directory.path(), "guard.per_minute = 1000000\n")
        .await;
    assert_eq!(one.report(world.address(), &[]).await.status, 200);
    std::fs::write(directory.path().join("public_keys.json"), two.published()).unwrap();
    assert_eq!(two.report(world.address(), &[]).await.status, 401);
    world.pass(Duration::from_secs(10));
    while two.report(world.address(), &[]).await.status != 200 {
        tokio::task::yield_now().await;
    }
    assert_eq!(one.report(world.address(), &[]).await.status, 401);
}
