//! Accepts connections until it is told to stop, then lets those that are open finish.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use metrics::{Counter, Gauge};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::{Clock, Mono};
use crate::gateway::{Gateway, Peer};
use crate::telemetry::metrics::{Family, Registry};

use super::connection::{Closed, ConnectionConfig, Host, serve};
use super::places::{Place, Places};
use super::pulse::Pulse;

/// After a failure to accept, so long is waited: descriptors do not come back faster for being asked for.
const BREATHE: Duration = Duration::from_millis(50);
/// The log says at most once in this time that connections cannot be accepted.
const SAY_AGAIN: Duration = Duration::from_secs(5);

/// How the public port behaves.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The most connections at once. Further ones wait in the kernel's queue.
    pub most_connections: usize,
    /// The most of one address.
    pub most_per_address: usize,
    /// How a connection behaves.
    pub connection: ConnectionConfig,
    /// How long open connections may take to finish when the server stops.
    pub grace: Duration,
}

/// How the public port behaves now, which can change while it serves.
pub struct Manners {
    config: ArcSwap<ServerConfig>,
    places: Arc<Places>,
}

impl Manners {
    /// From now on it behaves so. Connections that are open keep the deadlines they began with.
    pub fn change(&self, config: ServerConfig) {
        self.places.allow(config.most_connections, config.most_per_address);
        self.config.store(Arc::new(config));
    }
}

/// A server on one listening socket.
pub struct Server {
    listener: TcpListener,
    host: Host,
    manners: Arc<Manners>,
    open: Gauge,
    closed: Family<Counter, Closed>,
    failures: Counter,
}

/// Binds the public port.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

impl Server {
    /// A server that answers through `gateway`.
    pub fn new(
        listener: TcpListener,
        gateway: Arc<ArcSwap<Gateway>>,
        config: ServerConfig,
        clock: Clock,
        registry: &Registry,
    ) -> Self {
        let places = Places::new(config.most_connections, config.most_per_address);
        let manners = Arc::new(Manners { config: ArcSwap::from_pointee(config), places });
        let host = Host { gateway, clock, tasks: TaskTracker::new() };
        Self {
            listener,
            host,
            manners,
            open: registry.gauge("scoregate_connections"),
            closed: registry.counters("scoregate_connections_total", &Closed::words()),
            failures: registry.counter("scoregate_accept_failures_total"),
        }
    }

    /// How it behaves, to be changed while it serves.
    pub fn manners(&self) -> Arc<Manners> {
        Arc::clone(&self.manners)
    }

    /// Serves until `stop`, then stops accepting and waits for open connections, as long as the grace lasts.
    /// Answers whether all of them finished.
    pub async fn run(self, stop: CancellationToken) -> bool {
        let server = Arc::new(self);
        let connections = server.host.tasks.clone();
        let mut said = None;
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = server.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let pulse = Arc::new(Pulse::new(server.host.clock.clone()));
                    let place = server.manners.places.take(&pulse);
                    let (server, stop) = (Arc::clone(&server), stop.clone());
                    connections
                        .spawn(async move { server.connection(stream, peer, pulse, place, stop).await });
                }
                Err(error) => {
                    server.failures.increment(1);
                    server.say(&mut said, &error);
                    server.host.clock.sleep(BREATHE).await;
                }
            }
        }
        connections.close();
        let grace = server.manners.config.load().grace;
        server.host.clock.within(grace, connections.wait()).await.is_ok()
    }

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        self.manners.places.room().await;
        self.listener.accept().await
    }

    async fn connection(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        pulse: Arc<Pulse>,
        mut place: Place,
        stop: CancellationToken,
    ) {
        self.open.increment(1.0);
        let config = self.manners.config.load_full();
        let peer = Peer { address: peer.ip() };
        let closed = serve(stream, peer, &pulse, &mut place, &config.connection, &self.host, stop).await;
        self.closed.count(closed);
        self.open.decrement(1.0);
    }

    fn say(&self, said: &mut Option<Mono>, error: &io::Error) {
        let now = self.host.clock.mono();
        if said.is_none_or(|said| now.since(said) >= SAY_AGAIN) {
            tracing::error!(%error, "connections cannot be accepted");
            *said = Some(now);
        }
    }
}
