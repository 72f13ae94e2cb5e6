//! Accepts connections until it is told to stop, then lets those that are open finish.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::FutureExt as _;
use metrics::{Counter, Gauge};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::{Clock, Mono};
use crate::gateway::{Gateway, Peer};
use crate::telemetry::metrics::{MetricFamily, MetricsRegistry};

use super::connection::{ConnectionConfig, serve};
use super::connection_activity::ConnectionActivity;
use super::connection_context::ConnectionContext;
use super::connection_end::ConnectionEnd;
use super::connection_slots::{ConnectionSlot, ConnectionSlots};
use super::unsent::UnsentResponses;

/// After a failure to accept, so long is waited: descriptors do not come back faster for being asked for.
const BREATHE: Duration = Duration::from_millis(50);
/// What the kernel holds for a connection of what its client has not taken yet: several answers of the largest kind.
const SEND_BUFFER: u32 = 256 * 1_024;
/// The unsent bytes of a connection below which the kernel takes more. At most a few of them go unnoticed as progress.
const UNSENT_BYTES: u32 = 4 * 1_024;
/// How many connections the kernel keeps for us while we are busy, or while one process takes over from another.
const BACKLOG: u32 = 4_096;
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
pub struct LiveServerConfig {
    config: ArcSwap<ServerConfig>,
    places: Arc<ConnectionSlots>,
}

impl LiveServerConfig {
    /// From now on it behaves so. Connections that are open keep the deadlines they began with.
    pub fn change(&self, config: ServerConfig) {
        self.places.allow(config.most_connections, config.most_per_address);
        self.config.store(Arc::new(config));
    }
}

/// The socket that the server listens on.
pub struct PublicPort {
    listener: TcpListener,
    somebody_else_s: bool,
}

/// A server on one listening socket.
pub struct Server {
    port: PublicPort,
    shared: Arc<ServerShared>,
}

/// What the connections of a server share.
struct ServerShared {
    host: ConnectionContext,
    manners: Arc<LiveServerConfig>,
    unsent: Arc<UnsentResponses>,
    open: Gauge,
    closed: MetricFamily<Counter, ConnectionEnd>,
    failures: Counter,
}

/// Binds the public port.
pub async fn bind(address: SocketAddr) -> io::Result<PublicPort> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // As the standard library does it: a port whose connections of before are not forgotten yet can be had.
    socket.set_reuseaddr(true)?;
    // Connections inherit this: what the kernel holds for a client that reads nothing is bounded.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    Ok(PublicPort { listener: socket.listen(BACKLOG)?, somebody_else_s: false })
}

impl PublicPort {
    /// A socket that a service manager opened and holds: connections that we do not accept wait for the next process.
    pub fn inherited(socket: std::net::TcpListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        SockRef::from(&socket).set_send_buffer_size(SEND_BUFFER as usize)?;
        Ok(Self { listener: TcpListener::from_std(socket)?, somebody_else_s: true })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Server {
    /// A server that answers through `gateway`.
    pub fn new(
        port: PublicPort,
        gateway: Arc<ArcSwap<Gateway>>,
        config: ServerConfig,
        clock: Clock,
        registry: &MetricsRegistry,
    ) -> Self {
        let places = ConnectionSlots::new(config.most_connections, config.most_per_address);
        let manners = Arc::new(LiveServerConfig { config: ArcSwap::from_pointee(config), places });
        let host = ConnectionContext { gateway, clock, tasks: TaskTracker::new() };
        let shared = Arc::new(ServerShared {
            host,
            manners,
            unsent: Arc::default(),
            open: registry.gauge("scoregate_connections"),
            closed: registry.counters("scoregate_connections_total", &ConnectionEnd::words()),
            failures: registry.counter("scoregate_accept_failures_total"),
        });
        Self { port, shared }
    }

    /// How it behaves, to be changed while it serves.
    pub fn manners(&self) -> Arc<LiveServerConfig> {
        Arc::clone(&self.shared.manners)
    }

    /// Serves until `stop`, then stops accepting and waits for open connections, as long as the grace lasts.
    /// Answers whether all of them finished.
    pub async fn run(self, stop: CancellationToken) -> bool {
        let Self { port, shared } = self;
        let mut said = None;
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = port.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    // Others wait in the kernel's queue meanwhile.
                    tokio::select! {
                        () = shared.manners.places.room(&shared.host.clock) => {}
                        () = stop.cancelled() => {}
                    }
                    shared.open(stream, peer);
                }
                Err(error) => {
                    shared.failures.increment(1);
                    shared.say(&mut said, &error);
                    shared.host.clock.sleep(BREATHE).await;
                }
            }
        }
        shared.manners.places.end();
        // Whoever is connected already has no other to turn to, where the socket ends with us.
        while !port.somebody_else_s
            && let Some(Ok((stream, peer))) = port.listener.accept().now_or_never()
        {
            shared.open(stream, peer);
        }
        drop(port);
        shared.host.tasks.close();
        let grace = shared.manners.config.load().grace;
        shared.host.clock.within(grace, shared.host.tasks.wait()).await.is_ok()
    }
}

impl ServerShared {
    fn open(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        // Otherwise the kernel reports no progress of a slow client until a third of its send buffer is free.
        if let Err(error) = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_BYTES) {
            tracing::debug!(%error, "TCP_NOTSENT_LOWAT cannot be set");
        }
        let pulse = Arc::new(ConnectionActivity::new(self.host.clock.clone(), Arc::clone(&self.unsent)));
        let place = self.manners.places.take(&pulse);
        let shared = Arc::clone(self);
        self.host.tasks.spawn(async move { shared.connection(stream, peer, pulse, place).await });
    }

    async fn connection(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        pulse: Arc<ConnectionActivity>,
        mut place: ConnectionSlot,
    ) {
        self.open.increment(1.0);
        let config = self.manners.config.load_full();
        let peer = Peer { address: peer.ip(), is_encrypted: false };
        let closed = serve(stream, peer, &pulse, &mut place, &config.connection, &self.host).await;
        self.closed.count(closed);
        self.open.decrement(1.0);
    }

    fn say(&self, said: &mut Option<Mono>, error: &io::Error) {
        let now = self.host.clock.mono();
        if said.is_none_or(|said| now.since(said) >= SAY_AGAIN) {
            tracing::error!(%error, "cannot accept connections");
            *said = Some(now);
        }
    }
}
