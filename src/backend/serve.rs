//! Accepts connections until shutdown, then lets open ones finish.
//!
//! Every connection ends: an idle one after [`HEAD_TIMEOUT`], any other, even one that does not read its responses, after
//! [`MAX_CONNECTION_AGE`].

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Mono;
use crate::scoring::{SnapshotUpdater, UpdateSnapshot};

use super::answer::BackendServer;

/// Timeout for a request head, from the last response or from the start of the connection: longer than a gateway's
/// idle timeout, so that the gateway closes first.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum connection age.
const MAX_CONNECTION_AGE: Duration = Duration::from_mins(10);
/// How long a response in progress may take when its connection has to end.
const LAST_RESPONSE: Duration = Duration::from_secs(2);
/// Pause after a failure to accept: descriptors become free only with time.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// Minimum interval between log lines about failures to accept.
const LOG_INTERVAL: Duration = Duration::from_secs(5);
/// Far more than a gateway sends.
const LARGEST_HEAD: usize = 32_768;
const MOST_HEADERS: usize = 64;

/// Serves `listener`, and keeps the snapshot current, until `stop`. Has at most `most_connections` open; others wait
/// in the kernel's queue.
pub async fn serve(
    listener: TcpListener,
    backend: Arc<BackendServer>,
    most_connections: usize,
    stop: CancellationToken,
) {
    let tasks = TaskTracker::new();
    let keeping = Arc::clone(&backend);
    let look: UpdateSnapshot = Arc::new(move |now| keeping.check(now));
    // Imports cannot notify this process, so it polls for them.
    let (keeper, _) = SnapshotUpdater::new(Arc::clone(backend.scoring()), look, backend.clock().clone());
    tasks.spawn(keep_current(keeper, stop.clone()));
    tokio::select! {
        () = stop.cancelled() => {}
        () = accept(&listener, &backend, most_connections, &tasks, &stop) => {}
    }
    drop(listener);
    tasks.close();
    // Each connection has a maximum age, so this ends.
    tasks.wait().await;
}

/// Makes every snapshot when it is due.
async fn keep_current(mut keeper: SnapshotUpdater, stop: CancellationToken) {
    while stop.run_until_cancelled(keeper.next()).await.is_some() {}
}

/// Accepts connections for ever.
async fn accept(
    listener: &TcpListener,
    backend: &Arc<BackendServer>,
    most_connections: usize,
    tasks: &TaskTracker,
    stop: &CancellationToken,
) {
    let places = Arc::new(Semaphore::new(most_connections.clamp(1, Semaphore::MAX_PERMITS)));
    let mut said = None;
    loop {
        let place = Arc::clone(&places).acquire_owned().await.expect("nobody closes it");
        match listener.accept().await {
            Ok((stream, _)) => {
                tasks.spawn(serve_connection(stream, place, Arc::clone(backend), stop.clone()));
            }
            Err(error) => {
                log_failure(&mut said, backend.clock().mono(), &error);
                backend.clock().sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

/// Serves a connection until it ends. It holds its slot meanwhile.
async fn serve_connection(
    stream: TcpStream,
    place: OwnedSemaphorePermit,
    backend: Arc<BackendServer>,
    stop: CancellationToken,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let answer = backend.answer(request.method(), request.uri(), request.headers());
        std::future::ready(Ok::<_, Infallible>(answer))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(LARGEST_HEAD)
        .max_headers(MOST_HEADERS)
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
        backend.clock().within(LAST_RESPONSE, connection).await
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection broke"),
        Err(_) => tracing::debug!("a connection was cut off"),
    }
    drop(place);
}

fn log_failure(said: &mut Option<Mono>, now: Mono, error: &io::Error) {
    if said.is_none_or(|said| now.since(said) >= LOG_INTERVAL) {
        tracing::error!(%error, "cannot accept connections");
        *said = Some(now);
    }
}
