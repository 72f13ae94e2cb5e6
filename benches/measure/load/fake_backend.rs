//! A backend with a few documents that refreshes on command, hangs, or fails.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

const MODELS: usize = 20;
/// Time per response.
const THINKS: Duration = Duration::from_millis(2);
const NEXT_HOUR: u64 = 3_600;

/// Its behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    Works,
    Hangs,
    Fails,
}

/// The backend; clones share its state.
#[derive(Clone)]
pub struct FakeBackend {
    state: Arc<(Mutex<State>, Condvar)>,
    pub address: SocketAddr,
}

struct State {
    behaviour: Behaviour,
    /// Documents are unchanged until then, and new afterwards.
    refreshes_at: Option<Instant>,
    answered: u64,
}

impl FakeBackend {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = State {
            behaviour: Behaviour::Works,
            refreshes_at: None,
            answered: 0,
        };
        let fake = Self {
            state: Arc::new((Mutex::new(state), Condvar::new())),
            address,
        };
        let accepting = fake.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let fake = accepting.clone();
                std::thread::spawn(move || drop(fake.serve(&stream)));
            }
        });
        fake
    }

    /// All documents change at that time; responses before it state that.
    pub fn refreshes_at(&self, at: Instant) {
        self.state.0.lock().unwrap().refreshes_at = Some(at);
    }

    pub fn is(&self, behaviour: Behaviour) {
        self.state.0.lock().unwrap().behaviour = behaviour;
        self.state.1.notify_all();
    }

    /// Number of responses.
    pub fn answered(&self) -> u64 {
        self.state.0.lock().unwrap().answered
    }

    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let mut target = String::new();
        let mut known = String::new();
        while let Some(line) = lines.next().transpose()? {
            if line.is_empty() {
                let answer = self.answer(&target, &known);
                let mut writer: &TcpStream = stream;
                writer.write_all(answer.as_bytes())?;
                known.clear();
            } else if let Some(rest) = line.strip_prefix("GET ") {
                rest.split(' ').next().unwrap_or("").clone_into(&mut target);
            } else if let Some((name, value)) = line.split_once(": ")
                && name.eq_ignore_ascii_case("if-none-match")
            {
                value.clone_into(&mut known);
            }
        }
        Ok(())
    }

    fn answer(&self, target: &str, known: &str) -> String {
        std::thread::sleep(THINKS);
        let (lock, changed) = &*self.state;
        let mut state = changed
            .wait_while(lock.lock().unwrap(), |state| {
                state.behaviour == Behaviour::Hangs
            })
            .unwrap();
        if state.behaviour == Behaviour::Fails {
            return "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n".into();
        }
        state.answered += 1;
        let left = state
            .refreshes_at
            .map(|at| at.saturating_duration_since(Instant::now()));
        let is_new = left == Some(Duration::ZERO);
        // Rounded up: a client that obeys must not return before the change.
        let max_age = left
            .filter(|_| !is_new)
            .map_or(NEXT_HOUR, |left| left.as_secs() + 1);
        let tag = if is_new { "\"new\"" } else { "\"old\"" };
        let head = format!("etag: {tag}\r\ncache-control: max-age={max_age}\r\n");
        if known == tag {
            return format!("HTTP/1.1 304 Not Modified\r\n{head}\r\n");
        }
        let body = body(target, is_new);
        let length = body.len();
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{head}\r\n{body}"
        )
    }
}

fn body(target: &str, is_new: bool) -> String {
    let score = if is_new { 71.5 } else { 70.25 };
    let item = |id: &str| {
        format!(
            "{{\"id\":\"{id}\",\"name\":\"Model {id}\",\"provider\":\"meridian\",\"currentScore\":{score},\"trend\":\"up\",\
             \"status\":\"good\",\"lastUpdated\":\"2026-11-21T12:00:00Z\"}}"
        )
    };
    let path = target.split('?').next().unwrap_or(target);
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    let data = match segments.as_slice() {
        ["models" | "drift", id] => item(id),
        ["index"] => item("index"),
        _ => (0..MODELS)
            .map(|number| item(&format!("model-{number}")))
            .collect::<Vec<_>>()
            .join(","),
    };
    format!("{{\"success\":true,\"data\":[{data}]}}")
}
