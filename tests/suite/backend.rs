//! A scriptable backend on a real socket. It records every request it gets, answers by script, and can be made to hold
//! an answer back until the test lets it go: that is how races are made.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// What the backend does with one request.
#[derive(Clone, Debug)]
pub enum Act {
    /// Sends these bytes and keeps the connection.
    Raw(Vec<u8>),
    /// Sends these bytes and closes the connection.
    RawThenClose(Vec<u8>),
    /// Never answers.
    Hang,
}

/// A request as the backend got it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// `GET /models?period=24h HTTP/1.1`
    pub line: String,
    /// The header fields, names in lower case, in order.
    pub headers: Vec<(String, String)>,
}

impl Received {
    /// The target of the request line.
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
}

/// The backend.
#[derive(Clone)]
pub struct Backend {
    inner: Arc<Inner>,
    /// Where it listens.
    pub address: SocketAddr,
}

/// A 200 with this JSON body.
pub fn json(body: &str) -> Act {
    answer("200 OK", &[("content-type", "application/json")], body)
}

/// Any answer with a length.
pub fn answer(status: &str, headers: &[(&str, &str)], body: &str) -> Act {
    let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    Act::Raw(format!("{text}\r\n{body}").into_bytes())
}

impl Backend {
    /// Starts one that answers every request with `script`.
    pub async fn start(script: impl Fn(&Received) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner {
            script: Mutex::new(Box::new(script)),
            once: Mutex::default(),
            received: watch::Sender::new(Vec::new()),
            gate: Semaphore::new(0),
            open: watch::Sender::new(true),
        });
        let backend = Self { inner, address };
        let accepting = backend.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(accepting.clone().converse(stream));
            }
        });
        backend
    }

    /// Its base address.
    pub fn url(&self) -> String {
        format!("http://{}/api/v1", self.address)
    }

    /// From now on it answers by this script.
    pub fn answers(&self, script: impl Fn(&Received) -> Act + Send + Sync + 'static) {
        *self.inner.script.lock().unwrap() = Box::new(script);
    }

    /// The next request is answered by this act, before the script is asked again.
    pub fn next(&self, act: Act) {
        self.inner.once.lock().unwrap().push_back(act);
    }

    /// From now on every answer is held back until [`Backend::release`].
    pub fn hold(&self) {
        self.inner.open.send_replace(false);
    }

    /// Lets so many held answers go.
    pub fn release(&self, answers: usize) {
        self.inner.gate.add_permits(answers);
    }

    /// Lets all go, held ones and later ones.
    pub fn open(&self) {
        self.inner.open.send_replace(true);
    }

    /// Everything received so far.
    pub fn received(&self) -> Vec<Received> {
        self.inner.received.borrow().clone()
    }

    /// How many requests came for a target that begins like this.
    pub fn count(&self, beginning: &str) -> usize {
        self.received().iter().filter(|received| received.target().starts_with(beginning)).count()
    }

    /// Waits until so many requests have come in all.
    pub async fn has_received(&self, requests: usize) {
        self.inner.received.subscribe().wait_for(|all| all.len() >= requests).await.unwrap();
    }

    async fn converse(self, mut stream: TcpStream) {
        let mut buffer = Vec::new();
        loop {
            let Some(received) = read_request(&mut stream, &mut buffer).await else { return };
            self.inner.received.send_modify(|all| all.push(received.clone()));
            let scripted = self.inner.once.lock().unwrap().pop_front();
            let act = scripted.unwrap_or_else(|| (self.inner.script.lock().unwrap())(&received));
            let mut open = self.inner.open.subscribe();
            tokio::select! {
                _ = open.wait_for(|open| *open) => {}
                permit = self.inner.gate.acquire() => permit.unwrap().forget(),
            }
            match act {
                Act::Raw(bytes) => {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Act::RawThenClose(bytes) => {
                    drop(stream.write_all(&bytes).await);
                    return;
                }
                // Until the other side has had enough.
                Act::Hang => drop(stream.read(&mut [0]).await),
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Received> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(buffer.drain(..end + 4).collect()).unwrap();
            let mut lines = head.trim_end().split("\r\n");
            let line = lines.next().unwrap().to_owned();
            let field = |line: &str| {
                line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            };
            return Some(Received { line, headers: lines.filter_map(field).collect() });
        }
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => buffer.extend_from_slice(&chunk[..read]),
        }
    }
}
