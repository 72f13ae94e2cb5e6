//! Accepts connections until it is told to stop, then lets those that are open finish.
//!
//! Every connection ends: one that says nothing, or idles, after [`SILENCE`]; any other, one that does not read its
//! answers too, after [`LONGEST_CONNECTION`]. Not for: what is answered (`answer`).

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

/// So long a head may take from the end of the answer before, or from the beginning: longer than a gateway keeps a
/// connection that idles, so that the gateway closes first.
const SILENCE: Duration = Duration::from_secs(30);
/// So long a connection lasts at the most.
const LONGEST_CONNECTION: Duration = Duration::from_mins(10);
/// So long the answer that is under way when a connection has to end may take.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// After a failure to accept, so long is waited: descriptors do not come back faster for being asked for.
const BREATHE: Duration = Duration::from_millis(100);
/// The log says at most once in this time that connections cannot be accepted.
const SAY_AGAIN: Duration = Duration::from_secs(5);
/// Far more than a gateway sends.
const LARGEST_HEAD: usize = 32_768;
const MOST_HEADERS: usize = 64;

/// Answers on `listener`, and keeps the snapshot current, until `stop`. Has at most `most_connections` open; further ones
/// wait in the kernel's queue.
pub async fn serve(
    listener: TcpListener,
    backend: Arc<BackendServer>,
    most_connections: usize,
    stop: CancellationToken,
) {
    let tasks = TaskTracker::new();
    let keeping = Arc::clone(&backend);
    let look: UpdateSnapshot = Arc::new(move |now| keeping.look(now));
    // Nobody can tell it of an import, so that it looks for itself.
    let (keeper, _) = SnapshotUpdater::new(Arc::clone(backend.scoring()), look, backend.clock().clone());
    tasks.spawn(keep_current(keeper, stop.clone()));
    tokio::select! {
        () = stop.cancelled() => {}
        () = accept(&listener, &backend, most_connections, &tasks, &stop) => {}
    }
    drop(listener);
    tasks.close();
    // Each connection sees to its own end, so this does end.
    tasks.wait().await;
}

/// Makes every snapshot when it is due.
async fn keep_current(mut keeper: SnapshotUpdater, stop: CancellationToken) {
    while stop.run_until_cancelled(keeper.next()).await.is_some() {}
}

/// Accepts for ever.
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
                tasks.spawn(converse(stream, place, Arc::clone(backend), stop.clone()));
            }
            Err(error) => {
                say(&mut said, backend.clock().mono(), &error);
                backend.clock().sleep(BREATHE).await;
            }
        }
    }
}

/// Answers on a connection until it ends. It holds its place as long.
async fn converse(
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
        .header_read_timeout(SILENCE)
        .max_buf_size(LARGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = stop.cancelled() => None,
        () = backend.clock().sleep(LONGEST_CONNECTION) => None,
    };
    let ended = if let Some(ended) = ended {
        Ok(ended)
    } else {
        connection.as_mut().graceful_shutdown();
        backend.clock().within(LAST_WORDS, connection).await
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection broke"),
        Err(_) => tracing::debug!("a connection was cut off"),
    }
    drop(place);
}

fn say(said: &mut Option<Mono>, now: Mono, error: &io::Error) {
    if said.is_none_or(|said| now.since(said) >= SAY_AGAIN) {
        tracing::error!(%error, "cannot accept connections");
        *said = Some(now);
    }
}
