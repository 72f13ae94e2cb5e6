//! Mail from the queue of a store to a real SMTP server.

mod endless_replies;
mod faults;
mod program;
pub mod smtp_server;
mod transports;
pub mod webhooks;

use std::{path::PathBuf, sync::Arc, time::Duration};

use scoregate::{
    instruments::MailInstruments,
    mail::{
        MailConfig, MailDelivery, MailSender, MailTransport, QueueMonitor, SenderMailbox,
        SmtpLogin, SmtpServer, SmtpTls,
    },
};
use scoregate_base::{
    clock::{Clock, ManualClock, Wall},
    secret::{Secret, SecretSetting},
};
use scoregate_observe::telemetry::metrics::MetricsRegistry;
use scoregate_store::{MailBacklog, MailKind, NewMail, Store};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::{tls_backend::BackendAuthority, world::NOON};
use smtp_server::{PASSWORD, SmtpOptions, SmtpTestServer, USER};

const RECIPIENT: &str = "ann.canary@example.org";
const SUBJECT: &str = "Sign in to the canary";
const TEXT: &str = "Open https://api.example.org/sign-in?token=canary-token";
const TIMEOUT: Duration = Duration::from_secs(30);

/// A queue with a manual clock, and a worker that empties it.
struct MailStation {
    store: Store,
    clock: Clock,
    manual_clock: ManualClock,
    registry: MetricsRegistry,
    instruments: Arc<MailInstruments>,
    config: MailConfig,
    worker: MailSender,
    directory: TempDir,
}

fn server(port: u16, tls: SmtpTls, ca_file: Option<PathBuf>) -> SmtpServer {
    SmtpServer {
        host: "127.0.0.1".into(),
        port,
        tls,
        ca_file,
        login: None,
    }
}

fn login(password: &str) -> SmtpLogin {
    SmtpLogin {
        username: USER.into(),
        password: SecretSetting::fixed(Secret::new(password.into())),
    }
}

impl MailStation {
    /// A station that sends to this server.
    fn to(server: SmtpServer) -> Self {
        Self::by(MailDelivery::Smtp(Box::new(server)))
    }

    /// A station that sends to this server without TLS.
    fn plain(server: &SmtpTestServer) -> Self {
        Self::to(self::server(server.port, SmtpTls::Off, None))
    }

    fn by(delivery: MailDelivery) -> Self {
        let directory = TempDir::new().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let (clock, manual_clock) = Clock::manual(Wall::parse_rfc3339(NOON).unwrap());
        let registry = MetricsRegistry::default();
        let instruments = Arc::new(MailInstruments::new(&registry));
        let from = SenderMailbox::parse("Example API <noreply@example.org>").unwrap();
        let config = MailConfig {
            from,
            delivery,
            timeout: TIMEOUT,
        };
        let worker = worker(&store, &config, &clock, &instruments);
        Self {
            store,
            clock,
            manual_clock,
            registry,
            instruments,
            config,
            worker,
            directory,
        }
    }

    /// Another worker on the same queue.
    fn another_worker(&self) -> MailSender {
        worker(&self.store, &self.config, &self.clock, &self.instruments)
    }

    fn mail(&self, id: &str) -> NewMail {
        let now = self.clock.now().wall;
        NewMail {
            kind: MailKind::SignIn,
            recipient: RECIPIENT.into(),
            subject: SUBJECT.into(),
            text: TEXT.into(),
            html: format!("<p>{TEXT}</p>"),
            webhook: String::new(),
            message_id: format!("{id}@example.org"),
            created_at: now,
            expires_at: now.plus(Duration::from_mins(15)),
        }
    }

    async fn queue(&self, ids: &[&str]) {
        self.store
            .queue_mail(ids.iter().map(|id| self.mail(id)).collect())
            .await
            .unwrap();
    }

    /// Sends the mails that are due, in one pass.
    async fn send(&mut self) {
        self.worker.send_due(&CancellationToken::new()).await;
    }

    fn pass(&self, time: Duration) {
        self.manual_clock.advance(time);
    }

    async fn backlog(&self) -> MailBacklog {
        self.store.mail_backlog().await.unwrap()
    }

    /// Why the last attempt for the oldest mail failed. The mail is still queued.
    async fn last_error(&self) -> String {
        self.backlog().await.last_error.unwrap()
    }

    /// Number of attempts with this result.
    fn counted(&self, result: &str) -> u32 {
        self.gauge(&format!(
            "scoregate_mails_total{{kind=\"sign_in\",result=\"{result}\"}}"
        ))
    }

    /// The value of a series.
    fn gauge(&self, series: &str) -> u32 {
        let text = self.registry.scrape().render();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {series} in {text}"))
            .parse()
            .unwrap()
    }
}

fn worker(
    store: &Store,
    config: &MailConfig,
    clock: &Clock,
    instruments: &Arc<MailInstruments>,
) -> MailSender {
    let transport = MailTransport::open(config, clock).unwrap();
    let store = store.clone();
    MailSender::new(
        store,
        config,
        transport,
        clock.clone(),
        Arc::clone(instruments),
    )
}

/// The message ids of the mails among these events, in order.
pub fn message_ids(events: &[serde_json::Value]) -> Vec<String> {
    let mails = events.iter().filter(|event| event["event"] == "mail");
    mails.map(|mail| header(mail, "Message-ID")).collect()
}

/// A header of a received mail, with its lines joined.
fn header(mail: &serde_json::Value, name: &str) -> String {
    let content = mail["content"].as_str().unwrap().replace("\r\n ", " ");
    let head = content.split("\r\n\r\n").next().unwrap();
    let found = head
        .split("\r\n")
        .find_map(|line| line.strip_prefix(&format!("{name}: ")));
    found
        .unwrap_or_else(|| panic!("no {name} in {head}"))
        .to_owned()
}
