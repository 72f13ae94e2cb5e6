//! One connection, from its socket to its end: what is spoken on it is found out, and then spoken.
//!
//! Not for: how HTTP is spoken (`http1`, `http2`), nor for when a connection is cut (`pulse`, `watch`).

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpStream;

use crate::address::Networks;
use crate::gateway::Peer;

use super::connection_activity::ConnectionActivity;
use super::connection_context::ConnectionContext;
use super::connection_end::ConnectionEnd;
use super::connection_slots::ConnectionSlot;
use super::deadline_timer::DeadlineTimer;
use super::deadlines::Deadlines;
use super::http2::PREFACE;
use super::prefixed_io::PrefixedIo;
use super::proxy_header::{self, NoHeader};
use super::timed_io::TimedIo;
use super::tls::TlsTermination;
use super::{http1, http2};

/// How a connection behaves.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// How long everything may take.
    pub deadlines: Deadlines,
    /// What opens TLS; without it plain HTTP is spoken.
    pub tls: Option<TlsTermination>,
    /// Peers whose connections have to begin with a PROXY header.
    pub proxy_protocol: Networks,
    /// Peers that speak for many, and may have more connections than one address.
    pub many: Networks,
}

/// The protocol that a stream begins with.
enum WireProtocol {
    Http1,
    Http2,
}

/// Serves a connection to its end.
pub(super) async fn serve(
    stream: TcpStream,
    mut peer: Peer,
    pulse: &Arc<ConnectionActivity>,
    place: &mut ConnectionSlot,
    config: &ConnectionConfig,
    host: &ConnectionContext,
) -> ConnectionEnd {
    if stream.set_nodelay(true).is_err() {
        return ConnectionEnd::Failed; // only a socket that is gone already refuses that
    }
    let mut watch = DeadlineTimer::new(Arc::clone(pulse), config.deadlines, &host.clock);
    let mut stream = TimedIo::new(stream, Arc::clone(pulse));
    let mut speaks_for_many = config.many.contains(peer.address);
    let mut heard = Bytes::new();
    if config.proxy_protocol.contains(peer.address) {
        let client = match watch.over(proxy_header::take(&mut stream)).await {
            Ok(Ok((client, rest))) => {
                heard = rest;
                client
            }
            Ok(Err(error)) => return no_proxy_header(&error, peer),
            Err(told) => return ConnectionEnd::from(told),
        };
        // A proxy that speaks for itself looks whether we are there. The client may be a listed proxy in its turn.
        speaks_for_many = client.is_none_or(|client| config.many.contains(client.ip()));
        peer.address = client.map_or(peer.address, |client| client.ip());
    }
    if !speaks_for_many && !place.is_of(peer.address) {
        return ConnectionEnd::Refused;
    }
    let stream = PrefixedIo::new(heard, stream);
    let Some(tls) = &config.tls else { return speak(stream, peer, pulse, host, &mut watch).await };
    match watch.over(Box::pin(tls.open(stream))).await {
        Ok(Ok(stream)) => {
            peer.is_encrypted = true;
            speak(stream, peer, pulse, host, &mut watch).await
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, client = %peer.address, "TLS handshake failed");
            ConnectionEnd::Tls
        }
        Err(told) => ConnectionEnd::from(told),
    }
}

fn no_proxy_header(error: &NoHeader, peer: Peer) -> ConnectionEnd {
    // Many balancers look whether a port is open, and say nothing.
    if matches!(error, NoHeader::Ended) {
        return ConnectionEnd::Done;
    }
    tracing::debug!(%error, proxy = %peer.address, "listed proxy sent no PROXY header");
    ConnectionEnd::Failed
}

/// Speaks what the client speaks. Each protocol has a future of its own size: a connection holds the one it needs.
async fn speak<S>(
    mut stream: S,
    peer: Peer,
    pulse: &Arc<ConnectionActivity>,
    host: &ConnectionContext,
    watch: &mut DeadlineTimer,
) -> ConnectionEnd
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (spoken, heard) = match watch.over(find_out(&mut stream)).await {
        Ok(Ok(found)) => found,
        Ok(Err(_)) => return ConnectionEnd::Failed,
        Err(told) => return ConnectionEnd::from(told),
    };
    let stream = PrefixedIo::new(heard, stream);
    match spoken {
        WireProtocol::Http1 => Box::pin(http1::serve(stream, peer, pulse, host, watch)).await,
        WireProtocol::Http2 => {
            pulse.speaks_http2();
            Box::pin(http2::serve(stream, peer, pulse, host, watch)).await
        }
    }
}

/// Reads until it is clear what is spoken. What was read belongs to the conversation.
async fn find_out(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<(WireProtocol, Bytes)> {
    let mut heard = BytesMut::with_capacity(1_024);
    loop {
        if heard.starts_with(PREFACE) {
            return Ok((WireProtocol::Http2, heard.freeze()));
        }
        if !PREFACE.starts_with(&heard) {
            return Ok((WireProtocol::Http1, heard.freeze()));
        }
        if stream.read_buf(&mut heard).await? == 0 {
            return Ok((WireProtocol::Http1, heard.freeze()));
        }
    }
}
