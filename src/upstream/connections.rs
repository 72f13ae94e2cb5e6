//! Pooled connections to a backend, and the retry after an idle connection was closed. When TLS settings are renewed,
//! the pool is replaced. Requests in flight finish on their connections, which are then closed.
//!
//! A backend may close an idle connection while a request is being sent. The request is then sent once more on a new
//! connection. There are no other retries.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use ::http::{Extensions, Request, Response};
use arc_swap::ArcSwap;
use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper_rustls::{
    DefaultServerNameResolver, FixedServerNameResolver, HttpsConnector, ResolveServerName,
};
use hyper_util::{
    client::legacy::{
        Client, Error,
        connect::{HttpConnector, HttpInfo},
    },
    rt::{TokioExecutor, TokioTimer},
};
use parking_lot::Mutex;

use scoregate_observe::interim::with_few_interim;

use super::tls::BackendTls;

/// Maximum number of connections that are recorded as having answered. There are never more open connections than this. If a
/// connection is not recorded, its request is merely not retried.
const MAX_KNOWN: usize = 1_024;

/// The result of sending a request. `None` if there were too many interim responses.
type SentRequest = Option<Result<Response<Incoming>, Error>>;

type HttpClient = Client<HttpsConnector<HttpConnector>, Empty<Bytes>>;

/// Connections to one backend.
#[derive(Debug)]
pub struct Connections {
    clients: ArcSwap<ConnectionPool>,
    tcp: HttpConnector,
    idle: Duration,
    /// Local addresses of connections on which the backend has answered, newest last.
    answered: Mutex<VecDeque<SocketAddr>>,
    retries: AtomicU64,
}

#[derive(Debug)]
struct ConnectionPool {
    pooled: HttpClient,
    /// The client without a pool: every request opens a new connection.
    unpooled: HttpClient,
    tls: BackendTls,
}

impl ConnectionPool {
    fn new(tcp: HttpConnector, tls: &BackendTls, idle: Duration) -> Self {
        let name: Arc<dyn ResolveServerName + Send + Sync> = match &tls.settings.server_name {
            Some(name) => Arc::new(FixedServerNameResolver::new(name.clone())),
            None => Arc::new(DefaultServerNameResolver::default()),
        };
        let connector = HttpsConnector::new(tcp, Arc::clone(&tls.config), false, name);
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(idle)
            .retry_canceled_requests(true);
        let pooled = builder.build(connector.clone());
        let unpooled = builder.pool_max_idle_per_host(0).build(connector);
        Self {
            pooled,
            unpooled,
            tls: tls.clone(),
        }
    }
}

impl Connections {
    /// Creates the pool with a connect timeout and an idle timeout. Does not connect.
    pub fn new(connect: Duration, idle: Duration, tls: &BackendTls) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(connect));
        let clients = ArcSwap::from_pointee(ConnectionPool::new(tcp.clone(), tls, idle));
        Self {
            clients,
            tcp,
            idle,
            answered: Mutex::default(),
            retries: AtomicU64::new(0),
        }
    }

    /// Changes the TLS settings of new connections. Idle connections are closed.
    pub fn renew(&self, tls: &BackendTls) {
        self.clients.store(Arc::new(ConnectionPool::new(
            self.tcp.clone(),
            tls,
            self.idle,
        )));
    }

    /// Closes idle connections. Requests in flight finish on their connections, which are then closed.
    pub fn close_idle(&self) {
        self.renew(&self.clients.load().tls);
    }

    /// Sends a request and waits for the response head.
    pub async fn send(&self, request: Request<Empty<Bytes>>) -> SentRequest {
        with_few_interim(request, |request| self.send_pooled(request)).await
    }

    async fn send_pooled(
        &self,
        request: Request<Empty<Bytes>>,
    ) -> Result<Response<Incoming>, Error> {
        let retry = request.clone();
        let clients = self.clients.load_full();
        let answer = match clients.pooled.request(request).await {
            Err(error) if self.was_being_closed(&error) => {
                self.retries.fetch_add(1, Ordering::Relaxed);
                return clients.unpooled.request(retry).await;
            }
            answer => answer?,
        };
        if let Some(end) = local_address(answer.extensions()) {
            self.has_answered(end);
        }
        Ok(answer)
    }

    /// Number of retried requests.
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Whether a request failed because the backend closed a connection on which it had answered before. A truncated
    /// response head cannot be distinguished from this.
    fn was_being_closed(&self, error: &Error) -> bool {
        let mut extras = Extensions::new();
        let Some(connection) = error.connect_info() else {
            return false;
        };
        connection.get_extras(&mut extras);
        local_address(&extras).is_some_and(|end| self.answered.lock().contains(&end))
            && was_closed_by_peer(error)
    }

    fn has_answered(&self, end: SocketAddr) {
        let mut answered = self.answered.lock();
        if !answered.contains(&end) {
            if answered.len() >= MAX_KNOWN {
                answered.pop_front();
            }
            answered.push_back(end);
        }
    }
}

fn local_address(extras: &Extensions) -> Option<SocketAddr> {
    extras.get::<HttpInfo>().map(HttpInfo::local_addr)
}

/// Whether the peer closed the connection.
fn was_closed_by_peer(error: &Error) -> bool {
    std::iter::successors(std::error::Error::source(error), |&error| error.source()).any(|error| {
        error
            .downcast_ref::<hyper::Error>()
            .is_some_and(hyper::Error::is_incomplete_message)
            || error.downcast_ref::<io::Error>().is_some_and(|error| {
                matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
                )
            })
    })
}
