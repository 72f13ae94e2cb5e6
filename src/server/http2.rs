//! HTTP/2 on a stream, with small windows and few streams: one client's appetite is its own affair.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONNECTION;
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::task::TaskTracker;

use crate::gateway::{Gateway, Peer};

use super::connection_activity::ConnectionActivity;
use super::connection_context::ConnectionContext;
use super::connection_end::ConnectionEnd;
use super::deadline_timer::{ConnectionSignal, DeadlineTimer};
use super::deadlines::MissedDeadline;
use super::paced_io::PacedIo;
use super::response_body::ResponseBody;

/// The first bytes of an HTTP/2 connection.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Requests that a client may have open at once on one connection.
const STREAMS: u32 = 100;
/// Requests have no bodies here, so nothing needs room: the least windows that the protocol starts with.
const WINDOW: u32 = 65_535;
const FRAME: u32 = 16_384;
/// Twice what the gateway takes, as on HTTP/1.1.
const HEAD_BYTES: u32 = 32_768;
/// Streams that a client took back before we looked at them; more is an attack and ends the connection.
const RESETS: usize = 20;
/// Streams that we reset because of a client's errors; likewise.
const ERRORS: usize = 100;
/// Bytes of one answer that wait in the codec. Bodies are shared with the store, so this holds back writes, not memory.
const SEND_BUFFER: usize = 64 * 1_024;

/// Serves a stream to its end.
pub(super) async fn serve<S>(
    stream: S,
    peer: Peer,
    pulse: &Arc<ConnectionActivity>,
    host: &ConnectionContext,
    watch: &mut DeadlineTimer,
) -> ConnectionEnd
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let stream = PacedIo::new(stream, PREFACE.len(), Arc::clone(pulse));
    let service = service_fn(|request: Request<Incoming>| {
        let mut ticket = pulse.ticket();
        let (gateway, pulse) = (host.gateway.load_full(), Arc::clone(pulse));
        async move {
            // Boxed: of a response that waits for its client, all this would be kept in memory otherwise.
            let response = Box::pin(answer(gateway, request, peer, pulse)).await;
            if !ticket.answered(!response.body().is_end_stream()) {
                return Err(h2::Error::from(h2::Reason::REFUSED_STREAM));
            }
            Ok(response.map(|body| ResponseBody::new(body, ticket)))
        }
    });
    let connection = http2::Builder::new(StreamTasks(host.tasks.clone()))
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_frame_size(FRAME)
        .max_header_list_size(HEAD_BYTES)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(ERRORS)
        .max_send_buf_size(SEND_BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    loop {
        let told = tokio::select! {
            biased;
            ended = poll_fn(|cx| {
                pulse.next_turn();
                connection.as_mut().poll(cx)
            }) => return if ended.is_ok() { ConnectionEnd::Done } else { ConnectionEnd::Failed },
            told = watch.told() => told,
        };
        // One that is idle is told before it is left: what it sent meanwhile is answered.
        if told == ConnectionSignal::Retire
            || (told == ConnectionSignal::Overdue(MissedDeadline::Idle) && !pulse.is_retiring())
        {
            pulse.retire();
            connection.as_mut().graceful_shutdown();
            continue;
        }
        pulse.cut();
        return ConnectionEnd::from(told);
    }
}

/// Answers one request.
async fn answer(
    gateway: Arc<Gateway>,
    request: Request<Incoming>,
    peer: Peer,
    pulse: Arc<ConnectionActivity>,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let has_body = !body.is_end_stream();
    let mut response = gateway.handle(&head, has_body, peer, pulse.authenticated()).await;
    // What closes a connection of HTTP/1.1 has no place in a head here: the connection says so itself.
    if response.headers_mut().remove(CONNECTION).is_some() {
        pulse.retire();
    }
    response
}

/// Runs the streams of connections, as tasks that a stop waits for.
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
