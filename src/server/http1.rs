//! HTTP/1.1, with codec limits above the limits of the gateway, so that clients get the gateway's error responses.

use std::{
    convert::Infallible,
    future::{Future as _, poll_fn},
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header::CONNECTION};
use http_body::Body as _;
use http_body_util::Full;
use hyper::{
    body::Incoming,
    server::conn::http1::{self, Parts},
    service::{Service, service_fn},
};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use crate::gateway::Peer;

use super::{
    activity::ConnectionActivity,
    connection_context::{BodyConnection, ConnectionContext},
    connection_end::ConnectionEnd,
    deadline_timer::{ConnectionSignal, DeadlineTimer},
    deadlines::MissedDeadline,
    head_scanner::{HeadLimit, HeadScanner},
    stream::ReadAhead,
};

/// Buffer size of the codec. It is larger than the largest head that the scanner passes on, so that requests that are
/// too large get the API's error response. The codec accepts 100 header fields, which is also above the gateway's
/// limit. With any other number the codec would allocate memory for each request.
const CODEC_HEAD_BYTES: usize = 32_768;

/// Limits of the codec for larger heads. Heads that exceed these limits get a 431 without a body.
const LARGE_HEAD_BYTES: usize = 65_536;
const LARGE_HEAD_FIELDS: usize = 256;

const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// Maximum time and number of bytes for reading from a client that was refused while it was sending. Closing the
/// connection immediately would reset it and discard the response.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
const DRAIN_BYTES: usize = 256 * 1_024;

/// Serves a stream until it ends.
pub async fn serve<S>(
    mut stream: S,
    peer: Peer,
    activity: &Arc<ConnectionActivity>,
    context: &ConnectionContext,
    timer: &mut DeadlineTimer,
) -> ConnectionEnd
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let limit = HeadLimit::default();
    let service = service_fn(|request: Request<Incoming>| {
        activity.request_started();
        // Whether a request may follow the body is decided before the codec continues to read.
        let may_continue = !request.body().is_end_stream()
            && limit.body_follows(context.size_before_next(&request));
        let connection = BodyConnection {
            peer,
            trust: activity.trust(),
            may_continue,
        };
        answer(request, connection, activity, &limit, context)
    });
    let ended = timer
        .run(serve_heads(
            &mut stream,
            &limit,
            activity,
            context,
            &service,
        ))
        .await;
    match ended {
        Ok(Ok(())) if limit.is_usual() => ConnectionEnd::Done,
        Ok(ended) => {
            drain(stream, context).await;
            if ended.is_ok() {
                ConnectionEnd::Done
            } else {
                ConnectionEnd::Failed
            }
        }
        Err(ConnectionSignal::Overdue(MissedDeadline::Idle)) => {
            shut_down(stream, context).await;
            ConnectionEnd::Idle
        }
        Err(signal) => {
            activity.cut();
            ConnectionEnd::from(signal)
        }
    }
}

/// Answers one request.
async fn answer(
    request: Request<Incoming>,
    connection: BodyConnection<'_>,
    activity: &ConnectionActivity,
    limit: &HeadLimit,
    context: &ConnectionContext,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let has_body = !body.is_end_stream();
    let beside = context.beside_api(&head, has_body);
    let mut response = if let Some(service) = beside {
        let before_waiting = &mut |_| {};
        let answer = service.answer(context, &head, body, connection, before_waiting);
        Box::pin(answer).await
    } else {
        let gateway = context.gateway.load();
        gateway
            .handle(&head, has_body, connection.peer, connection.trust)
            .await
    };
    let is_the_last = activity.response_complete();
    // Only refusals and responses of services other than the API may close the connection.
    let may_close = beside.is_some() || response.status().as_u16() >= 400;
    if may_close && response.headers().contains_key(CONNECTION) {
        limit.close();
    } else if is_the_last {
        response.headers_mut().insert(CONNECTION, CLOSE);
    }
    Ok(response)
}

/// Serves a stream with the usual codec. If a head is too large for it, another codec reads the head. Such a request is
/// the last on its connection, so the larger buffer is needed only here.
async fn serve_heads<S, V>(
    stream: &mut S,
    limit: &HeadLimit,
    activity: &ConnectionActivity,
    context: &ConnectionContext,
    service: &V,
) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
    V: Service<Request<Incoming>, Response = Response<Full<Bytes>>, Error = Infallible>,
{
    let scanner = HeadScanner::stream(&mut *stream, Some(limit));
    let mut connection = codec(CODEC_HEAD_BYTES).serve_connection(TokioIo::new(scanner), service);
    let ended = poll_fn(|cx| {
        let mut polled = Pin::new(&mut connection).poll(cx);
        if polled.is_pending() && !limit.is_usual() && !activity.is_blocked() {
            // Responses to earlier requests have been sent.
            if limit.is_exceeded() {
                return Poll::Ready(None);
            }
            // In the next poll, the codec detects that the rest of a body will not be read. Without this poll, the codec would
            // keep the memory for the body until the tasks of thousands of other connections have run.
            polled = Pin::new(&mut connection).poll(cx);
        }
        polled.map(Some)
    });
    if let Some(ended) = ended.await {
        return ended;
    }
    let Parts { io, read_buf, .. } = connection.into_parts();
    let received = [read_buf, io.into_inner().into_filter().into_held()].concat();
    // Without a permit no field is accepted, so the codec refuses the head without allocating memory for it.
    let permit = context.large_heads.try_acquire();
    let max_fields = if permit.is_ok() { LARGE_HEAD_FIELDS } else { 0 };
    let scanner = HeadScanner::stream(ReadAhead::put_back(received.into(), stream), None);
    let mut codec = codec(LARGE_HEAD_BYTES);
    // A head that is large only because of spaces around the values is not refused.
    codec
        .max_header_size(LARGE_HEAD_BYTES)
        .max_headers(max_fields)
        .keep_alive(false);
    Box::pin(codec.serve_connection(TokioIo::new(scanner), service)).await
}

/// A codec without timeouts. The server has its own timeouts, because the codec would set a timer for each request.
fn codec(max_head: usize) -> http1::Builder {
    let mut codec = http1::Builder::new();
    codec.header_read_timeout(None).max_buf_size(max_head);
    codec
}

/// Called after the last response. Closes the gateway's side of the connection and reads the bytes in transit, so that
/// no reset discards the response before the client has read it.
pub async fn drain(mut stream: impl AsyncRead + AsyncWrite + Unpin, context: &ConnectionContext) {
    let Ok(_permit) = context.drains.try_acquire() else {
        return shut_down(stream, context).await;
    };
    let drained = context.clock.within(DRAIN_TIMEOUT, async {
        stream.shutdown().await?;
        let mut left = DRAIN_BYTES;
        poll_fn(|cx| discard(Pin::new(&mut stream), &mut left, cx)).await
    });
    let drained = drained.await;
    tracing::trace!(?drained, "input of a refused client was discarded");
}

/// Reads and discards this many bytes. The buffer is on the stack, because thousands of clients may be drained
/// concurrently.
fn discard(
    mut stream: Pin<&mut impl AsyncRead>,
    left: &mut usize,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    let mut bytes = [0; 4_096];
    while *left > 0 {
        let mut buffer = ReadBuf::new(&mut bytes);
        ready!(stream.as_mut().poll_read(cx, &mut buffer))?;
        let read = buffer.filled().len();
        *left = if read == 0 {
            0
        } else {
            left.saturating_sub(read)
        };
    }
    Poll::Ready(Ok(()))
}

/// Closes the gateway's side of a connection.
async fn shut_down(mut stream: impl AsyncWrite + Unpin, context: &ConnectionContext) {
    let closed = context.clock.within(DRAIN_TIMEOUT, stream.shutdown()).await;
    tracing::trace!(?closed, "connection closed");
}
