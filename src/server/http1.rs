//! HTTP/1.1, with codec limits above the gateway's own, so that clients get the gateway's error responses.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::header::CONNECTION;
use http::{HeaderValue, Request};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::gateway::Peer;

use super::connection_activity::ConnectionActivity;
use super::connection_context::ConnectionContext;
use super::connection_end::ConnectionEnd;
use super::deadline_timer::{ConnectionSignal, DeadlineTimer};
use super::deadlines::MissedDeadline;
use super::head_scanner::HeadScanner;

/// Twice the gateway's limit, so that too large requests get the API's own error. The codec accepts 100 header
/// fields, which is above the gateway's limit too; any other number would make it allocate for each request.
const CODEC_HEAD_BYTES: usize = 32_768;

const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// How long and how much is read from a client that was refused while it was sending: closing at once would reset the
/// connection and discard the response.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
const DRAIN_BYTES: u64 = 256 * 1_024;

/// Serves a stream until it ends.
pub(super) async fn serve<S>(
    mut stream: S,
    peer: Peer,
    activity: &Arc<ConnectionActivity>,
    context: &ConnectionContext,
    timer: &mut DeadlineTimer,
) -> ConnectionEnd
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let closes = AtomicBool::new(false);
    let service = service_fn(|request: Request<Incoming>| {
        activity.request_started();
        let (head, body) = request.into_parts();
        let closes = &closes;
        async move {
            let site = context.site_for(&head);
            let mut response = if let Some(site) = site {
                Box::pin(site.handle(&head, body, peer)).await
            } else {
                let gateway = context.gateway.load();
                gateway.handle(&head, !body.is_end_stream(), peer, activity.authenticated()).await
            };
            let is_the_last = activity.response_complete();
            // Only refusals and responses to forms close the connection.
            let may_close = site.is_some() || response.status().as_u16() >= 400;
            if may_close && response.headers().contains_key(CONNECTION) {
                closes.store(true, Ordering::Relaxed);
            } else if is_the_last {
                response.headers_mut().insert(CONNECTION, CLOSE);
            }
            Ok::<_, Infallible>(response)
        }
    });
    // Our own timeouts: the codec's would set a timer for each request.
    let connection = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(CODEC_HEAD_BYTES)
        .serve_connection(TokioIo::new(HeadScanner::stream(&mut stream)), service);
    let ended = timer.run(connection).await;
    match ended {
        Ok(Ok(())) if !closes.load(Ordering::Relaxed) => ConnectionEnd::Done,
        Ok(ended) => {
            drain(stream, context).await;
            if ended.is_ok() { ConnectionEnd::Done } else { ConnectionEnd::Failed }
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

/// After the last response: closes our side, and reads what is in transit, so that no reset destroys the response
/// before the client has read it.
async fn drain(mut stream: impl AsyncRead + AsyncWrite + Unpin, context: &ConnectionContext) {
    let drained = context.clock.within(DRAIN_TIMEOUT, async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(DRAIN_BYTES), &mut tokio::io::sink()).await
    });
    let drained = drained.await;
    tracing::trace!(?drained, "input of a refused client was discarded");
}

/// Closes our side of an idle connection.
async fn shut_down(mut stream: impl AsyncWrite + Unpin, context: &ConnectionContext) {
    let closed = context.clock.within(DRAIN_TIMEOUT, stream.shutdown()).await;
    tracing::trace!(?closed, "idle connection closed");
}
