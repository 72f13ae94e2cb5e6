//! Serves one connection from accept to close: detects the protocol and runs it. `http1` and `http2` implement HTTP;
//! `connection_activity` and `deadline_timer` decide when a connection is closed.

use std::{
    future::poll_fn,
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use crate::gateway::Peer;
use scoregate_base::{address::Networks, limits::network};

use super::{
    activity::ConnectionActivity,
    connection_context::ConnectionContext,
    connection_end::ConnectionEnd,
    connection_slots::ConnectionSlot,
    deadline_timer::DeadlineTimer,
    deadlines::Deadlines,
    http1,
    http2::{self, PREFACE},
    proxy_header::{self, NoHeader},
    stream::{ReadAhead, TimedIo},
    tls::{HandshakeFailure, TlsTermination},
};

/// Maximum number of TLS handshakes per network that wait for the CPU. With RSA certificates the last of them waits for
/// about 0.1 s.
const MAX_WAITING_HANDSHAKES: usize = 128;
/// TLS encrypts at most this many bytes, which is one record, before the socket accepts them. While a client does not
/// read, the rest of its response stays shared with the cache.
const UNSENT_TLS_BYTES: usize = 16 * 1_024;

/// Settings of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// Timeouts.
    pub deadlines: Deadlines,
    /// TLS; if not set, plain HTTP is served.
    pub tls: Option<TlsTermination>,
    /// Peers whose connections must begin with a PROXY header.
    pub proxy_protocol: Networks,
    /// Trusted proxies, which may have more connections than other addresses.
    pub trusted_proxies: Networks,
}

/// The protocol at the beginning of a stream.
enum WireProtocol {
    Http1,
    Http2,
}

/// Serves a connection until it is closed.
pub async fn serve(
    stream: TcpStream,
    mut peer: Peer,
    activity: &Arc<ConnectionActivity>,
    slot: &mut ConnectionSlot,
    config: &ConnectionConfig,
    context: &ConnectionContext,
) -> ConnectionEnd {
    if stream.set_nodelay(true).is_err() {
        return ConnectionEnd::Failed; // fails only if the socket is closed
    }
    // The timer starts here, because the first deadline includes the PROXY header and the handshake.
    let mut timer = DeadlineTimer::new(Arc::clone(activity), config.deadlines, &context.clock);
    let mut stream = TimedIo::new(stream, Arc::clone(activity));
    let found = find_client(&mut stream, &mut peer, config, &mut timer).await;
    let (is_trusted_proxy, received) = match found {
        Ok(found) => found,
        Err(end) => return end,
    };
    if is_trusted_proxy {
        activity.belongs_to_no_application();
    } else if !slot.count_for(peer.address) {
        return ConnectionEnd::Refused;
    }
    let stream = ReadAhead::put_back(received, stream);
    let Some(tls) = &config.tls else {
        return serve_protocol(stream, peer, activity, context, &mut timer).await;
    };
    // All clients of a proxy count as one network here.
    let max_waiting = if is_trusted_proxy {
        usize::MAX
    } else {
        MAX_WAITING_HANDSHAKES
    };
    let handshake = Box::pin(tls.open(stream, network(peer.address), max_waiting));
    let mut stream = match timer.run(handshake).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return handshake_failed(&error, peer),
        Err(signal) => return ConnectionEnd::from(signal),
    };
    stream.get_mut().1.set_buffer_limit(Some(UNSENT_TLS_BYTES));
    peer.is_encrypted = true;
    serve_protocol(stream, peer, activity, context, &mut timer).await
}

fn handshake_failed(error: &HandshakeFailure, peer: Peer) -> ConnectionEnd {
    tracing::debug!(%error, client = %peer.address, "TLS handshake failed");
    match error {
        HandshakeFailure::TooManyWaiting => ConnectionEnd::Refused,
        HandshakeFailure::Io(_) => ConnectionEnd::Tls,
    }
}

/// Takes the address of the client from the PROXY header, if one is expected. Returns whether the client is a trusted
/// proxy, and the bytes after the header.
async fn find_client(
    stream: &mut (impl AsyncRead + Unpin),
    peer: &mut Peer,
    config: &ConnectionConfig,
    timer: &mut DeadlineTimer,
) -> Result<(bool, Bytes), ConnectionEnd> {
    if !config.proxy_protocol.contains(peer.address) {
        let is_trusted_proxy = config.trusted_proxies.contains(peer.address);
        return Ok((is_trusted_proxy, Bytes::new()));
    }
    let (client, received) = take_proxy_header(stream, *peer, timer).await?;
    // This may be a health check by the proxy itself. The client may also be a trusted proxy.
    let is_trusted_proxy = client.is_none_or(|client| config.trusted_proxies.contains(client.ip()));
    peer.address = client.map_or(peer.address, |client| client.ip());
    Ok((is_trusted_proxy, received))
}

/// Takes the PROXY header from a stream. Returns the client, and the bytes after the header.
async fn take_proxy_header(
    stream: &mut (impl AsyncRead + Unpin),
    peer: Peer,
    timer: &mut DeadlineTimer,
) -> Result<(Option<SocketAddr>, Bytes), ConnectionEnd> {
    match timer.run(proxy_header::take(stream)).await {
        Ok(Ok(taken)) => Ok(taken),
        Ok(Err(error)) => Err(no_proxy_header(&error, peer)),
        Err(signal) => Err(ConnectionEnd::from(signal)),
    }
}

fn no_proxy_header(error: &NoHeader, peer: Peer) -> ConnectionEnd {
    // The health checks of many load balancers open a connection and send nothing.
    if matches!(error, NoHeader::Ended) {
        return ConnectionEnd::Done;
    }
    tracing::debug!(%error, proxy = %peer.address, "listed proxy sent no PROXY header");
    ConnectionEnd::Failed
}

/// Serves the detected protocol. The futures have different sizes, and a connection holds only the future that it
/// needs.
async fn serve_protocol<S>(
    mut stream: S,
    peer: Peer,
    activity: &Arc<ConnectionActivity>,
    context: &ConnectionContext,
    timer: &mut DeadlineTimer,
) -> ConnectionEnd
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (protocol, received) = match timer.run(detect_protocol(&mut stream)).await {
        Ok(Ok(found)) => found,
        Ok(Err(_)) => return ConnectionEnd::Failed,
        Err(signal) => return ConnectionEnd::from(signal),
    };
    let stream = ReadAhead::put_back(received, stream);
    match protocol {
        WireProtocol::Http1 => Box::pin(http1::serve(stream, peer, activity, context, timer)).await,
        WireProtocol::Http2 => {
            activity.switch_to_http2();
            Box::pin(http2::serve(stream, peer, activity, context, timer)).await
        }
    }
}

/// Reads until the protocol is known. Returns the protocol and the bytes that were read.
async fn detect_protocol(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<(WireProtocol, Bytes)> {
    let mut received = BytesMut::new();
    loop {
        if received.starts_with(PREFACE) {
            return Ok((WireProtocol::Http2, received.freeze()));
        }
        if !PREFACE.starts_with(&received) {
            return Ok((WireProtocol::Http1, received.freeze()));
        }
        if poll_fn(|cx| receive(Pin::new(&mut *stream), &mut received, cx)).await? == 0 {
            return Ok((WireProtocol::Http1, received.freeze()));
        }
    }
}

/// Appends the bytes that have arrived. The buffer is on the stack, so a connection that sends nothing has no buffer.
fn receive(
    stream: Pin<&mut impl AsyncRead>,
    received: &mut BytesMut,
    cx: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let mut bytes = [0; 1_024];
    let mut buffer = ReadBuf::new(&mut bytes);
    ready!(stream.poll_read(cx, &mut buffer))?;
    received.extend_from_slice(buffer.filled());
    Poll::Ready(Ok(buffer.filled().len()))
}
