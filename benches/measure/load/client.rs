//! The HTTP client: a connection per caller. No retries, except on a kept connection that closed before the request was sent.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, AUTHORIZATION, ETAG, HOST, HeaderValue, IF_NONE_MATCH};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::plan::{Plan, PlannedRequest};
use super::record::Outcome;

/// Timeout of a request, from the time it was due.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// Connections to one gateway.
#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    connections: usize,
    /// The last entity tag, per document and tier.
    tags: Arc<Mutex<HashMap<(usize, String), HeaderValue>>>,
}

/// A client that sends one request at a time.
pub(crate) struct Caller {
    client: Client,
    connection: Option<SendRequest<Empty<Bytes>>>,
}

impl Client {
    /// This many connections.
    pub(crate) fn new(address: SocketAddr, connections: usize) -> Self {
        Self {
            address,
            connections,
            tags: Arc::default(),
        }
    }

    pub(crate) fn all_callers(&self) -> Vec<Caller> {
        (0..self.connections).map(|_| self.caller()).collect()
    }

    fn caller(&self) -> Caller {
        Caller {
            client: self.clone(),
            connection: None,
        }
    }

    /// Requests a document outside of any schedule; returns status and body.
    pub(crate) async fn get(&self, target: &str, key: &str) -> (u16, Bytes) {
        let mut request = self.request(target, key, None);
        request.headers_mut().remove(ACCEPT_ENCODING);
        let mut caller = self.caller();
        let exchange = tokio::time::timeout(TIMEOUT, caller.exchange(request));
        let (response, body) = exchange.await.expect("a response in time").unwrap();
        (response.status().as_u16(), body)
    }

    fn request(&self, target: &str, key: &str, tag: Option<HeaderValue>) -> Request<Empty<Bytes>> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = target.parse().expect("a target of ours is one");
        let headers = request.headers_mut();
        let text = |text: String| HeaderValue::from_str(&text).expect("visible ASCII");
        headers.insert(HOST, text(self.address.to_string()));
        headers.insert(AUTHORIZATION, text(format!("Bearer {key}")));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        if let Some(tag) = tag {
            headers.insert(IF_NONE_MATCH, tag);
        }
        request
    }
}

impl Caller {
    /// Sends a request and reads the whole response within the timeout.
    pub(crate) async fn send_planned(
        &mut self,
        plan: &Plan,
        planned: PlannedRequest,
        left: Duration,
    ) -> Outcome {
        let key = &plan.keys[planned.key];
        let tag_key = (planned.target, key.tier.clone());
        let tags = Arc::clone(&self.client.tags);
        let known = tags.lock().unwrap().get(&tag_key).cloned();
        let tag = known.filter(|_| planned.is_conditional);
        let request = self
            .client
            .request(&plan.targets[planned.target], &key.text, tag);
        match tokio::time::timeout(left, self.exchange(request)).await {
            Ok(Ok((response, _))) => {
                if let Some(tag) = response.headers().get(ETAG) {
                    tags.lock().unwrap().insert(tag_key, tag.clone());
                }
                Outcome::Answered(response.status().as_u16(), word_of(response.headers()))
            }
            Ok(Err(outcome)) => outcome,
            Err(_) => {
                // A late response must not be read as the next one.
                self.connection = None;
                Outcome::TooLate
            }
        }
    }

    /// Sends a request; once more on a new connection if the kept one closed before it was sent.
    async fn exchange(
        &mut self,
        mut request: Request<Empty<Bytes>>,
    ) -> Result<(Response<()>, Bytes), Outcome> {
        for _ in 0..2 {
            let mut sender = self.connected().await?;
            match sender.try_send_request(request).await {
                Ok(response) => {
                    self.connection = Some(sender);
                    return read(response).await;
                }
                Err(mut error) => request = error.take_message().ok_or(Outcome::CutOff)?,
            }
        }
        Err(Outcome::CutOff)
    }

    async fn connected(&mut self) -> Result<SendRequest<Empty<Bytes>>, Outcome> {
        if let Some(mut sender) = self.connection.take()
            && sender.ready().await.is_ok()
        {
            return Ok(sender);
        }
        let stream = TcpStream::connect(self.client.address).await;
        let stream = stream.map_err(|_| Outcome::NoConnection)?;
        stream.set_nodelay(true).unwrap();
        let opened = handshake(TokioIo::new(stream)).await;
        let (sender, connection) = opened.map_err(|_| Outcome::NoConnection)?;
        tokio::spawn(connection);
        Ok(sender)
    }
}

async fn read(response: Response<Incoming>) -> Result<(Response<()>, Bytes), Outcome> {
    let (head, body) = response.into_parts();
    let body = body.collect().await.map_err(|_| Outcome::CutOff)?;
    Ok((Response::from_parts(head, ()), body.to_bytes()))
}

/// The source of the document by `Cache-Status`; empty if there is none, as for refusals.
fn word_of(headers: &HeaderMap) -> &'static str {
    let response = headers
        .get("cache-status")
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let words = ["stale", "miss", "shared", "refreshed"];
    let detail = words
        .into_iter()
        .find(|word| response.contains(&format!("detail={word}")));
    detail.unwrap_or(if response.contains("; hit") {
        "hit"
    } else {
        ""
    })
}
