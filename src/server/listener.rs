//! Accepts connections until shutdown, and then waits for open connections.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use futures_util::{FutureExt as _, TryFutureExt as _};
use metrics::{Counter, Gauge};
use socket2::SockRef;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    bodies::BodyBudget,
    gateway::{Gateway, Peer},
    leaks::LeakReceiver,
    mcp::McpService,
    site::Site,
};
use scoregate_base::{
    accept::{BACKLOG, accept_next},
    clock::Clock,
};
use scoregate_observe::telemetry::metrics::{MetricFamily, MetricsRegistry};

use super::{
    activity::ConnectionActivity,
    application_connections::ApplicationConnections,
    connection::{ConnectionConfig, serve},
    connection_context::ConnectionContext,
    connection_end::ConnectionEnd,
    connection_slots::{ConnectionSlot, ConnectionSlots},
    unsent::UnsentResponses,
};

/// Size of a connection's send buffer in the kernel, enough for several of the largest responses.
const SEND_BUFFER: u32 = 256 * 1_024;
/// The kernel accepts more bytes only while fewer than this many are unsent, so almost all of a client's progress is visible.
const UNSENT_BYTES: u32 = 4 * 1_024;

/// Maximum number of concurrently read heads that are larger than the gateway accepts, up to 64 KiB each. Further
/// heads get a 431 without a body.
const LARGE_HEADS: usize = 64;
/// Maximum number of refused clients whose input is read and discarded, so that they receive their response. Each of
/// them keeps its connection, which needs about 10 kB, for up to 2 s. Further clients may not receive the response.
const DRAINS: usize = 256;

/// Settings of the public port.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Maximum number of connections. Further connections wait in the kernel's queue.
    pub max_connections: usize,
    /// Maximum number of connections per address.
    pub max_per_address: usize,
    /// Maximum number of connections per application, unless its limit of requests per minute is higher.
    pub max_per_application: usize,
    /// Settings of a connection.
    pub connection: ConnectionConfig,
    /// Time for which connections are still accepted during a shutdown, so that a load balancer can select other
    /// servers.
    pub shutdown_delay: Duration,
    /// Time within which open connections must finish during a shutdown.
    pub shutdown_timeout: Duration,
}

/// The current settings, which can be changed at run time.
pub struct LiveServerConfig {
    config: ArcSwap<ServerConfig>,
    slots: Arc<ConnectionSlots>,
    applications: Arc<ApplicationConnections>,
}

impl LiveServerConfig {
    /// Changes the settings. Open connections keep the timeouts they started with.
    pub fn change(&self, config: ServerConfig) {
        self.slots
            .allow(config.max_connections, config.max_per_address);
        self.applications.allow(config.max_per_application);
        self.config.store(Arc::new(config));
    }
}

/// The listening socket.
pub struct PublicPort {
    listener: TcpListener,
    is_inherited: bool,
}

/// A server on one listening socket.
pub struct Server {
    port: PublicPort,
    shared: ServerShared,
}

/// State shared by the connections of a server.
struct ServerShared {
    context: ConnectionContext,
    live_config: Arc<LiveServerConfig>,
    unsent: Arc<UnsentResponses>,
    open: Gauge,
    closed: MetricFamily<Counter, ConnectionEnd>,
    failures: Counter,
}

/// Binds the public port.
pub async fn bind(address: SocketAddr) -> io::Result<PublicPort> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // As in the standard library, this allows binding while old connections are in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    // Connections inherit this size, which limits the kernel memory for a client that does not read.
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    Ok(PublicPort {
        listener: socket.listen(BACKLOG)?,
        is_inherited: false,
    })
}

impl PublicPort {
    /// Uses a socket that a service manager opened and holds. Connections that this process does not accept wait for
    /// the next process.
    pub fn inherited(socket: std::net::TcpListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        SockRef::from(&socket).set_send_buffer_size(SEND_BUFFER as usize)?;
        Ok(Self {
            listener: TcpListener::from_std(socket)?,
            is_inherited: true,
        })
    }

    /// The address that the socket listens on.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Server {
    /// Creates a server that answers requests through `gateway`.
    pub fn new(
        port: PublicPort,
        gateway: Arc<ArcSwap<Gateway>>,
        config: ServerConfig,
        clock: Clock,
        registry: &MetricsRegistry,
    ) -> Self {
        let slots = ConnectionSlots::new(config.max_connections, config.max_per_address);
        let applications = Arc::new(ApplicationConnections::default());
        applications.allow(config.max_per_application);
        let config = ArcSwap::from_pointee(config);
        let live_config = Arc::new(LiveServerConfig {
            config,
            slots,
            applications,
        });
        // The limit applies to the whole process, so that the memory for large heads does not grow with the number of
        // connections.
        let large_heads = Arc::new(Semaphore::new(LARGE_HEADS));
        let site = None;
        let leaks = None;
        let mcp = None;
        let tasks = TaskTracker::new();
        let context = ConnectionContext {
            gateway,
            site,
            leaks,
            mcp,
            clock,
            bodies: Arc::new(BodyBudget::new(registry)),
            large_heads,
            drains: Arc::new(Semaphore::new(DRAINS)),
            tasks,
        };
        let shared = ServerShared {
            context,
            live_config,
            unsent: Arc::new(UnsentResponses::new(registry)),
            open: registry.gauge("scoregate_connections"),
            closed: registry.counters("scoregate_connections_total"),
            failures: registry.counter("scoregate_accept_failures_total"),
        };
        Self { port, shared }
    }

    /// Serves the account pages through `site`.
    #[must_use]
    pub fn with_site(mut self, site: Option<Arc<Site>>) -> Self {
        self.shared.context.site = site;
        self
    }

    /// Serves requests from language models through `mcp`.
    #[must_use]
    pub fn with_mcp(mut self, mcp: Option<Arc<McpService>>) -> Self {
        self.shared.context.mcp = mcp;
        self
    }

    /// Receives leaked keys through `leaks`.
    #[must_use]
    pub fn with_leaks(mut self, leaks: Option<Arc<LeakReceiver>>) -> Self {
        self.shared.context.leaks = leaks;
        self
    }

    /// A handle for changing the settings at run time.
    pub fn live_config(&self) -> Arc<LiveServerConfig> {
        Arc::clone(&self.shared.live_config)
    }

    /// Serves until `stop`, then stops accepting connections and waits for open ones, up to the shutdown timeout.
    /// Returns whether all of them finished.
    pub async fn run(self, stop: CancellationToken) -> bool {
        let port = self.port;
        let shared = Arc::new(self.shared);
        let clock = &shared.context.clock;
        let accept = || {
            port.listener
                .accept()
                .inspect_err(|_| shared.failures.increment(1))
        };
        while let Some((stream, peer)) = stop.run_until_cancelled(accept_next(clock, accept)).await
        {
            // Other connections wait in the kernel's queue.
            stop.run_until_cancelled(shared.live_config.slots.wait_for_slot(clock))
                .await;
            shared.open(stream, peer);
        }
        shared.live_config.slots.end();
        // This socket closes when the process ends, so no other server could accept the clients in the kernel's queue.
        while !port.is_inherited
            && let Some(Ok((stream, peer))) = port.listener.accept().now_or_never()
        {
            shared.open(stream, peer);
        }
        drop(port);
        // The wait below ends only if the tracker is closed.
        shared.context.tasks.close();
        let timeout = shared.live_config.config.load().shutdown_timeout;
        clock
            .within(timeout, shared.context.tasks.wait())
            .await
            .is_ok()
    }
}

impl ServerShared {
    fn open(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        // Without this option, the kernel reports progress of a slow client only when a third of the send buffer is
        // free.
        if let Err(error) = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_BYTES) {
            tracing::debug!(%error, "TCP_NOTSENT_LOWAT cannot be set");
        }
        let unsent = Arc::clone(&self.unsent);
        let applications = Arc::clone(&self.live_config.applications);
        let activity = Arc::new(ConnectionActivity::new(
            self.context.clock.clone(),
            unsent,
            applications,
        ));
        // The slot is taken here and not in the task, so that this connection is counted in the next search for a slot.
        let slot = self.live_config.slots.take(&activity);
        let shared = Arc::clone(self);
        self.context
            .tasks
            .spawn(async move { shared.connection(stream, peer, activity, slot).await });
    }

    async fn connection(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        activity: Arc<ConnectionActivity>,
        mut slot: ConnectionSlot,
    ) {
        self.open.increment(1.0);
        // The connection keeps its settings, so its timeouts do not change.
        let config = self.live_config.config.load_full();
        let peer = Peer {
            address: peer.ip(),
            is_encrypted: false,
            is_tool_call: false,
        };
        let closed = serve(
            stream,
            peer,
            &activity,
            &mut slot,
            &config.connection,
            &self.context,
        )
        .await;
        self.closed.count(if activity.is_surplus() {
            ConnectionEnd::Surplus
        } else {
            closed
        });
        self.open.decrement(1.0);
    }
}
