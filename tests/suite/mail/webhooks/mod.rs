//! Messages to webhooks, from the queue of a store to a receiver behind real TLS.

mod challenges;
mod deliveries;
mod limits;
mod operator;
mod turns;

use std::{io, net::SocketAddr, sync::Mutex};

use data_encoding::BASE64;
use futures_util::future::BoxFuture;
use scoregate::{
    mail::{
        OperatorWebhook, PublicInternet, WebhookClient, WebhookNetwork, WebhookSender, WebhookUrl,
        challenge,
    },
    upstream::BackendTlsSettings,
};
use scoregate_base::keys::{Digest, OwnerId};
use scoregate_store::{
    LinkAllowance, NewSignInLink, OwnerChange, OwnerChangeKind, SignIn, StoreError, StoredWebhook,
    WebhookChange,
};
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    task::JoinHandle,
};

use super::*;
use crate::tls_backend::Handshake;

const HOST: &str = "hooks.example.org";
const URL: &str = "https://hooks.example.org:8443/in?x=1";
const WEBHOOK: &str = "hook_1";
const NOTICE: &str = "quota_80.app.2026-11-21";
const BODY: &str = r#"{"type":"quota_80","timestamp":"2026-11-21T12:00:00Z","data":{"used":8}}"#;
const OK: &str = "HTTP/1.1 204 No Content\r\n\r\n";
const PUBLIC: &str = "1.1.1.1:8443";
const SLOW: &str = "9.9.9.9:443";

/// A request, and a channel for the parts of its response. After the last part the connection is closed.
pub struct ReceivedMessage {
    pub head: String,
    pub body: String,
    server_name: Option<String>,
    reply: mpsc::Sender<String>,
}

/// Resolves every name to chosen addresses, and connects to the receiver instead of any of them. Names that begin with `slow`
/// lead to a host that accepts connections and sends nothing.
struct TestNetwork {
    receiver: SocketAddr,
    slow: TcpListener,
    /// Connections to the slow host.
    waiting: watch::Sender<usize>,
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
    /// The worker of the most recently received message.
    sending: Option<JoinHandle<Result<(), StoreError>>>,
    _authority: BackendAuthority,
}

impl WebhookNetwork for TestNetwork {
    fn resolve<'n>(&'n self, host: &'n str, _: u16) -> BoxFuture<'n, io::Result<Vec<SocketAddr>>> {
        if host.starts_with("slow") {
            return Box::pin(async { Ok(vec![SLOW.parse().unwrap()]) });
        }
        Box::pin(async { Ok(self.addresses.lock().unwrap().clone()) })
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        if address == SLOW.parse::<SocketAddr>().unwrap() {
            self.waiting.send_modify(|waiting| *waiting += 1);
            return Box::pin(TcpStream::connect(self.slow.local_addr().unwrap()));
        }
        self.connected.lock().unwrap().push(address);
        Box::pin(TcpStream::connect(self.receiver))
    }
}

impl ReceivedMessage {
    pub fn header(&self, name: &str) -> &str {
        let line = self
            .head
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.unwrap_or_else(|| panic!("no {name} in {}", self.head))
    }

    fn challenge(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(body["type"], "webhook.verification", "{body}");
        body["data"]["challenge"].as_str().unwrap().to_owned()
    }

    pub fn answer(self, text: impl Into<String>) {
        self.reply.try_send(text.into()).unwrap();
    }

    /// Sends the first part, and then repeats the other one as long as the client reads it.
    async fn answer_without_end(self, first: &str, again: &str) {
        let mut next = first;
        while self.reply.send(next.to_owned()).await.is_ok() {
            next = again;
        }
    }

    fn answer_with(self, body: &str) {
        self.answer(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
    }

    /// Computes the signature with a key, as the specification describes it.
    fn signature(&self, key: &[u8]) -> String {
        let id = self.header("webhook-id");
        let timestamp = self.header("webhook-timestamp");
        let pad = |with: u8| {
            let mut block = [with; 64];
            block
                .iter_mut()
                .zip(key)
                .for_each(|(byte, key)| *byte ^= key);
            block
        };
        let content = format!("{id}.{timestamp}.{}", self.body);
        let inner = Sha256::new()
            .chain_update(pad(0x36))
            .chain_update(content)
            .finalize();
        let outer = Sha256::new()
            .chain_update(pad(0x5c))
            .chain_update(inner)
            .finalize();
        format!("v1,{}", BASE64.encode(&outer))
    }
}

/// Accepts one request on each connection.
async fn receive(
    stream: TcpStream,
    acceptor: tokio_rustls::TlsAcceptor,
    out: mpsc::UnboundedSender<ReceivedMessage>,
) {
    let Ok(tls) = acceptor.accept(stream).await else {
        return;
    };
    let server_name = tls.get_ref().1.server_name().map(str::to_owned);
    read_and_answer(tls, server_name, out).await;
}

async fn read_and_answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    server_name: Option<String>,
    out: mpsc::UnboundedSender<ReceivedMessage>,
) {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        if stream.read_buf(&mut bytes).await.unwrap_or_default() == 0 {
            return;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .unwrap();
        if body.len() == length.parse::<usize>().unwrap() {
            break (head.to_owned(), body.to_owned());
        }
    };
    let (reply, mut parts) = mpsc::channel::<String>(1);
    out.send(ReceivedMessage {
        head,
        body,
        server_name,
        reply,
    })
    .unwrap();
    let mut has_answered = false;
    while let Some(part) = parts.recv().await {
        has_answered = true;
        if stream.write_all(part.as_bytes()).await.is_err() {
            return;
        }
    }
    if has_answered {
        drop(stream.shutdown().await);
    }
}

/// A receiver without TLS.
pub async fn clear_receiver() -> (SocketAddr, mpsc::UnboundedReceiver<ReceivedMessage>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (out, received) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(read_and_answer(stream, None, out.clone()));
        }
    });
    (address, received)
}

fn secret(text: &str) -> Secret {
    Secret::new(format!("whsec_{}", BASE64.encode(text.as_bytes())))
}

impl WebhookStation {
    /// A station with a webhook that has not answered its challenge.
    async fn start() -> Self {
        Self::with(URL, HOST).await
    }

    /// A station like `start`, with a URL and a name in the certificate.
    async fn with(url: &str, name: &str) -> Self {
        let mail = MailStation::to(server(1, SmtpTls::Off, None));
        let authority = BackendAuthority::new();
        authority.certify("hooks", &[name], 2030);
        let acceptor = authority.acceptor("hooks", Handshake::usual());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let network = Arc::new(TestNetwork {
            receiver: listener.local_addr().unwrap(),
            slow: TcpListener::bind("127.0.0.1:0").await.unwrap(),
            waiting: watch::Sender::default(),
            addresses: Mutex::new(vec![PUBLIC.parse().unwrap()]),
            connected: Mutex::default(),
        });
        let (out, received) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(receive(stream, acceptor.clone(), out.clone()));
            }
        });
        let settings = BackendTlsSettings {
            ca_file: Some(authority.ca_file()),
            ..BackendTlsSettings::default()
        };
        let tls = settings.load(&mail.clock).unwrap().client_config();
        let owner = sign_up(&mail).await;
        let station = Self {
            mail,
            network,
            tls,
            owner,
            received,
            sending: None,
            _authority: authority,
        };
        let challenge = Box::new(challenge(WEBHOOK, station.mail.clock.now().wall).unwrap());
        station
            .change(WebhookChange::Add {
                url: url.into(),
                secret: secret("first"),
                challenge,
            })
            .await;
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
        self.worker_with(None)
    }

    /// A worker of a gateway with this operator webhook.
    fn worker_with(&self, operator: Option<OperatorWebhook>) -> WebhookSender {
        let network = Arc::clone(&self.network) as Arc<dyn WebhookNetwork>;
        let client = WebhookClient::new(network, Arc::clone(&self.tls), self.mail.clock.clone());
        self.sender(client, operator)
    }

    fn sender(&self, client: WebhookClient, operator: Option<OperatorWebhook>) -> WebhookSender {
        let store = self.mail.store.clone();
        let clock = self.mail.clock.clone();
        let instruments = Arc::clone(&self.mail.instruments);
        WebhookSender::new(store, client, operator, clock, instruments)
    }

    /// The next message, sent by a worker in the background.
    async fn next(&mut self) -> ReceivedMessage {
        self.next_of(self.worker()).await
    }

    async fn next_of(&mut self, worker: WebhookSender) -> ReceivedMessage {
        let sending = tokio::spawn(async move { worker.send_due(&CancellationToken::new()).await });
        assert!(
            self.sending.replace(sending).is_none(),
            "another worker has not finished"
        );
        self.received.recv().await.unwrap()
    }

    /// Waits until the worker has recorded its results.
    async fn finished(&mut self) {
        self.sending
            .take()
            .expect("a worker")
            .await
            .unwrap()
            .unwrap();
    }

    /// Sends the messages that are due, and returns the reason of the failure.
    async fn failure(&self) -> String {
        self.worker()
            .send_due(&CancellationToken::new())
            .await
            .unwrap();
        self.last_failure().await
    }

    /// Why the last attempt failed; empty if no attempt for a queued message failed.
    async fn last_failure(&self) -> String {
        self.webhook().await.last_error.unwrap_or_default()
    }

    fn rows(&self, query: &str) -> String {
        crate::program::sql(self.mail.directory.path(), query)
            .trim()
            .to_owned()
    }

    fn queued(&self) -> String {
        self.rows("SELECT count(*) FROM mail_queue WHERE kind = 'webhook'")
    }

    async fn webhook(&self) -> StoredWebhook {
        self.mail
            .store
            .webhooks(self.owner.to_string())
            .await
            .unwrap()
            .remove(0)
    }

    async fn change(&self, change: WebhookChange) {
        self.change_owner(OwnerChangeKind::Webhook {
            id: WEBHOOK.into(),
            change,
        })
        .await;
    }

    async fn change_owner(&self, what: OwnerChangeKind) {
        let at = self.mail.clock.now().wall;
        let who = "test".to_owned();
        self.mail
            .store
            .change_owner(OwnerChange {
                at,
                who,
                owner: self.owner,
                what,
            })
            .await
            .unwrap();
    }

    async fn queue_notice(&self) {
        self.queue(&[NOTICE]).await;
    }

    /// Queues notices with these ids.
    async fn queue(&self, ids: &[&str]) {
        let expires_at = self.mail.clock.now().wall.plus(Duration::from_hours(72));
        let notice = |id: &&str| NewMail {
            kind: MailKind::Quota80,
            webhook: BODY.into(),
            expires_at,
            ..self.mail.mail(id)
        };
        self.mail
            .store
            .queue_once(ids.iter().map(notice).collect())
            .await
            .unwrap();
    }
}

async fn sign_up(mail: &MailStation) -> OwnerId {
    sign_up_as(mail, RECIPIENT).await
}

async fn sign_up_as(mail: &MailStation, email: &str) -> OwnerId {
    let now = mail.clock.now().wall;
    let token = Digest::of(email);
    let expires_at = now.plus(Duration::from_mins(15));
    let link = NewSignInLink {
        digest: token,
        email: email.into(),
        mailbox: email.into(),
        created_at: now,
        expires_at,
        allowance: LinkAllowance {
            since: now,
            links: 5,
        },
    };
    assert!(mail.store.send_link(link, mail.mail(email)).await.unwrap());
    let owner = OwnerId::mint().unwrap();
    let sign_in = SignIn {
        at: now,
        link: token,
        session: Digest::of(&format!("session of {email}")),
        expires_at,
        new_owner: owner,
        accepted_terms: Some("1".into()),
        notice: None,
        sign_up: None,
    };
    mail.store.sign_in(sign_in).await.unwrap();
    owner
}
