//! A scriptable backend on a real socket. It records every request, answers by script, and can hold back responses
//! until the test releases them, which makes races reproducible.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// The backend's reaction to one request.
#[derive(Clone, Debug)]
pub enum Act {
    /// Sends these bytes and keeps the connection open.
    Raw(Vec<u8>),
    /// Sends these bytes and closes the connection.
    RawThenClose(Vec<u8>),
    /// Sends the parts in order, each held back as responses are, and keeps the connection open.
    Parts(Vec<Vec<u8>>),
    /// Sends the first bytes, then the second ones this many times, and keeps the connection open.
    Flood(Vec<u8>, Vec<u8>, usize),
    /// Sends these bytes, and closes the connection at the next release.
    RawThenCloseLater(Vec<u8>),
    /// Sends these bytes, and closes the connection when the next request has arrived, without reading it.
    RawThenHangUp(Vec<u8>),
    /// Sends these bytes after this time, and keeps the connection open.
    Slow(Duration, Vec<u8>),
    /// Never responds.
    Hang,
}

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// `GET /models?period=24h HTTP/1.1`
    pub line: String,
    /// Header fields, names in lower case, in order.
    pub headers: Vec<(String, String)>,
    /// The number of the connection, from 0.
    pub connection: usize,
}

impl Received {
    pub fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap()
    }
}

type Script = Box<dyn Fn(&Received) -> Act + Send + Sync>;

struct Inner {
    script: Mutex<Script>,
    once: Mutex<VecDeque<Act>>,
    received: watch::Sender<Vec<Received>>,
    gate: Semaphore,
    open: watch::Sender<bool>,
    /// Number of sent parts of responses, or of connections closed instead.
    sent: watch::Sender<usize>,
    under_way: AtomicUsize,
    max_concurrent: AtomicUsize,
}

#[derive(Clone)]
pub struct Backend {
    inner: Arc<Inner>,
    pub address: SocketAddr,
}

pub fn json(body: &str) -> Act {
    respond("200 OK", &[("content-type", "application/json")], body)
}

/// A response with a content length.
pub fn respond(status: &str, headers: &[(&str, &str)], body: &str) -> Act {
    let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    Act::Raw(format!("{text}\r\n{body}").into_bytes())
}

impl Backend {
    /// Starts one that responds to every request by `script`.
    pub async fn start(script: impl Fn(&Received) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner {
            script: Mutex::new(Box::new(script)),
            once: Mutex::default(),
            received: watch::Sender::new(Vec::new()),
            gate: Semaphore::new(0),
            open: watch::Sender::new(true),
            sent: watch::Sender::new(0),
            under_way: AtomicUsize::new(0),
            max_concurrent: AtomicUsize::new(0),
        });
        let backend = Self { inner, address };
        let accepting = backend.clone();
        tokio::spawn(async move {
            for connection in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                tokio::spawn(accepting.clone().serve_connection(stream, connection));
            }
        });
        backend
    }

    pub fn url(&self) -> String {
        format!("http://{}/api/v1", self.address)
    }

    /// Replaces the script.
    pub fn set_script(&self, script: impl Fn(&Received) -> Act + Send + Sync + 'static) {
        *self.inner.script.lock().unwrap() = Box::new(script);
    }

    /// Responds to the next request with this act instead of the script.
    pub fn next(&self, act: Act) {
        self.inner.once.lock().unwrap().push_back(act);
    }

    /// Holds back every response until [`Backend::release`].
    pub fn hold(&self) {
        self.inner.open.send_replace(false);
    }

    /// Releases this many responses.
    pub fn release(&self, responses: usize) {
        self.inner.gate.add_permits(responses);
    }

    /// Releases all responses, current and later ones.
    pub fn open(&self) {
        self.inner.open.send_replace(true);
    }

    /// All requests so far.
    pub fn received(&self) -> Vec<Received> {
        self.inner.received.borrow().clone()
    }

    /// Number of requests whose target has this prefix.
    pub fn count(&self, prefix: &str) -> usize {
        self.received().iter().filter(|received| received.target().starts_with(prefix)).count()
    }

    /// Waits until this many requests have arrived in total.
    pub async fn has_received(&self, requests: usize) {
        self.inner.received.subscribe().wait_for(|all| all.len() >= requests).await.unwrap();
    }

    /// Waits until this many parts of responses have been sent in total.
    pub async fn has_sent(&self, parts: usize) {
        self.inner.sent.subscribe().wait_for(|sent| *sent >= parts).await.unwrap();
    }

    /// Maximum number of concurrent requests whose response had not begun.
    pub fn max_concurrent(&self) -> usize {
        self.inner.max_concurrent.load(Ordering::SeqCst)
    }

    async fn serve_connection(self, mut stream: TcpStream, connection: usize) {
        let mut buffer = Vec::new();
        while let Some(received) = read_request(&mut stream, &mut buffer, connection).await {
            let under_way = self.inner.under_way.fetch_add(1, Ordering::SeqCst) + 1;
            self.inner.max_concurrent.fetch_max(under_way, Ordering::SeqCst);
            self.inner.received.send_modify(|all| all.push(received.clone()));
            let scripted = self.inner.once.lock().unwrap().pop_front();
            let act = scripted.unwrap_or_else(|| (self.inner.script.lock().unwrap())(&received));
            self.wait_for_release().await;
            // Before the response: its effects may be visible before this task runs again.
            self.inner.under_way.fetch_sub(1, Ordering::SeqCst);
            let keeps_connection = self.perform(act, &mut stream).await;
            if keeps_connection != Some(true) {
                break;
            }
        }
        drop(stream);
        self.inner.sent.send_modify(|sent| *sent += 1);
    }

    async fn wait_for_release(&self) {
        let mut open = self.inner.open.subscribe();
        tokio::select! {
            _ = open.wait_for(|open| *open) => {}
            permit = self.inner.gate.acquire() => permit.unwrap().forget(),
        }
    }

    /// Responds. Returns whether the connection is kept; nothing if the peer has closed it.
    async fn perform(&self, act: Act, stream: &mut TcpStream) -> Option<bool> {
        match act {
            Act::Raw(bytes) => self.send(stream, &bytes).await?,
            Act::RawThenClose(bytes) => {
                self.send(stream, &bytes).await?;
                return Some(false);
            }
            Act::Parts(parts) => {
                for (number, part) in parts.iter().enumerate() {
                    if number > 0 {
                        self.wait_for_release().await;
                    }
                    self.send(stream, part).await?;
                }
            }
            Act::Flood(first, again, times) => {
                self.send(stream, &first).await?;
                for _ in 0..times {
                    stream.write_all(&again).await.ok()?;
                }
            }
            Act::RawThenCloseLater(bytes) => {
                self.send(stream, &bytes).await?;
                self.wait_for_release().await;
                return Some(false);
            }
            Act::RawThenHangUp(bytes) => {
                self.send(stream, &bytes).await?;
                stream.peek(&mut [0]).await.ok()?;
                return Some(false);
            }
            Act::Slow(time, bytes) => {
                tokio::time::sleep(time).await;
                self.send(stream, &bytes).await?;
            }
            // Until the peer closes.
            Act::Hang => {
                drop(stream.read(&mut [0]).await);
                return Some(false);
            }
        }
        Some(true)
    }

    async fn send(&self, stream: &mut TcpStream, bytes: &[u8]) -> Option<()> {
        stream.write_all(bytes).await.ok()?;
        self.inner.sent.send_modify(|sent| *sent += 1);
        Some(())
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>, connection: usize) -> Option<Received> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(buffer.drain(..end + 4).collect()).unwrap();
            let mut lines = head.trim_end().split("\r\n");
            let line = lines.next().unwrap().to_owned();
            let field = |line: &str| {
                line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            };
            return Some(Received { line, headers: lines.filter_map(field).collect(), connection });
        }
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => buffer.extend_from_slice(&chunk[..read]),
        }
    }
}
