//! Accepts connections until shutdown, then lets open connections finish.
//!
//! Every connection ends: an idle connection after [`HEAD_TIMEOUT`], any other connection after [`MAX_CONNECTION_AGE`],
//! even if the client does not read its responses.

use std::{convert::Infallible, sync::Arc, time::Duration};

use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use scoregate_base::accept::accept_next;
use scoregate_scoring::{SnapshotUpdater, UpdateSnapshot};

use super::answer::BackendServer;

/// Timeout for a request head, measured from the last response or from the start of the connection. It is longer than
/// the idle timeout of a gateway, so that the gateway closes the connection first.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum connection age.
const MAX_CONNECTION_AGE: Duration = Duration::from_mins(10);
/// Time limit for a response in progress when its connection has to end.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum size of a request head. A gateway sends far less.
const MAX_HEAD_BYTES: usize = 32_768;
const MAX_HEADERS: usize = 64;

/// Serves `listener` and keeps the snapshot current until `stop`. At most `max_connections` are open. Further connections wait in
/// the kernel's queue.
pub async fn serve(
    listener: TcpListener,
    backend: Arc<BackendServer>,
    max_connections: usize,
    stop: CancellationToken,
) {
    let tasks = TaskTracker::new();
    let checked = Arc::clone(&backend);
    let check: UpdateSnapshot = Arc::new(move |now| checked.check(now));
    // Imports cannot notify this process, so the process polls for them.
    let (updater, _) = SnapshotUpdater::new(
        Arc::clone(backend.scoring()),
        check,
        backend.clock().clone(),
    );
    tasks.spawn(update_snapshots(updater, stop.clone()));
    let slots = Arc::new(Semaphore::new(
        max_connections.clamp(1, Semaphore::MAX_PERMITS),
    ));
    let accept = async || {
        let slot = Arc::clone(&slots)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        (
            slot,
            accept_next(backend.clock(), || listener.accept()).await,
        )
    };
    while let Some((slot, (stream, _))) = stop.run_until_cancelled(accept()).await {
        tasks.spawn(serve_connection(
            stream,
            slot,
            Arc::clone(&backend),
            stop.clone(),
        ));
    }
    drop(listener);
    tasks.close();
    // Each connection has a maximum age, so this wait ends.
    tasks.wait().await;
}

/// Updates the snapshot whenever it is due.
async fn update_snapshots(mut updater: SnapshotUpdater, stop: CancellationToken) {
    while stop.run_until_cancelled(updater.next()).await.is_some() {}
}

/// Serves a connection until it ends, and holds the slot until then.
async fn serve_connection(
    stream: TcpStream,
    slot: OwnedSemaphorePermit,
    backend: Arc<BackendServer>,
    stop: CancellationToken,
) {
    // Otherwise the end of a response over 64 KB would wait for an acknowledgement, which clients delay by 40 ms.
    if stream.set_nodelay(true).is_err() {
        return; // fails only if the socket is gone
    }
    let service = service_fn(|request: Request<Incoming>| {
        let response = backend.answer(request.method(), request.uri(), request.headers());
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = stop.cancelled() => None,
        () = backend.clock().sleep(MAX_CONNECTION_AGE) => None,
    };
    let ended = if let Some(ended) = ended {
        Ok(ended)
    } else {
        connection.as_mut().graceful_shutdown();
        backend.clock().within(RESPONSE_TIMEOUT, connection).await
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "connection failed"),
        Err(_) => tracing::debug!("connection closed before its response was sent"),
    }
    drop(slot);
}
