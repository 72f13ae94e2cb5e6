//! A strict OTLP receiver on a real socket. It decodes requests by the published message definitions and rejects fields
//! that are not defined there.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
    trace::v1::Span,
};
use serde_json::Value as Json;
use tokio::{net::TcpListener, sync::watch};

use crate::world::World;

/// The name of the span for a lease wait. A request may or may not have this span.
pub const LEASE_WAIT: &str = "lease wait";

/// The reaction to one request.
#[derive(Clone, Debug)]
pub enum CollectorAct {
    Accept,
    /// Accepts all but this many spans.
    Reject(u32),
    /// A status, and a `Retry-After` in seconds.
    Status(u16, Option<u32>),
    /// Never responds.
    Hang,
}

struct Inner {
    act: Mutex<CollectorAct>,
    once: Mutex<VecDeque<CollectorAct>>,
    /// All bodies, accepted or not.
    bodies: watch::Sender<Vec<String>>,
    /// Spans of accepted requests.
    spans: watch::Sender<Vec<Span>>,
    problems: Mutex<Vec<String>>,
}

#[derive(Clone)]
pub struct Collector {
    inner: Arc<Inner>,
    pub address: SocketAddr,
}

impl Collector {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner {
            act: Mutex::new(CollectorAct::Accept),
            once: Mutex::default(),
            bodies: watch::Sender::new(Vec::new()),
            spans: watch::Sender::new(Vec::new()),
            problems: Mutex::default(),
        });
        let collector = Self { inner, address };
        let accepting = collector.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let collector = accepting.clone();
                let service = service_fn(move |request| collector.clone().respond(request));
                let server = hyper::server::conn::http1::Builder::new();
                tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
            }
        });
        collector
    }

    /// The settings that send spans here.
    pub fn settings(&self, one_in: u32) -> String {
        format!(
            "traces.endpoint = \"http://{}/v1/traces\"\ntraces.sample_one_in = {one_in}\n",
            self.address
        )
    }

    /// Sets the reaction to all requests.
    pub fn always(&self, act: CollectorAct) {
        *self.inner.act.lock().unwrap() = act;
    }

    /// Sets the reaction to the next request.
    pub fn next(&self, act: CollectorAct) {
        self.inner.once.lock().unwrap().push_back(act);
    }

    async fn respond(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, hyper::Error> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let content_type = head
            .headers
            .get("content-type")
            .and_then(|value| value.to_str().ok());
        let line = (&head.method, head.uri.path(), content_type);
        let expected = (&Method::POST, "/v1/traces", Some("application/json"));
        let spans = if line == expected {
            decode(&body)
        } else {
            Err(format!("{line:?}"))
        };
        let act = self.inner.once.lock().unwrap().pop_front();
        let act = act.unwrap_or_else(|| self.inner.act.lock().unwrap().clone());
        self.inner
            .bodies
            .send_modify(|all| all.push(String::from_utf8_lossy(&body).into_owned()));
        let answer = |status: u16, body: String| {
            Response::builder()
                .status(status)
                .header("content-type", "application/json")
                .body(body.into())
        };
        let accept = |spans: Vec<Span>| self.inner.spans.send_modify(|all| all.extend(spans));
        let response = match (spans, act) {
            (Err(problem), _) => {
                self.inner.problems.lock().unwrap().push(problem);
                answer(400, "{}".into())
            }
            (Ok(spans), CollectorAct::Accept) => {
                accept(spans);
                answer(200, "{}".into())
            }
            (Ok(spans), CollectorAct::Reject(rejected)) => {
                accept(spans.into_iter().skip(rejected as usize).collect());
                let reason =
                    format!(r#"{{"rejectedSpans":"{rejected}","errorMessage":"too many"}}"#);
                answer(200, format!(r#"{{"partialSuccess":{reason}}}"#))
            }
            (Ok(_), CollectorAct::Status(status, retry_after)) => {
                answer(status, "{}".into()).map(|mut response| {
                    let value = retry_after.map(|seconds| seconds.to_string().parse().unwrap());
                    response
                        .headers_mut()
                        .extend(value.map(|value| (http::header::RETRY_AFTER, value)));
                    response
                })
            }
            (Ok(_), CollectorAct::Hang) => std::future::pending().await,
        };
        Ok(response.unwrap())
    }

    /// Number of requests so far.
    pub fn requests(&self) -> usize {
        self.inner.bodies.borrow().len()
    }

    /// Everything that was received.
    pub fn text(&self) -> String {
        self.inner.bodies.borrow().join("\n")
    }

    /// Waits until this many requests have arrived.
    pub async fn has_requests(&self, requests: usize) {
        self.inner
            .bodies
            .subscribe()
            .wait_for(|all| all.len() >= requests)
            .await
            .unwrap();
    }

    /// All accepted spans, oldest first.
    pub fn spans(&self) -> Vec<Span> {
        let problems = self.inner.problems.lock().unwrap();
        assert!(problems.is_empty(), "{problems:#?}");
        self.inner.spans.borrow().clone()
    }

    /// The accepted spans except waits for leases, once there are this many. Lets time pass for the batch.
    pub async fn has_spans(&self, world: &World, spans: usize) -> Vec<Span> {
        let mut all = self.inner.spans.subscribe();
        let counted = |all: &[Span]| all.iter().filter(|span| span.name != LEASE_WAIT).count();
        for _ in 0..1_000 {
            if counted(&all.borrow_and_update()) >= spans {
                break;
            }
            world.pass(Duration::from_secs(1));
            drop(tokio::time::timeout(Duration::from_millis(10), all.changed()).await);
        }
        let mut received = self.spans();
        received.retain(|span| span.name != LEASE_WAIT);
        assert_eq!(received.len(), spans, "{received:#?}");
        received
    }
}

/// The spans of a request. Fails if a field or the type of a value is not in the definitions.
pub fn decode(body: &[u8]) -> Result<Vec<Span>, String> {
    let given: Json = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let request: ExportTraceServiceRequest =
        serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let encoded = serde_json::to_value(&request).unwrap();
    same(&given, &encoded, "")?;
    let mut spans = Vec::new();
    for resource in request.resource_spans {
        let attributes = resource.resource.ok_or("no resource")?.attributes;
        for name in ["service.name", "service.version", "service.instance.id"] {
            text(&attributes, name).ok_or(format!("the resource has no {name}"))?;
        }
        spans.extend(
            resource
                .scope_spans
                .into_iter()
                .flat_map(|scope| scope.spans),
        );
    }
    spans.iter().try_for_each(check)?;
    Ok(spans)
}

/// Compares a message as sent with the same message decoded and encoded again. Only the latter may have further fields,
/// with default values.
fn same(given: &Json, encoded: &Json, path: &str) -> Result<(), String> {
    match (given, encoded) {
        (Json::Object(given), Json::Object(encoded)) => {
            for (name, value) in given {
                let path = format!("{path}/{name}");
                same(
                    value,
                    encoded.get(name).ok_or(format!("{path} is not defined"))?,
                    &path,
                )?;
            }
            let lost = encoded
                .iter()
                .find(|(name, value)| !given.contains_key(*name) && !is_default(value));
            lost.map_or(Ok(()), |(name, value)| {
                Err(format!("{path}/{name} became {value}"))
            })
        }
        (Json::Array(given), Json::Array(encoded)) if given.len() == encoded.len() => given
            .iter()
            .zip(encoded)
            .try_for_each(|(given, encoded)| same(given, encoded, path)),
        _ if given == encoded => Ok(()),
        _ => Err(format!("{path}: {given} became {encoded}")),
    }
}

fn is_default(value: &Json) -> bool {
    [Json::Null, "".into(), 0.into(), Json::Array(Vec::new())].contains(value)
}

/// The requirements for each span that the definitions state in prose.
fn check(span: &Span) -> Result<(), String> {
    let is_id = |id: &[u8], bytes: usize| id.len() == bytes && id.iter().any(|byte| *byte != 0);
    let has_ids = is_id(&span.trace_id, 16) && is_id(&span.span_id, 8);
    let has_parent = span.parent_span_id.is_empty() || is_id(&span.parent_span_id, 8);
    let mut names: Vec<&str> = span
        .attributes
        .iter()
        .map(|attribute| &*attribute.key)
        .collect();
    names.sort_unstable();
    let has_unique_names = names
        .windows(2)
        .all(|pair| pair[0] != pair[1] && !pair[0].is_empty());
    let has_times =
        span.start_time_unix_nano > 0 && span.start_time_unix_nano <= span.end_time_unix_nano;
    let is_valid = has_ids && has_parent && has_unique_names && has_times;
    let is_valid = is_valid && !span.name.is_empty() && (1..=5).contains(&span.kind);
    if is_valid {
        Ok(())
    } else {
        Err(format!("{span:?}"))
    }
}

/// The value of an attribute as text.
pub fn text(attributes: &[KeyValue], name: &str) -> Option<String> {
    let attribute = attributes.iter().find(|attribute| attribute.key == name)?;
    match attribute.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        Value::BoolValue(_)
        | Value::DoubleValue(_)
        | Value::ArrayValue(_)
        | Value::KvlistValue(_)
        | Value::BytesValue(_)
        | Value::StringValueStrindex(_) => None,
    }
}

pub fn hex(id: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(id)
}
