//! A real SMTP server, `tests/servers/smtp.py`, with a behavior that the test chooses.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    time::Duration,
};

use scoregate_base::clock::Clock;
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::tls_backend::BackendAuthority;

/// Longest wait for an event: a test fails instead of hanging.
const MAX_WAIT: Duration = Duration::from_mins(2);

const REAL_NAMES: [&str; 2] = ["localhost", "127.0.0.1"];
pub const USER: &str = "mailer";
pub const PASSWORD: &str = "canary-of-the-mail-server";

/// The running server, which ends when this value is dropped.
pub struct SmtpTestServer {
    child: Child,
    /// The server ends when its standard input is closed.
    stdin: ChildStdin,
    events: UnboundedReceiver<Value>,
    pub port: u16,
}

/// How the server is started.
#[derive(Default)]
pub struct SmtpOptions<'a> {
    /// `starttls`, `implicit`, or none.
    pub tls: Option<(&'a str, &'a BackendAuthority)>,
    /// The names in the certificate; the real names if empty.
    pub certified_for: &'a [&'a str],
    pub needs_login: bool,
    /// The acts for the first mails, separated by commas.
    pub acts: &'a str,
}

impl SmtpTestServer {
    pub async fn start(options: SmtpOptions<'_>) -> Self {
        let mut command = Command::new(python());
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/smtp.py"));
        command.args(["--acts", options.acts]);
        if let Some((tls, authority)) = options.tls {
            let names = if options.certified_for.is_empty() {
                &REAL_NAMES
            } else {
                options.certified_for
            };
            authority.certify("mail", names, 2100);
            command
                .args(["--tls", tls, "--certificate"])
                .arg(authority.path("mail.pem"));
            command.arg("--key").arg(authority.path("mail.key"));
        }
        if options.needs_login {
            command.args(["--user", USER, "--password", PASSWORD]);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, mut events) = unbounded_channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                drop(sender.send(serde_json::from_str(&line).unwrap()));
            }
        });
        let stdin = child.stdin.take().unwrap();
        let listening = next(&mut events).await;
        let port = listening["port"]
            .as_u64()
            .and_then(|port| u16::try_from(port).ok());
        let port = port.unwrap_or_else(|| panic!("{listening}"));
        Self {
            child,
            stdin,
            events,
            port,
        }
    }

    /// The next event, which must have this name.
    pub async fn event(&mut self, name: &str) -> Value {
        let event = self.next_event().await;
        assert_eq!(event["event"], name, "{event}");
        event
    }

    /// The next event.
    pub async fn next_event(&mut self) -> Value {
        next(&mut self.events).await
    }

    /// Lets the server reply to the mails that it holds.
    pub fn release(&mut self) {
        self.stdin.write_all(b"release\n").unwrap();
    }

    /// The events since the last one that was read.
    pub fn events_so_far(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.events.try_recv().ok()).collect()
    }
}

impl Drop for SmtpTestServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

async fn next(events: &mut UnboundedReceiver<Value>) -> Value {
    let event = Clock::system()
        .within(MAX_WAIT, events.recv())
        .await
        .expect("an event in time");
    event.expect("the SMTP server runs")
}

fn python() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/smtp/bin/python")
}
