//! One connection: HTTP/1.1 with limits above the gateway's own, so that the gateway's answer is the one that is sent.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::gateway::{Gateway, Peer};
use crate::telemetry::metrics::Label;

/// Twice what the gateway takes: what is refused for its size is refused in the API's own words.
const CODEC_HEAD_BYTES: usize = 32_768;
const CODEC_HEADERS: usize = 128;

/// How a connection behaves.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// How long the head of a request may take, and how long a connection may idle between two.
    pub head_timeout: Duration,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// In order.
    Done,
    /// The other side broke it off, or sent what is no HTTP.
    Failed,
    /// A deadline passed.
    Late,
}

/// Serves a connection to its end, or until `stop`: then it finishes the request that runs.
pub(super) async fn serve(
    stream: TcpStream,
    peer: Peer,
    gateway: &Arc<Gateway>,
    config: &ConnectionConfig,
    stop: CancellationToken,
) -> Closed {
    if stream.set_nodelay(true).is_err() {
        return Closed::Failed; // only a socket that is gone already refuses that
    }
    let service = service_fn(|request: Request<Incoming>| async move {
        let (head, body) = request.into_parts();
        Ok::<_, Infallible>(gateway.handle(&head, !body.is_end_stream(), peer).await)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(config.head_timeout)
        .max_buf_size(CODEC_HEAD_BYTES)
        .max_headers(CODEC_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    match ended {
        Ok(()) => Closed::Done,
        Err(error) if error.is_timeout() => Closed::Late,
        Err(_) => Closed::Failed,
    }
}

impl Closed {
    pub(super) fn words() -> [String; 3] {
        ["done", "failed", "late"].map(String::from)
    }
}

impl Label for Closed {
    const NAME: &'static str = "closed";
    fn index(self) -> usize {
        self as usize
    }
}
