//! Starts the server, and stops it in reverse order.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context as _;
use arc_swap::ArcSwap;
use tokio::sync::mpsc;
use tokio_util::{sync::DropGuard, task::TaskTracker};

use crate::{
    admin::{Heartbeat, Readiness, ReloadRequest, Reloaded},
    config::{Config, ConfigProblems, read_certificates},
    gateway::Gateway,
    registry::Registrar,
    server::TlsTermination,
};
use scoregate_base::clock::Clock;
use scoregate_observe::telemetry::metrics::MetricsRegistry;

use super::{
    administration::ServerKeys,
    background::{Background, FinishingTask},
    build::{BuiltGateway, build},
    clock_steps,
    data_dir::DataDir,
    mail_delivery::queue_monitor,
    reload::{self, Reloader},
    running_ports::{RunningPublicPort, RunningSidePort},
    server_parts::{self, ServerParts},
    site,
    sockets::{InheritedSockets, OpenPorts},
    start_context::StartContext,
    status_report,
    storage::StorageGauges,
    tasks, trace_export,
    watched_files::WatchedFiles,
};
use crate::app::supervisor::{Supervisor, SupervisorState};

/// Time for which a shutdown waits for the last lines of the access log. After that, `cli` waits equally long for the
/// event log.
const LAST_LINES: Duration = Duration::from_millis(500);

/// Maximum time that a shutdown spends recording the last uses of keys. Uses that are not recorded by then are lost.
const LAST_USES: Duration = Duration::from_secs(2);

/// Time for which a shutdown waits for the last spans.
const LAST_SPANS: Duration = Duration::from_secs(2);
const LATE_SPANS: &str = "the last spans were not exported in time";
const LATE_MAIL: &str =
    "an email could not be finished in time; it is sent again after its claim has expired";

/// A running server.
pub struct RunningServer {
    /// Address of the public port.
    pub public: SocketAddr,
    /// Address of the side port.
    pub side: SocketAddr,
    /// Changes applications and keys.
    pub registrar: Arc<Registrar>,
    /// The objects that manage the server's keys.
    pub keys: ServerKeys,
    /// The current gateway, replaced by a reload.
    pub gateway: Arc<ArcSwap<Gateway>>,
    /// Reload requests from the side port. The owner of the settings handles them.
    pub reloads: mpsc::Receiver<ReloadRequest>,
    server: Arc<ServerParts>,
    reloader: Reloader,
    public_port: RunningPublicPort,
    /// Stops the side port and all background tasks when it is dropped.
    stop_side: DropGuard,
    side_thread: Option<std::thread::JoinHandle<()>>,
    ledger_calls: TaskTracker,
    trace_export: FinishingTask,
    mail: FinishingTask,
    supervisor: Supervisor,
    data_dir: DataDir,
}

/// The result of a shutdown. It holds the lock on the data directory until it is dropped, because aborted work may keep the store
/// open as long as the runtime lives. Closing a store removes the write-ahead log by name, even if the log belongs to another
/// process.
#[derive(Debug)]
pub struct ShutdownReport {
    /// Whether all open requests finished within the shutdown timeout.
    pub all_finished: bool,
    _held: DataDir,
}

/// Starts the server. Requests are answered once this returns.
pub async fn start(config: Config, clock: Clock) -> anyhow::Result<RunningServer> {
    start_on(InheritedSockets::default(), config, clock).await
}

/// Starts the server on inherited sockets, if there are any.
pub async fn start_on(
    sockets: InheritedSockets,
    mut config: Config,
    clock: Clock,
) -> anyhow::Result<RunningServer> {
    let registry = registry(&clock);
    config.server.connection.tls = tls(&config, &clock)?;
    reload::limit_connections(&mut config.server, &registry);
    let data_dir = sockets.data_dir(&config.data_dir, &clock).await?;
    // The ports are opened first, so that an address in use is noticed before anything is loaded.
    let ports = sockets.open(&config).await?;
    site::locate(&mut config, ports.public.address()?);
    let context = StartContext::new(config, clock, registry);
    let built = Box::pin(build(&context, &data_dir)).await?;
    let running = Box::pin(RunningServer::begin(context, data_dir, ports, built)).await?;
    running.announce();
    Ok(running)
}

/// Creates the metrics registry, with build information.
fn registry(clock: &Clock) -> MetricsRegistry {
    let registry = MetricsRegistry::default();
    registry.set_build_info(env!("CARGO_PKG_VERSION"), clock.now().wall.seconds());
    reload::begin(&registry);
    clock_steps::begin(clock, &registry);
    registry
}

/// TLS on the public port, if it is configured.
fn tls(config: &Config, clock: &Clock) -> anyhow::Result<Option<TlsTermination>> {
    let certificates = read_certificates(&config.certificates, clock.now().wall)?;
    let tls = certificates.map(TlsTermination::new).transpose();
    tls.context("the public port")
}

impl ServerParts {
    fn new(context: &StartContext, data_dir: &DataDir, built: &BuiltGateway) -> Self {
        let gateway = &built.gateway;
        let keys = &built.keys;
        let age = context.registry.gauge("scoregate_heartbeat_age_seconds");
        let heartbeat = Arc::new(Heartbeat::new(context.clock.clone(), age));
        let files = WatchedFiles::new(context, built.backend.network(), keys.leaks.as_ref());
        Self {
            clock: context.clock.clone(),
            gateway: Arc::new(ArcSwap::from(Arc::clone(gateway))),
            engine: gateway.engine.clone(),
            leases: Arc::clone(&gateway.leases),
            key_directory: Arc::clone(&gateway.key_directory),
            files: Arc::new(files),
            storage: Arc::new(StorageGauges::new(context, data_dir.path())),
            readiness: Arc::new(Readiness::new(heartbeat)),
            reporter: server_parts::reporter(&context.config, built.store.clone(), gateway),
            suspects: server_parts::suspects(context, keys),
            mail_queue: queue_monitor(context, &built.store),
            keys: keys.clone(),
        }
    }
}

/// Starts the background tasks.
fn begin_tasks(background: &Background, server: &Arc<ServerParts>, config: &Config) {
    // Set before the tasks start, because the status page records whether the gateway is ready.
    server.readiness.set(true);
    tasks::repeat(background, server);
    tasks::follow(background, server, config);
    status_report::start(background, server);
}

impl RunningServer {
    /// Starts serving.
    async fn begin(
        context: StartContext,
        mut data_dir: DataDir,
        ports: OpenPorts,
        built: BuiltGateway,
    ) -> anyhow::Result<Self> {
        let background = Background::new(&context.clock);
        let server = Arc::new(ServerParts::new(&context, &data_dir, &built));
        server.files.refresh().await;
        let updates = tasks::follow_backend(&background, &server, &built.backend);
        let side_port = RunningSidePort::start(
            &context,
            &server,
            updates,
            ports.side,
            &mut data_dir,
            &background,
        )?;
        let supervisor = Supervisor::start(server.readiness.heartbeat())?;
        let public_port = RunningPublicPort::start(
            &context,
            &server,
            built.site.as_ref(),
            ports.public,
            &background,
        );
        begin_tasks(&background, &server, &context.config);
        Ok(Self {
            public: context.config.listen,
            side: side_port.address,
            registrar: Arc::clone(&built.keys.administration.registrar),
            keys: built.keys,
            gateway: Arc::clone(&server.gateway),
            reloads: side_port.reloads,
            reloader: Reloader::new(
                context.config,
                context.registry,
                Arc::clone(&server),
                Arc::clone(&public_port.live_config),
                side_port.active,
                built.site,
            ),
            server,
            public_port,
            side_thread: Some(side_port.thread),
            ledger_calls: context.calls,
            trace_export: trace_export::start(built.exporter, &background),
            mail: built.mail.start(&background),
            stop_side: background.stop.drop_guard(),
            supervisor,
            data_dir,
        })
    }

    fn announce(&self) {
        let public = self.public;
        let side = self.side;
        let keys = self.server.key_directory.len();
        tracing::info!(%public, %side, keys, "serving");
        self.supervisor.notify(SupervisorState::Ready);
    }

    /// The current gateway, for tests.
    pub fn gateway(&self) -> Arc<Gateway> {
        self.gateway.load_full()
    }

    /// Applies new settings. If any setting is invalid, nothing changes.
    pub async fn reload(&mut self, config: Config) -> Result<Reloaded, ConfigProblems> {
        self.reloader.reload(config).await
    }

    /// Records a reload whose settings could not be read.
    pub fn reload_refused(&self, problems: &ConfigProblems) {
        self.reloader.refused(problems);
    }

    /// Stops the server: after the configured delay it accepts no new connections, finishes open requests and returns
    /// leased units. The store closes when nothing uses it any more, at the latest when the runtime ends.
    pub async fn stop(mut self) -> ShutdownReport {
        tracing::info!("stopping");
        self.supervisor.notify(SupervisorState::Stopping);
        let parts = &self.server;
        let clock = &parts.clock;
        parts.readiness.set(false);
        let delay = self.reloader.config.server.shutdown_delay;
        if !delay.is_zero() {
            clock.sleep(delay).await;
        }
        self.public_port.stop.cancel();
        let served = self.public_port.serving.await.unwrap_or(false);
        // Done before the calls are closed: units delivered on grace can be charged now if the ledger is reachable
        // again.
        parts.leases.charge_owed().await;
        self.ledger_calls.close();
        // A fetch without waiters may be aborted when the process ends, but a lease in flight must be completed.
        let timeout = self.reloader.config.server.shutdown_timeout;
        let settling = clock.within(timeout, self.ledger_calls.wait());
        let (settled, ()) = tokio::join!(settling, self.mail.finish(clock, timeout, LATE_MAIL));
        // Done after the calls have ended: units from a later lease would never be returned.
        parts.leases.drain(&parts.key_directory).await;
        finish_keys(&self.keys, clock).await;
        parts.reporter.stop().await;
        parts.engine.mirror.flush().await;
        self.trace_export
            .finish(clock, LAST_SPANS, LATE_SPANS)
            .await;
        // The side port runs up to this point, so that metrics and the status show the shutdown.
        drop(self.stop_side);
        if let Some(thread) = self.side_thread.take() {
            joined(thread).await;
        }
        finish_lines(&parts.gateway.load(), self.supervisor).await;
        let all_finished = served && settled.is_ok();
        tracing::info!(all_finished, "stopped");
        ShutdownReport {
            all_finished,
            _held: self.data_dir,
        }
    }
}

/// Records the most recent uses of keys, and completes the local copy.
async fn finish_keys(keys: &ServerKeys, clock: &Clock) {
    let recorded = clock.within(LAST_USES, keys.keeper.store_uses(0)).await;
    if recorded.is_err() {
        tracing::warn!("some last-use times of keys were not recorded in time");
    }
    if let Some(copy) = &keys.copy {
        copy.finish().await;
    }
}

/// Waits until the thread of the side port has ended.
async fn joined(thread: std::thread::JoinHandle<()>) {
    let joined = tokio::task::spawn_blocking(move || thread.join());
    if !matches!(joined.await, Ok(Ok(()))) {
        tracing::error!("side port thread panicked");
    }
}

/// Writes the last lines of the access log, and the last messages to the supervisor.
async fn finish_lines(gateway: &Gateway, supervisor: Supervisor) {
    let log = Arc::clone(&gateway.recorders.request_log);
    let logged = tokio::task::spawn_blocking(move || log.finish(LAST_LINES));
    let notified = tokio::task::spawn_blocking(move || supervisor.finish(LAST_LINES));
    drop(tokio::join!(logged, notified));
}
