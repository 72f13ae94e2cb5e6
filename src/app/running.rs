//! Starts the server, and stops it in reverse order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::admin::{Readiness, ReloadRequest, Reloaded, SidePort};
use crate::config::{Config, ConfigProblems};
use crate::gateway::Gateway;
use crate::instruments::McpInstruments;
use crate::mcp::McpService;
use crate::registry::Registrar;
use crate::server::{PublicPort, Server};
use crate::site::Site;
use crate::statistics::NodeReporter;
use scoregate_base::clock::Clock;
use scoregate_observe::telemetry::metrics::MetricsRegistry;

use super::administration::ServerKeys;
use super::certificates::CertificateReloader;
use super::data_dir::DataDir;
use super::mail_delivery::MailWorker;
use super::reload::{ReloadTarget, Reloader};
use super::secret_watch::SecretWatch;
use super::sockets::InheritedSockets;
use super::trace_export::TraceExport;
use super::watched_files::CertificateGauges;
use super::{build, clock_steps, node_report, reload, site, status_report, storage, tasks};
use crate::app::supervisor::{Supervisor, SupervisorState};

/// Time for which a shutdown waits for the last lines of the access log. After that the event log has the same time
/// (`cli`).
const LAST_LINES: Duration = Duration::from_millis(500);

/// Time for which a shutdown records last uses of keys. Further uses are lost.
const LAST_USES: Duration = Duration::from_secs(2);

/// A running server.
pub struct RunningServer {
    /// Address of the public port.
    pub public: SocketAddr,
    /// Address of the side port.
    pub side: SocketAddr,
    /// Changes to applications and keys.
    pub registrar: Arc<Registrar>,
    /// Its keys.
    pub keys: ServerKeys,
    /// The current gateway, replaced by a reload.
    pub gateway: Arc<ArcSwap<Gateway>>,
    /// Reload requests from the side port, to be handled by the owner of the settings.
    pub reloads: mpsc::Receiver<ReloadRequest>,
    reloader: Reloader,
    clock: Clock,
    readiness: Arc<Readiness>,
    stop_public: CancellationToken,
    /// Stops the side port and all background tasks, also when dropped.
    stop_side: DropGuard,
    serving: tokio::task::JoinHandle<bool>,
    side_thread: Option<std::thread::JoinHandle<()>>,
    ledger_calls: TaskTracker,
    reporter: Arc<NodeReporter>,
    trace_export: TraceExport,
    mail: MailWorker,
    supervisor: Supervisor,
    data_dir: DataDir,
}

/// The result of a shutdown. Holds the lock of the data directory until it is dropped: aborted work may hold the
/// store as long as the runtime lives, and a store that closes removes the write-ahead log by name, even that of
/// another process.
#[derive(Debug)]
pub struct ShutdownReport {
    /// Whether all open requests finished within the shutdown timeout.
    pub all_finished: bool,
    _held: DataDir,
}

/// Starts the server. Requests are answered when this returns.
pub async fn start(config: Config, clock: Clock) -> anyhow::Result<RunningServer> {
    start_on(InheritedSockets::default(), config, clock).await
}

/// Starts the server on inherited sockets, if there are any.
pub async fn start_on(
    sockets: InheritedSockets,
    mut config: Config,
    clock: Clock,
) -> anyhow::Result<RunningServer> {
    let (registry, certificates, secrets) = prepare_public_port(&mut config, &clock)?;
    let mut data_dir = sockets.data_dir(&config.data_dir, &clock).await?;
    // The ports are opened first, so an address in use is reported before anything is loaded.
    let (port, tcp) = sockets.open(&config).await?;
    let ledger_calls = TaskTracker::new();
    let public = site::located(&mut config, port.address()?);
    let side = tcp.local_addr()?;
    let built = Box::pin(build::build(
        &config,
        &data_dir,
        &clock,
        &registry,
        &ledger_calls,
    ))
    .await?;
    let certificates = certificates.with_backend(built.backend, &clock);
    let keys = built.keys;
    let gateway = Arc::new(ArcSwap::from(built.gateway));
    let (reload_requests, reloads) = mpsc::channel(1);
    let (updater, update_requests) = tasks::snapshot_updater(built.scoring, &clock);
    let disk = storage::StorageGauges::new(data_dir.path(), &config, &registry);
    let (background, readiness) = tasks::begin(disk, &certificates, &secrets, &registry, &clock);
    let active = Arc::new(ArcSwap::from_pointee(reload::active(
        &config,
        &Reloaded::default(),
    )?));
    let side_port = SidePort {
        scrape: registry.scrape(),
        administration: Arc::clone(&keys.administration),
        gateway: Arc::clone(&gateway),
        readiness: Arc::clone(&readiness),
        changes: TaskTracker::new(),
        active: Arc::clone(&active),
        reloads: reload_requests,
        updates: update_requests,
    };
    let side_thread =
        tasks::side_thread(side_port, tcp, data_dir.socket()?, background.stop.clone())?;
    let supervisor = Supervisor::start(readiness.heartbeat())?;
    let server = public_server(
        port,
        &gateway,
        (built.site.as_ref(), &keys),
        &config,
        &clock,
        &registry,
    );
    let live_config = server.live_config();
    let stop_public = CancellationToken::new();
    let serving = background.spawn(server.run(stop_public.clone()));
    tasks::spawn(&background, &gateway, &keys, updater, &config);
    let reporter = node_report::start(
        &background,
        built.store,
        &gateway.load(),
        &config,
        &keys,
        &registry,
    );
    readiness.set(true);
    status_report::start(&background, &gateway, &readiness);
    tracing::info!(%public, %side, keys = gateway.load().key_directory.len(), "serving");
    supervisor.notify(SupervisorState::Ready);
    Ok(RunningServer {
        public,
        side,
        registrar: Arc::clone(&keys.administration.registrar),
        keys,
        gateway,
        reloads,
        reloader: Reloader {
            config,
            registry,
            certificates,
            secrets,
            live_config,
            active,
            site: built.site,
        },
        mail: MailWorker::start(built.mail, &background),
        clock,
        readiness,
        stop_public,
        serving,
        side_thread: Some(side_thread),
        ledger_calls,
        reporter,
        trace_export: TraceExport::start(built.exporter, &background),
        stop_side: background.stop.drop_guard(),
        supervisor,
        data_dir,
    })
}

/// The server of the public port.
fn public_server(
    port: PublicPort,
    gateway: &Arc<ArcSwap<Gateway>>,
    (site, keys): (Option<&Arc<Site>>, &ServerKeys),
    config: &Config,
    clock: &Clock,
    registry: &MetricsRegistry,
) -> Server {
    let server = Server::new(
        port,
        Arc::clone(gateway),
        config.server.clone(),
        clock.clone(),
        registry,
    );
    let instruments = McpInstruments::new(registry);
    let mcp = McpService::new(&gateway.load().endpoints, &config.service, instruments);
    let mcp = config.mcp.then(|| Arc::new(mcp));
    server
        .with_site(site.cloned())
        .with_leaks(keys.leaks.clone())
        .with_mcp(mcp)
}

/// Begins the metrics and the watch of secrets, loads the certificates, and applies them and the limit of open files to the
/// public port.
fn prepare_public_port(
    config: &mut Config,
    clock: &Clock,
) -> anyhow::Result<(MetricsRegistry, CertificateReloader, SecretWatch)> {
    let registry = registry(clock);
    let gauges = CertificateGauges::new(&registry);
    let certificates = CertificateReloader::new(&config.certificates, clock.now().wall, gauges)?;
    config.server.connection.tls = certificates.tls();
    reload::limit_connections(&mut config.server, &registry);
    let secrets = SecretWatch::new(config, &registry);
    Ok((registry, certificates, secrets))
}

/// The metrics registry, with build information.
fn registry(clock: &Clock) -> MetricsRegistry {
    let registry = MetricsRegistry::default();
    registry.set_build_info(env!("CARGO_PKG_VERSION"), clock.now().wall.seconds());
    reload::begin(&registry);
    clock_steps::begin(clock, &registry);
    registry
}

impl RunningServer {
    /// The current gateway, for tests.
    pub fn gateway(&self) -> Arc<Gateway> {
        self.gateway.load_full()
    }

    /// Applies other settings. If anything is wrong, nothing changes.
    pub async fn reload(&mut self, config: Config) -> Result<Reloaded, ConfigProblems> {
        let gateway = &*self.gateway;
        let keeper = &*self.keys.keeper;
        let target = ReloadTarget {
            gateway,
            keeper,
            public: self.public,
            now: self.clock.now().wall,
        };
        self.reloader.reload(&target, config).await
    }

    /// Records a reload whose settings could not be read.
    pub fn reload_refused(&self, problems: &ConfigProblems) {
        self.reloader.refused(problems);
    }

    /// Stops: accepts nothing new after the configured delay, finishes open requests, returns leased units. The store
    /// closes when nothing holds it any more, with the runtime at the latest.
    pub async fn stop(mut self) -> ShutdownReport {
        tracing::info!("stopping");
        self.supervisor.notify(SupervisorState::Stopping);
        self.readiness.set(false);
        let delay = self.reloader.config.server.shutdown_delay;
        if !delay.is_zero() {
            self.clock.sleep(delay).await;
        }
        self.stop_public.cancel();
        let served = self.serving.await.unwrap_or(false);
        let gateway = self.gateway.load_full();
        // This precedes the end of calls: units delivered on grace can be charged now if the ledger is reachable again.
        gateway.leases.charge_owed().await;
        self.ledger_calls.close();
        // A fetch without waiters may end with the process; a lease in flight may not.
        let timeout = self.reloader.config.server.shutdown_timeout;
        let settling = self.clock.within(timeout, self.ledger_calls.wait());
        let (settled, ()) = tokio::join!(settling, self.mail.finish(&self.clock, timeout));
        // This follows the end of calls: a later lease would grant units that are never returned.
        gateway.leases.drain(&gateway.key_directory).await;
        finish_keys(&self.keys, &self.clock).await;
        self.reporter.stop().await;
        gateway.engine.mirror.flush().await;
        self.trace_export.finish(&self.clock).await;
        // The side port runs until here, so that metrics and the status show the shutdown.
        drop(self.stop_side);
        if let Some(thread) = self.side_thread.take() {
            joined(thread).await;
        }
        finish_lines(&gateway, self.supervisor).await;
        let all_finished = served && settled.is_ok();
        tracing::info!(all_finished, "stopped");
        ShutdownReport {
            all_finished,
            _held: self.data_dir,
        }
    }
}

/// Records the last uses of keys, and completes the local copy.
async fn finish_keys(keys: &ServerKeys, clock: &Clock) {
    let recorded = clock.within(LAST_USES, keys.keeper.store_uses(0)).await;
    if recorded.is_err() {
        tracing::warn!("some last uses of keys were not recorded in time");
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
