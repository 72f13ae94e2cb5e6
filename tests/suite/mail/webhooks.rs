//! Messages to webhooks, from the queue of a store to a receiver behind real TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;

use data_encoding::BASE64;
use futures_util::future::BoxFuture;
use scoregate::mail::{WebhookClient, WebhookNetwork, WebhookSender, challenge};
use scoregate::upstream::BackendTlsSettings;
use scoregate_base::keys::{Digest, OwnerId};
use scoregate_store::{
    LinkAllowance, NewSignInLink, OwnerChange, OwnerChangeKind, OwnerStore as _, SignIn, StoredWebhook,
    WebhookChange,
};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::tls_backend::Handshake;

const HOST: &str = "hooks.example.org";
const URL: &str = "https://hooks.example.org:8443/in?x=1";
const WEBHOOK: &str = "hook_1";
const NOTICE: &str = "quota_80.app.2026-11-21";
const BODY: &str = r#"{"type":"quota_80","timestamp":"2026-11-21T12:00:00Z","data":{"used":8}}"#;
const OK: &str = "HTTP/1.1 204 No Content\r\n\r\n";
const PUBLIC: &str = "1.1.1.1:8443";
const CLAIM: Duration = Duration::from_secs(90);

/// A request, and the way to answer it. Without an answer the connection is closed.
struct ReceivedMessage {
    head: String,
    body: String,
    server_name: Option<String>,
    reply: oneshot::Sender<String>,
}

/// Resolves every name to chosen addresses, and connects to the receiver instead of any of them.
struct TestNetwork {
    receiver: SocketAddr,
    addresses: Mutex<Vec<SocketAddr>>,
    connected: Mutex<Vec<SocketAddr>>,
}

/// An owner with a webhook, a worker, and the receiver of its messages.
struct WebhookStation {
    mail: MailStation,
    network: Arc<TestNetwork>,
    tls: Arc<rustls::ClientConfig>,
    owner: OwnerId,
    received: mpsc::UnboundedReceiver<ReceivedMessage>,
    _authority: BackendAuthority,
}

impl WebhookNetwork for TestNetwork {
    fn resolve<'n>(&'n self, _: &'n str, _: u16) -> BoxFuture<'n, io::Result<Vec<SocketAddr>>> {
        Box::pin(async { Ok(self.addresses.lock().unwrap().clone()) })
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        self.connected.lock().unwrap().push(address);
        Box::pin(TcpStream::connect(self.receiver))
    }
}

impl ReceivedMessage {
    fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_else(|| panic!("no {name} in {}", self.head))
    }

    fn challenge(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(body["type"], "webhook.verification", "{body}");
        body["data"]["challenge"].as_str().unwrap().to_owned()
    }

    fn answer(self, text: impl Into<String>) {
        self.reply.send(text.into()).unwrap();
    }

    fn answer_with(self, body: &str) {
        self.answer(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    }

    /// Computes the signature with a key, as the specification describes it.
    fn signature(&self, key: &[u8]) -> String {
        let (id, timestamp) = (self.header("webhook-id"), self.header("webhook-timestamp"));
        let pad = |with: u8| {
            let mut block = [with; 64];
            block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
            block
        };
        let content = format!("{id}.{timestamp}.{}", self.body);
        let inner = Sha256::new().chain_update(pad(0x36)).chain_update(content).finalize();
        let outer = Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize();
        format!("v1,{}", BASE64.encode(&outer))
    }
}

/// Accepts one request on each connection.
async fn receive(
    stream: TcpStream,
    acceptor: tokio_rustls::TlsAcceptor,
    out: mpsc::UnboundedSender<ReceivedMessage>,
) {
    let Ok(mut tls) = acceptor.accept(stream).await else { return };
    let server_name = tls.get_ref().1.server_name().map(str::to_owned);
    let mut bytes = Vec::new();
    let (head, body) = loop {
        if tls.read_buf(&mut bytes).await.unwrap_or_default() == 0 {
            return;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if body.len() == length.parse::<usize>().unwrap() {
            break (head.to_owned(), body.to_owned());
        }
    };
    let (reply, answer) = oneshot::channel();
    out.send(ReceivedMessage { head, body, server_name, reply }).unwrap();
    if let Ok(answer) = answer.await {
        drop(tls.write_all(answer.as_bytes()).await);
        drop(tls.shutdown().await);
    }
}

fn secret(text: &str) -> Secret {
    Secret::new(format!("whsec_{}", BASE64.encode(text.as_bytes())))
}

impl WebhookStation {
    /// A station with a webhook that has not answered its challenge.
    async fn start() -> Self {
        Self::with(URL, HOST).await
    }

    /// The same with a URL and a name in the certificate.
    async fn with(url: &str, name: &str) -> Self {
        let mail = MailStation::to(server(1, SmtpTls::Off, None));
        let authority = BackendAuthority::new();
        authority.certify("hooks", &[name], 2030);
        let acceptor = authority.acceptor("hooks", Handshake::usual());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let network = Arc::new(TestNetwork {
            receiver: listener.local_addr().unwrap(),
            addresses: Mutex::new(vec![PUBLIC.parse().unwrap()]),
            connected: Mutex::default(),
        });
        let (out, received) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(receive(stream, acceptor.clone(), out.clone()));
            }
        });
        let settings =
            BackendTlsSettings { ca_file: Some(authority.ca_file()), ..BackendTlsSettings::default() };
        let tls = settings.load(&mail.clock).unwrap().client_config();
        let owner = sign_up(&mail).await;
        let station = Self { mail, network, tls, owner, received, _authority: authority };
        let challenge = Box::new(challenge(WEBHOOK, station.mail.clock.now().wall).unwrap());
        station.change(WebhookChange::Add { url: url.into(), secret: secret("first"), challenge }).await;
        station
    }

    /// A station with a webhook that is active.
    async fn verified() -> Self {
        let mut station = Self::start().await;
        let message = station.next().await;
        let challenge = message.challenge();
        message.answer_with(&challenge);
        station.finished().await;
        assert!(station.webhook().await.verified_at.is_some());
        station
    }

    fn worker(&self) -> WebhookSender {
        let network = Arc::clone(&self.network) as Arc<dyn WebhookNetwork>;
        let client = WebhookClient::new(network, Arc::clone(&self.tls), self.mail.clock.clone());
        let store = Arc::clone(&self.mail.store) as Arc<dyn Store>;
        WebhookSender::new(store, client, self.mail.clock.clone(), Arc::clone(&self.mail.instruments))
    }

    /// The next message, sent by a worker that goes on in the background.
    async fn next(&mut self) -> ReceivedMessage {
        let worker = self.worker();
        tokio::spawn(async move { worker.send_due(&CancellationToken::new()).await });
        self.received.recv().await.unwrap()
    }

    /// Waits until no message is claimed: its result is recorded.
    async fn finished(&self) {
        let unclaimed = || {
            self.rows("SELECT count(*) FROM mail_queue WHERE kind = 'webhook' AND due_at > 1795000000000 AND attempts > 0 AND last_error IS NULL")
        };
        while unclaimed() != "0" {
            tokio::task::yield_now().await;
        }
    }

    /// Sends what is due, and returns why it failed.
    async fn failure(&self) -> String {
        self.worker().send_due(&CancellationToken::new()).await.unwrap();
        self.rows("SELECT coalesce(max(last_error), '') FROM mail_queue WHERE kind = 'webhook'")
    }

    fn rows(&self, query: &str) -> String {
        crate::program::sql(self.mail.directory.path(), query).trim().to_owned()
    }

    fn queued(&self) -> String {
        self.rows("SELECT count(*) FROM mail_queue WHERE kind = 'webhook'")
    }

    async fn webhook(&self) -> StoredWebhook {
        self.mail.store.webhooks(self.owner.to_string()).await.unwrap().remove(0)
    }

    async fn change(&self, change: WebhookChange) {
        self.change_owner(OwnerChangeKind::Webhook { id: WEBHOOK.into(), change }).await;
    }

    async fn change_owner(&self, what: OwnerChangeKind) {
        let (at, who) = (self.mail.clock.now().wall, "test".to_owned());
        self.mail.store.change_owner(OwnerChange { at, who, owner: self.owner, what }).await.unwrap();
    }

    async fn queue_notice(&self) {
        let expires_at = self.mail.clock.now().wall.plus(Duration::from_hours(72));
        let notice = NewMail { webhook: BODY.into(), expires_at, ..self.mail.mail(NOTICE) };
        self.mail.store.queue_once(vec![NewMail { kind: MailKind::Quota80, ..notice }]).await.unwrap();
    }
}

async fn sign_up(mail: &MailStation) -> OwnerId {
    let (now, token) = (mail.clock.now().wall, Digest::of("token"));
    let expires_at = now.plus(Duration::from_mins(15));
    let link = NewSignInLink {
        digest: token,
        email: RECIPIENT.into(),
        mailbox: RECIPIENT.into(),
        created_at: now,
        expires_at,
        allowance: LinkAllowance { since: now, links: 5 },
    };
    assert!(mail.store.send_link(link, mail.mail("link")).await.unwrap());
    let owner = OwnerId::mint().unwrap();
    let sign_in = SignIn {
        at: now,
        link: token,
        session: Digest::of("session"),
        expires_at,
        new_owner: owner,
        accepted_terms: Some("1".into()),
        notice: None,
    };
    mail.store.sign_in(sign_in).await.unwrap();
    owner
}

#[tokio::test]
async fn a_receiver_that_answered_its_challenge_gets_signed_notices() {
    let mut station = WebhookStation::start().await;
    station.queue_notice().await;
    assert_eq!(station.queued(), "1", "only the challenge: it is not active");
    let message = station.next().await;
    assert!(message.header("webhook-signature") == message.signature(b"first"));
    let challenge = message.challenge();
    message.answer_with(&format!(" {challenge}\n"));
    station.finished().await;
    assert!(station.webhook().await.verified_at.is_some());
    assert_eq!(station.queued(), "0");

    let notice = NewMail { webhook: BODY.into(), ..station.mail.mail("another") };
    station.mail.store.queue_once(vec![notice]).await.unwrap();
    let message = station.next().await;
    assert!(message.head.starts_with("POST /in?x=1 HTTP/1.1\r\n"), "{}", message.head);
    assert_eq!(message.header("host"), "hooks.example.org:8443");
    assert_eq!(message.header("content-type"), "application/json");
    assert_eq!(message.header("webhook-id"), "another");
    let seconds = station.mail.clock.now().wall.seconds().to_string();
    assert_eq!(message.header("webhook-timestamp"), seconds);
    assert_eq!(message.header("webhook-signature"), message.signature(b"first"));
    assert_eq!((message.body.as_str(), message.server_name.as_deref()), (BODY, Some(HOST)));
    message.answer(OK);
    station.finished().await;
    assert_eq!(station.queued(), "0");
    let connected = station.network.connected.lock().unwrap().clone();
    assert_eq!(connected, [PUBLIC.parse().unwrap(); 2], "the addresses that were checked");
    let sent = "scoregate_mails_total{kind=\"webhook\",result=\"sent\"}";
    assert_eq!(station.mail.gauge(sent), 2);
}

#[tokio::test]
async fn a_wrong_or_long_answer_to_the_challenge_does_not_activate_a_webhook() {
    let mut station = WebhookStation::start().await;
    for wrong in ["", "no", "{\"challenge\": \"no\"}"] {
        station.next().await.answer_with(wrong);
        station.finished().await;
        station.mail.pass(Duration::from_mins(1));
    }
    let message = station.next().await;
    let long = format!("{}{}", message.challenge(), " ".repeat(1_024));
    message.answer_with(&long);
    station.finished().await;
    station.mail.pass(Duration::from_mins(1));
    let message = station.next().await;
    let challenge = message.challenge();
    message.answer(format!("HTTP/1.1 201 Created\r\n\r\n{challenge}"));
    station.finished().await;
    assert!(station.webhook().await.verified_at.is_none());
    station.mail.pass(Duration::from_mins(2));
    let message = station.next().await;
    let json = format!("{{\"challenge\": \"{}\"}}", message.challenge());
    message.answer_with(&json);
    station.finished().await;
    assert!(station.webhook().await.verified_at.is_some());
}

#[tokio::test]
async fn a_message_is_repeated_with_its_id_until_it_is_answered_in_time() {
    let mut station = WebhookStation::verified().await;
    station.queue_notice().await;
    let mut late = Vec::new();
    for expected in ["no answer within 10 s", "answer with status 302", "closed before it", ""] {
        let message = station.next().await;
        assert_eq!((message.header("webhook-id"), message.body.as_str()), (NOTICE, BODY));
        assert_eq!(message.header("webhook-signature"), message.signature(b"first"));
        match expected {
            "no answer within 10 s" => {
                station.mail.pass(Duration::from_secs(10));
                late.push(message);
            }
            "answer with status 302" => {
                message.answer("HTTP/1.1 302 Found\r\nLocation: https://hooks.example.org/\r\n\r\n");
            }
            "closed before it" => drop(message),
            _ => message.answer(OK),
        }
        station.finished().await;
        let error =
            station.rows("SELECT coalesce(max(last_error), '') FROM mail_queue WHERE kind = 'webhook'");
        assert!(error.contains(expected), "{error}");
        station.mail.pass(Duration::from_mins(1));
    }
    assert_eq!(station.queued(), "0");
    assert!(station.received.try_recv().is_err(), "no redirect was followed");
}

#[tokio::test]
async fn no_connection_is_made_to_an_address_that_is_not_public() {
    let station = WebhookStation::start().await;
    for address in ["127.0.0.1:8443", "[::ffff:1.1.1.1]:8443", "169.254.169.254:8443"] {
        *station.network.addresses.lock().unwrap() = vec![PUBLIC.parse().unwrap(), address.parse().unwrap()];
        assert!(station.failure().await.contains("not public"), "{address}");
        station.mail.pass(Duration::from_mins(1));
    }
    assert!(station.network.connected.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_url_without_https_and_a_certificate_for_another_name_are_refused() {
    let clear = WebhookStation::with("http://hooks.example.org/", HOST).await;
    assert_eq!(clear.failure().await, "the URL is not usable");
    assert!(clear.network.connected.lock().unwrap().is_empty());
    let other = WebhookStation::with(URL, "other.example.org").await;
    assert_eq!(other.failure().await, "TLS failed");
}

#[tokio::test]
async fn a_message_of_a_worker_that_crashed_is_repeated_with_its_id_after_its_claim() {
    let mut station = WebhookStation::verified().await;
    station.queue_notice().await;
    let (worker, stop) = (station.worker(), CancellationToken::new());
    let first = tokio::select! {
        _ = worker.send_due(&stop) => panic!("there is no answer"),
        message = station.received.recv() => message.unwrap(),
    };
    drop(worker);
    station.queue_notice().await;
    assert_eq!(station.queued(), "1", "it is not queued again");
    station.mail.pass(CLAIM.saturating_sub(Duration::from_secs(1)));
    station.worker().send_due(&stop).await.unwrap();
    assert!(station.received.try_recv().is_err(), "the claim is valid");
    station.mail.pass(Duration::from_secs(1));
    let second = station.next().await;
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"));
    assert_eq!(first.body, second.body);
    second.answer(OK);
    station.finished().await;
    assert_eq!(station.queued(), "0");
}

#[tokio::test]
async fn after_a_rotation_both_secrets_sign_for_a_day() {
    let mut station = WebhookStation::verified().await;
    station.change(WebhookChange::Rotate(secret("second"))).await;
    for (pause, signs) in [(23, true), (1, false)] {
        station.mail.pass(Duration::from_hours(pause));
        let id = format!("after.{pause}");
        let expires_at = station.mail.clock.now().wall.plus(Duration::from_hours(1));
        let notice = NewMail { webhook: BODY.into(), expires_at, ..station.mail.mail(&id) };
        station.mail.store.queue_once(vec![notice]).await.unwrap();
        let message = station.next().await;
        let [new, old] = [b"second".as_slice(), b"first"].map(|key| message.signature(key));
        let expected = if signs { format!("{new} {old}") } else { new };
        assert_eq!(message.header("webhook-signature"), expected);
        message.answer(OK);
        station.finished().await;
    }
}

#[tokio::test]
async fn messages_expire_and_those_of_removed_webhooks_and_accounts_are_deleted() {
    let station = WebhookStation::verified().await;
    station.queue_notice().await;
    station.mail.pass(Duration::from_hours(72));
    station.failure().await;
    assert_eq!(station.queued(), "0", "expired");
    let expired = "scoregate_mails_total{kind=\"webhook\",result=\"expired\"}";
    assert_eq!(station.mail.gauge(expired), 1);
    for change in [
        OwnerChangeKind::Webhook { id: WEBHOOK.into(), change: WebhookChange::Remove },
        OwnerChangeKind::Delete { in_own_name: true },
    ] {
        let station = WebhookStation::verified().await;
        station.queue_notice().await;
        assert_eq!(station.queued(), "1");
        station.change_owner(change).await;
        assert_eq!(station.queued(), "0");
        assert_eq!(station.rows("SELECT count(*) FROM owner_webhooks"), "0");
    }
}
