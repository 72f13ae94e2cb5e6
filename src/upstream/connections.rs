//! The connections to a backend: kept for the next question, and what is done where one turns out to be closed.
//!
//! A backend closes connections as it likes, so a question may meet one that is on its way out. Then it goes out once more,
//! on a fresh one, and that is the only second try there is. Not for: what an answer has to be (`http`), nor how long
//! one is waited for.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ::http::{Extensions, Request, Response};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::{HttpConnector, HttpInfo};
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::{Mutex, MutexGuard};

/// How many connections are known to have answered. More are not open at once, and an older one that is taken for a
/// fresh one is no harm: its question is not asked again.
const MOST_KNOWN: usize = 1_024;

type Asking = Client<HttpsConnector<HttpConnector>, Empty<Bytes>>;

/// Connections to one backend.
#[derive(Debug)]
pub(super) struct Connections {
    kept: Asking,
    /// Keeps none, so that each question has a connection of its own.
    fresh: Asking,
    /// Our ends of those that have answered, the newest last.
    answered: Mutex<VecDeque<SocketAddr>>,
    asked_again: AtomicU64,
}

impl Connections {
    /// Each may take so long to come about and is kept for so long while it is idle. Nothing is connected yet.
    pub(super) fn new(connect: Duration, idle: Duration) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(connect));
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(idle).retry_canceled_requests(true);
        let kept = builder.build(connector.clone());
        let fresh = builder.pool_max_idle_per_host(0).build(connector);
        Self { kept, fresh, answered: Mutex::default(), asked_again: AtomicU64::new(0) }
    }

    /// Asks, and waits for the head of the answer.
    pub(super) async fn ask(&self, request: Request<Empty<Bytes>>) -> Result<Response<Incoming>, Error> {
        let once_more = request.clone();
        let answer = match self.kept.request(request).await {
            Err(error) if self.was_being_closed(&error) => {
                self.asked_again.fetch_add(1, Ordering::Relaxed);
                return self.fresh.request(once_more).await;
            }
            answer => answer?,
        };
        if let Some(end) = our_end(answer.extensions()) {
            self.has_answered(end);
        }
        Ok(answer)
    }

    /// How many questions went out once more.
    pub(super) fn asked_again(&self) -> u64 {
        self.asked_again.load(Ordering::Relaxed)
    }

    /// Whether a question got no answer because its connection, which had answered before, was closed meanwhile. A head
    /// that broke off looks the same.
    fn was_being_closed(&self, error: &Error) -> bool {
        let mut extras = Extensions::new();
        let Some(connection) = error.connect_info() else { return false };
        connection.get_extras(&mut extras);
        our_end(&extras).is_some_and(|end| self.answered().contains(&end)) && broke_off(error)
    }

    fn has_answered(&self, end: SocketAddr) {
        let mut answered = self.answered();
        if !answered.contains(&end) {
            if answered.len() >= MOST_KNOWN {
                answered.pop_front();
            }
            answered.push_back(end);
        }
    }

    /// Each change is one call, so a panic elsewhere does no harm.
    fn answered(&self) -> MutexGuard<'_, VecDeque<SocketAddr>> {
        self.answered.lock()
    }
}

fn our_end(extras: &Extensions) -> Option<SocketAddr> {
    extras.get::<HttpInfo>().map(HttpInfo::local_addr)
}

/// Whether the other side ended the connection, by a word or without one.
fn broke_off(error: &Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(deeper) = cause {
        let ended = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
        };
        if deeper.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message)
            || deeper.downcast_ref::<io::Error>().is_some_and(ended)
        {
            return true;
        }
        cause = deeper.source();
    }
    false
}
