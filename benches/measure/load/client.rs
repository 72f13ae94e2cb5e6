//! A client that sends one request at a time on a kept connection. No retries.

use std::{
    collections::HashMap,
    io::{Error, ErrorKind, Write as _},
    net::{SocketAddr, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

use super::{
    plan::{Plan, PlannedRequest},
    record::Outcome,
};
use crate::generator::HttpResponse;

/// Timeout of a request, from the time it was due.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// A client of one gateway. Clones share the entity tags, and have connections of their own.
pub struct Client {
    address: SocketAddr,
    connection: Option<TcpStream>,
    /// The last entity tag, per document and tier.
    tags: Arc<Mutex<HashMap<(usize, String), String>>>,
}

impl Clone for Client {
    fn clone(&self) -> Self {
        Self {
            address: self.address,
            connection: None,
            tags: Arc::clone(&self.tags),
        }
    }
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            connection: None,
            tags: Arc::default(),
        }
    }

    /// Requests a document outside of any schedule.
    pub fn get(&mut self, target: &str, key: &str) -> HttpResponse {
        self.exchange(target, key, "", TIMEOUT)
            .unwrap_or_else(|outcome| panic!("{target}: {}", outcome.word()))
    }

    /// Sends a request and reads the whole response within the timeout.
    pub fn send_planned(
        &mut self,
        plan: &Plan,
        planned: PlannedRequest,
        left: Duration,
    ) -> Outcome {
        let key = &plan.keys[planned.key];
        let tag_key = (planned.target, key.tier.clone());
        let known = self.tags.lock().unwrap().get(&tag_key).cloned();
        let mut fields = "Accept-Encoding: gzip\r\n".to_owned();
        if let Some(tag) = known.filter(|_| planned.is_conditional) {
            fields.push_str(&format!("If-None-Match: {tag}\r\n"));
        }
        let target = &plan.targets[planned.target];
        match self.exchange(target, &key.text, &fields, left) {
            Ok(response) => {
                if let Some(tag) = response.field("etag") {
                    self.tags.lock().unwrap().insert(tag_key, tag.to_owned());
                }
                Outcome::Answered(response.status, word_of(&response))
            }
            Err(outcome) => outcome,
        }
    }

    fn exchange(
        &mut self,
        target: &str,
        key: &str,
        fields: &str,
        left: Duration,
    ) -> Result<HttpResponse, Outcome> {
        let mut stream = self.connected().ok_or(Outcome::NoConnection)?;
        let address = self.address;
        let head = format!(
            "GET {target} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n{fields}\r\n"
        );
        let answered = stream
            .set_read_timeout(Some(left))
            .and_then(|()| stream.write_all(head.as_bytes()))
            .and_then(|()| HttpResponse::read(&mut stream));
        let response = answered.map_err(|error| failure(&error))?;
        // A connection on which a response is missing is not used again: a late response must not be read as the next one.
        if response.field("connection") != Some("close") {
            self.connection = Some(stream);
        }
        Ok(response)
    }

    /// The kept connection, or a new one if the server has closed it.
    fn connected(&mut self) -> Option<TcpStream> {
        if let Some(stream) = self.connection.take()
            && is_open(&stream)
        {
            return Some(stream);
        }
        let stream = TcpStream::connect(self.address).ok()?;
        stream.set_nodelay(true).unwrap();
        Some(stream)
    }
}

/// Whether nothing has been received since the last response, not even the end.
fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

fn failure(error: &Error) -> Outcome {
    if error.kind() == ErrorKind::WouldBlock {
        Outcome::TooLate
    } else {
        Outcome::CutOff
    }
}

/// The source of the document by `Cache-Status`; empty if there is none, as for refusals.
fn word_of(response: &HttpResponse) -> &'static str {
    let status = response.field("cache-status").unwrap_or("");
    let words = ["stale", "miss", "shared", "refreshed"];
    let detail = words
        .into_iter()
        .find(|word| status.contains(&format!("detail={word}")));
    detail.unwrap_or(if status.contains("; hit") { "hit" } else { "" })
}
