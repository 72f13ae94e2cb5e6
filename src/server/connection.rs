//! One connection, from its socket to its end: what is spoken on it is found out, and then spoken.
//!
//! Not for: how HTTP is spoken (`http1`, `http2`), nor for when a connection is cut (`pulse`, `watch`).

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::gateway::{Gateway, Peer};
use crate::telemetry::metrics::Label;

use super::pulse::{Deadlines, Overdue, Pulse};
use super::rewound::Rewound;
use super::tls::Tls;
use super::watch::{Told, Watch};
use super::watched::Watched;
use super::{http1, http2};

/// With what HTTP/2 begins, before anything else.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How a connection behaves.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// How long everything may take.
    pub deadlines: Deadlines,
    /// What opens TLS; without it plain HTTP is spoken.
    pub tls: Option<Tls>,
}

/// What every connection needs.
#[derive(Clone)]
pub(super) struct Host {
    pub(super) gateway: Arc<Gateway>,
    pub(super) config: ConnectionConfig,
    pub(super) clock: Clock,
    /// Owns what runs beside a connection.
    pub(super) tasks: TaskTracker,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// In order.
    Done,
    /// The other side broke it off, or sent what is no HTTP.
    Failed,
    /// No request came in time, or no whole one.
    Head,
    /// Nothing was asked for a while.
    Idle,
    /// A request took too long, its answer's way included.
    Request,
    /// The client took nothing of its answer.
    Unread,
    /// Its place was needed, and it was idle.
    Displaced,
    /// Its address had as many as it may.
    Refused,
    /// No TLS came about.
    Tls,
}

/// The protocol that a stream begins with.
enum Spoken {
    Http1,
    Http2,
}

/// Serves a connection to its end.
pub(super) async fn serve(
    stream: TcpStream,
    peer: Peer,
    pulse: Arc<Pulse>,
    host: &Host,
    stop: CancellationToken,
) -> Closed {
    if stream.set_nodelay(true).is_err() {
        return Closed::Failed; // only a socket that is gone already refuses that
    }
    let mut watch = Watch::new(Arc::clone(&pulse), host.config.deadlines, &host.clock, stop);
    let stream = Watched::new(stream, Arc::clone(&pulse));
    let Some(tls) = &host.config.tls else { return speak(stream, peer, &pulse, host, &mut watch).await };
    match watch.over(tls.open(stream)).await {
        Ok(Ok(stream)) => speak(stream, peer, &pulse, host, &mut watch).await,
        Ok(Err(error)) => {
            tracing::debug!(%error, client = %peer.address, "no TLS came about");
            Closed::Tls
        }
        Err(told) => Closed::from(told),
    }
}

/// Speaks what the client speaks.

async fn speak<S>(
    mut stream: S,
    peer: Peer,
    pulse: &Arc<Pulse>,
    host: &Host,
    watch: &mut Watch,
) -> Closed
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (spoken, heard) = match watch.over(find_out(&mut stream)).await {
        Ok(Ok(found)) => found,
        Ok(Err(_)) => return Closed::Failed,
        Err(told) => return Closed::from(told),
    };
    let stream = Rewound::new(heard, stream);
    match spoken {
        Spoken::Http1 => http1::serve(stream, peer, pulse, host, watch).await,
        Spoken::Http2 => {
            pulse.speaks_http2();
            http2::serve(stream, peer, pulse, host, watch).await
        }
    }
}

/// Reads until it is clear what is spoken. What was read belongs to the conversation.
async fn find_out(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<(Spoken, Bytes)> {
    let mut heard = BytesMut::with_capacity(1_024);
    loop {
        if heard.starts_with(PREFACE) {
            return Ok((Spoken::Http2, heard.freeze()));
        }
        if !PREFACE.starts_with(&heard) {
            return Ok((Spoken::Http1, heard.freeze()));
        }
        if stream.read_buf(&mut heard).await? == 0 {
            return Ok((Spoken::Http1, heard.freeze()));
        }
    }
}

impl From<Told> for Closed {
    fn from(told: Told) -> Self {
        match told {
            Told::Retire => Self::Done,
            Told::Cut => Self::Displaced,
            Told::Overdue(Overdue::Head) => Self::Head,
            Told::Overdue(Overdue::Idle) => Self::Idle,
            Told::Overdue(Overdue::Request) => Self::Request,
            Told::Overdue(Overdue::Write) => Self::Unread,
        }
    }
}

impl Closed {
    pub(super) fn words() -> [String; 9] {
        ["done", "failed", "head", "idle", "request", "unread", "displaced", "refused", "tls"].map(String::from)
    }
}

impl Label for Closed {
    const NAME: &'static str = "closed";
    fn index(self) -> usize {
        self as usize
    }
}
