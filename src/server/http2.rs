//! HTTP/2 with small windows and a limited number of streams, so that one client cannot use the resources of others.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use bytes::Bytes;
use http::{Request, Response, header::CONNECTION};
use http_body::Body as _;
use http_body_util::Full;
use hyper::{body::Incoming, rt::Executor, server::conn::http2, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Notify,
};
use tokio_util::task::TaskTracker;

use crate::{bodies::Share, gateway::Peer};

use super::{
    activity::{ConnectionActivity, StreamGuard},
    client_limits::STREAMS,
    connection_context::{BodyConnection, ConnectionContext},
    connection_end::ConnectionEnd,
    deadline_timer::{ConnectionSignal, DeadlineTimer},
    deadlines::MissedDeadline,
    http1::drain,
    request_pacer::RequestPacer,
    response_body::ResponseBody,
    unsent::StreamRefusal,
};

/// The first bytes of an HTTP/2 connection.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Most requests have no body, so the smallest initial windows suffice.
const WINDOW: u32 = 65_535;
const FRAME: u32 = 16_384;
/// Heads that are larger than the gateway accepts get the gateway's error response, up to 64 KiB in 256 fields. Each field counts
/// as 32 additional bytes (RFC 9113, 6.5.2). The codec refuses larger heads with its own 431.
const HEAD_BYTES: u32 = 65_536 + 256 * 32;
/// Maximum number of streams that the client resets before they are processed. More resets are treated as an attack and
/// close the connection.
const RESETS: usize = 20;
/// Maximum number of streams that the gateway resets because of client errors. More resets close the connection.
const ERRORS: usize = 100;
/// Maximum number of response bytes in the codec. Bodies are shared with the cache, so this limits writes, not
/// memory.
const SEND_BUFFER: usize = 64 * 1_024;

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
    let Some(codec_memory) = CodecMemory::take(peer, activity, context) else {
        return ConnectionEnd::Refused;
    };
    let end = serve_requests(&mut stream, peer, codec_memory, activity, context, timer).await;
    if activity.ends_when_answered() && !activity.is_cut() {
        drain(stream, context).await;
    }
    end
}

/// Serves requests until the stream ends, or until all requests are answered if one of them closes the connection.
async fn serve_requests<S>(
    stream: &mut S,
    peer: Peer,
    mut codec_memory: CodecMemory,
    activity: &Arc<ConnectionActivity>,
    context: &ConnectionContext,
    timer: &mut DeadlineTimer,
) -> ConnectionEnd
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let displaced = Arc::clone(&codec_memory.displaced);
    let paced = RequestPacer::stream(
        &mut *stream,
        PREFACE.len(),
        Arc::clone(activity),
        Arc::clone(&context.large_heads),
    );
    // Streams share one reference to the state of their connection. Otherwise the reference counts of shared state
    // would move between processor caches.
    let context = Arc::new(context.clone());
    let service = service_fn(|request: Request<Incoming>| {
        respond(activity.open_stream(), Arc::clone(&context), request, peer)
    });
    let connection = codec(&context).serve_connection(TokioIo::new(paced), service);
    let mut connection = pin!(connection);
    let mut ends_when_answered = false;
    loop {
        let signal = tokio::select! {
            biased;
            // The codec is polled first, because its progress may move the deadline that is checked next.
            ended = poll_fn(|cx| {
                activity.count_poll();
                let polled = connection.as_mut().poll(cx);
                codec_memory.release_once_served(activity);
                if ends_when_answered && polled.is_pending() && activity.is_answered() {
                    return Poll::Ready(Ok(()));
                }
                polled
            }) => return if ended.is_ok() { ConnectionEnd::Done } else { ConnectionEnd::Failed },
            () = displaced.notified() => {
                if codec_memory.share.is_none() {
                    continue;
                }
                ConnectionSignal::Cut
            }
            signal = timer.signal() => signal,
        };
        if retires(signal, activity) {
            activity.retire();
            connection.as_mut().graceful_shutdown();
            ends_when_answered = activity.ends_when_answered();
            continue;
        }
        activity.cut();
        return ConnectionEnd::from(signal);
    }
}

/// Whether this signal ends the connection gracefully: a GOAWAY is sent first, so that requests in transit are answered.
fn retires(signal: ConnectionSignal, activity: &ConnectionActivity) -> bool {
    match signal {
        ConnectionSignal::Retire => true,
        ConnectionSignal::Overdue(MissedDeadline::Idle) => !activity.is_retiring(),
        ConnectionSignal::Overdue(_) | ConnectionSignal::Cut => false,
    }
}

/// The memory of a codec. It counts toward the limit until the client is served, so that connections that are never served cannot
/// use up the memory.
struct CodecMemory {
    share: Option<Share>,
    /// Notified when the share is displaced, and when it is released.
    displaced: Arc<Notify>,
}

impl CodecMemory {
    /// Returns `None` if the memory for codecs is used up.
    fn take(
        peer: Peer,
        activity: &ConnectionActivity,
        context: &ConnectionContext,
    ) -> Option<Self> {
        if activity.was_served() {
            return Some(Self {
                share: None,
                displaced: Arc::default(),
            });
        }
        let share = context.bodies.take_codec(peer.address)?;
        Some(Self {
            displaced: share.displaced(),
            share: Some(share),
        })
    }

    fn release_once_served(&mut self, activity: &ConnectionActivity) {
        if self.share.is_some() && activity.was_served() {
            self.share = None;
        }
    }
}

fn codec(context: &ConnectionContext) -> http2::Builder<StreamTasks> {
    let mut codec = http2::Builder::new(StreamTasks(context.tasks.clone()));
    codec
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_frame_size(FRAME)
        .max_header_list_size(HEAD_BYTES)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(ERRORS)
        .max_send_buf_size(SEND_BUFFER);
    codec
}

/// The response on a stream, unless the stream is refused.
async fn respond(
    opened: Result<StreamGuard, StreamRefusal>,
    context: Arc<ConnectionContext>,
    request: Request<Incoming>,
    peer: Peer,
) -> Result<Response<ResponseBody>, h2::Error> {
    let Ok(mut guard) = opened else {
        return Err(h2::Reason::REFUSED_STREAM.into());
    };
    // The future is boxed, so that its memory is released while the response waits for its client.
    let response = Box::pin(answer(&context, request, peer, &mut guard)).await;
    guard.response_complete(!response.body().is_end_stream());
    Ok(response.map(|body| ResponseBody::new(body, guard)))
}

/// Answers one request.
async fn answer(
    context: &ConnectionContext,
    request: Request<Incoming>,
    peer: Peer,
    stream: &mut StreamGuard,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let has_body = !body.is_end_stream();
    let beside = context.beside_api(&head, has_body);
    let mut response = if let Some(service) = beside {
        let activity = Arc::clone(stream.activity());
        let connection = BodyConnection {
            peer,
            trust: activity.trust(),
            may_continue: true,
        };
        // The frames of the body stay in the socket until the service waits for the body, because the codec would keep
        // them in memory.
        let before_waiting = &mut |most| stream.await_body(most);
        service
            .answer(context, &head, body, connection, before_waiting)
            .await
    } else {
        // An `ArcSwap` guard is not used here, because it would occupy one of the few slots of its thread while the
        // request waits.
        let gateway = context.gateway.load_full();
        gateway
            .handle(&head, has_body, peer, stream.activity().trust())
            .await
    };
    // A `Connection` header is not allowed on HTTP/2, so the connection itself is closed.
    if response.headers_mut().remove(CONNECTION).is_some() {
        stream.activity().end_when_answered();
    }
    response
}

/// Runs the streams of connections as tasks that a shutdown waits for.
#[derive(Clone)]
struct StreamTasks(TaskTracker);

impl<F> Executor<F> for StreamTasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        self.0.spawn(stream);
    }
}
