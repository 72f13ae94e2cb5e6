//! Builds the program from its settings, in order, and takes it down in reverse.
//!
//! The only place that names concrete engines. Not for: the command line, nor for anything that a request does.

mod data_dir;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admin::{self, Access, Side, SideConfig};
use crate::clock::Clock;
use crate::config::{Config, UpstreamConfig};
use crate::gateway::{
    AddressGuard, Capacity, Gateway, Instruments, Keepsakes, Larder, Leases, Notice, Registrar, Roster,
    Spawn, TermsByTier,
};
use crate::keys::KeyForm;
use crate::pages::{Pages, PagesConfig};
use crate::routes::API_VERSION;
use crate::scoring::Scoring;
use crate::server::{self, Server};
use crate::store::{Embedded as EmbeddedStore, Shelf, Store};
use crate::telemetry::metrics::Registry;
use crate::upstream::{Embedded as EmbeddedUpstream, Http, Protected, Upstream};

pub use data_dir::{DOCUMENTS, DataDir, InUse, SOCKET};

/// How often what is over is swept up.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// How often it is written down which keys were used, and tried to charge what was delivered on grace.
const ACCOUNT_EVERY: Duration = Duration::from_secs(30);

/// A program that runs.
pub struct Running {
    /// Where the public port listens.
    pub public: SocketAddr,
    /// Where the side port listens.
    pub side: SocketAddr,
    /// Changes to applications and keys.
    pub registrar: Arc<Registrar>,
    /// The gateway itself, for tests that look inside.
    pub gateway: Arc<Gateway>,
    clock: Clock,
    ready: Arc<AtomicBool>,
    stop_public: CancellationToken,
    stop_side: CancellationToken,
    serving: tokio::task::JoinHandle<bool>,
    side_thread: Option<std::thread::JoinHandle<()>>,
    ledger_calls: TaskTracker,
    grace: Duration,
    data_dir: DataDir,
}

/// How a stop went. Keeps the data directory from others until it is dropped: what was cut off may hold the store for
/// as long as the runtime lives, and a store that closes removes the log under its name, whoever's it is by then.
#[derive(Debug)]
pub struct Stopped {
    /// Whether every open request was finished within the grace.
    pub all_finished: bool,
    _held: DataDir,
}

/// Starts everything. When this returns, requests are answered.
pub async fn start(config: Config, clock: Clock) -> anyhow::Result<Running> {
    let mut data_dir = DataDir::open(&config.data_dir)?;
    // Ports first: one that is taken is noticed before anything is loaded.
    let listener = server::bind(config.listen).await;
    let listener = listener.with_context(|| format!("the public port {} cannot be opened", config.listen))?;
    let side_listener = std::net::TcpListener::bind(config.admin_listen);
    let tcp =
        side_listener.with_context(|| format!("the side port {} cannot be opened", config.admin_listen))?;
    let (public, side) = (listener.local_addr()?, tcp.local_addr()?);

    let registry = Registry::default();
    let ledger_calls = TaskTracker::new();
    let (gateway, registrar) = build(&config, &data_dir, &clock, &registry, &ledger_calls).await?;

    let (stop_public, stop_side) = (CancellationToken::new(), CancellationToken::new());
    let ready = Arc::new(AtomicBool::new(false));
    let access = Access::with_token(config.admin_token.clone())?;
    let side_config = SideConfig { tcp, access, socket: Some(data_dir.socket()?) };
    let shown = Side {
        scrape: registry.scrape(),
        registrar: Arc::clone(&registrar),
        larder: Arc::clone(&gateway.larder),
        ready: Arc::clone(&ready),
        changes: TaskTracker::new(),
    };
    let side_thread = side_thread(shown, side_config, clock.clone(), stop_side.clone())?;

    let (grace, background) = (config.server.grace, TaskTracker::new());
    let server = Server::new(listener, Arc::clone(&gateway), config.server, clock.clone(), &registry);
    let serving = background.spawn(server.run(stop_public.clone()));
    background.spawn(sweep(Arc::clone(&gateway), clock.clone(), stop_side.clone()));
    background.spawn(Arc::clone(&gateway.larder).keep_on_disk(stop_side.clone()));
    if config.keeping.probing {
        background.spawn(Arc::clone(&gateway.larder).keep_current(stop_side.clone()));
    }
    background.spawn(keep_accounts(
        Arc::clone(&registrar),
        Arc::clone(&gateway.leases),
        clock.clone(),
        stop_side.clone(),
    ));
    ready.store(true, Ordering::Release);
    tracing::info!(%public, %side, keys = gateway.roster.len(), "serving");
    Ok(Running {
        public,
        side,
        registrar,
        gateway,
        clock,
        ready,
        stop_public,
        stop_side,
        serving,
        side_thread: Some(side_thread),
        ledger_calls,
        grace,
        data_dir,
    })
}

/// Builds the gateway on its store and its backend, and loads who may come in.
async fn build(
    config: &Config,
    data_dir: &DataDir,
    clock: &Clock,
    registry: &Registry,
    ledger_calls: &TaskTracker,
) -> anyhow::Result<(Arc<Gateway>, Arc<Registrar>)> {
    let tier_names: Vec<String> = config.tiers.iter().map(|tier| tier.name.clone()).collect();
    let instruments = Arc::new(Instruments::new(registry, &tier_names));
    let store = open_store(data_dir).await?;
    let roster = Arc::new(Roster::default());
    let form = KeyForm::new(&config.key_prefix, config.accept_imported);
    let registrar = Registrar::new(
        Arc::clone(&store),
        Some(Arc::clone(&roster)),
        TermsByTier::new(&config.tiers, config.guard_per_minute),
        form.clone(),
        clock.clone(),
        Arc::clone(&instruments),
    );
    let larder = Arc::new(Larder::new(
        config.cache_bytes,
        open_shelf(config, data_dir).await?,
        Protected::new(upstream(config, clock)?, config.protection, clock.clone()),
        config.keeping.clone(),
        TaskTracker::new(),
        clock.clone(),
        Arc::clone(&instruments),
    ));
    let restored = Arc::clone(&larder);
    let restoring = tokio::task::spawn_blocking(move || restored.restore());
    registrar.load().await.context("the stored applications and keys cannot be read")?;
    restoring.await.context("restoring documents panicked")?;
    let node = getrandom::u64().context("the operating system gave no randomness")?;
    let calls = ledger_calls.clone();
    let spawn: Spawn = Box::new(move |work| drop(calls.spawn(work)));
    let leases = Leases::new(store, node, spawn, clock.clone(), Arc::clone(&instruments));
    let gateway = Gateway {
        clock: clock.clone(),
        form,
        roster,
        leases: Arc::new(leases),
        larder,
        pages: pages(config),
        guard: AddressGuard::new(config.guard_per_minute),
        capacity: Capacity::new(config.capacity, Arc::clone(&instruments)),
        instruments,
        cors: config.cors.clone(),
        retirement: config.retirement.clone(),
        notice: Notice {
            license: config.license.clone(),
            realm: config.service.clone(),
            cadence_seconds: config.keeping.cadence.as_secs(),
        },
    };
    Ok((Arc::new(gateway), Arc::new(registrar)))
}

impl Running {
    /// Stops: accepts no more, finishes what runs, gives leased units back. The store closes when all that held
    /// it is gone, with the runtime at the latest.
    pub async fn stop(mut self) -> Stopped {
        tracing::info!("stopping");
        self.ready.store(false, Ordering::Release);
        self.stop_public.cancel();
        let served = self.serving.await.unwrap_or(false);
        self.gateway.leases.collect();
        self.ledger_calls.close();
        // A fetch that nobody waits for any more may end with the process; a lease under way may not.
        let settled = self.clock.within(self.grace, self.ledger_calls.wait()).await.is_ok();
        self.gateway.leases.drain(&self.gateway.roster).await;
        self.registrar.remember_uses().await;
        self.gateway.larder.put_by().await;
        self.stop_side.cancel();
        if let Some(thread) = self.side_thread.take() {
            let joined = tokio::task::spawn_blocking(move || thread.join());
            if !matches!(joined.await, Ok(Ok(()))) {
                tracing::error!("the side port's thread panicked");
            }
        }
        let all_finished = served && settled;
        tracing::info!(all_finished, "stopped");
        Stopped { all_finished, _held: self.data_dir }
    }
}

async fn open_store(data_dir: &DataDir) -> anyhow::Result<Arc<dyn Store>> {
    let directory = data_dir.path().to_owned();
    // Opening checks the file and may upgrade it: not for a thread that serves.
    let store = tokio::task::spawn_blocking(move || EmbeddedStore::open(&directory)).await??;
    Ok(Arc::new(store))
}

/// The last good documents. Without a shelf the program runs all the same: it holds nothing that cannot be fetched.
async fn open_shelf(config: &Config, data_dir: &DataDir) -> anyhow::Result<Keepsakes> {
    let (path, most_bytes) = (data_dir.path().join(DOCUMENTS), config.shelf_bytes);
    Ok(match tokio::task::spawn_blocking(move || Shelf::open(&path, most_bytes)).await? {
        Ok(shelf) => Keepsakes::new(shelf, config.upstream.identity()),
        Err(error) => {
            tracing::error!(%error, "documents are not kept on disk");
            Keepsakes::default()
        }
    })
}

fn upstream(config: &Config, clock: &Clock) -> anyhow::Result<Arc<dyn Upstream>> {
    Ok(match &config.upstream {
        UpstreamConfig::BuiltIn { seed } => {
            let scoring = Scoring::demo(*seed, clock.now().wall);
            Arc::new(EmbeddedUpstream::new(Arc::new(scoring), clock.clone()))
        }
        UpstreamConfig::Http(http) => {
            let backend = Http::new(http.clone(), clock.clone());
            Arc::new(backend.with_context(|| format!("upstream.url {}", http.base))?)
        }
    })
}

fn pages(config: &Config) -> Pages {
    Pages::build(&PagesConfig {
        service: config.service.clone(),
        license: config.license.clone(),
        version: API_VERSION.to_owned(),
        tiers: config.tiers.clone(),
        base_url: config.base_url.clone(),
        key_prefix: config.key_prefix.clone(),
        guard_per_minute: config.guard_per_minute,
    })
}

/// The side port answers when the public one is saturated: a thread and a runtime of its own.
fn side_thread(
    side: Side,
    config: SideConfig,
    clock: Clock,
    stop: CancellationToken,
) -> anyhow::Result<std::thread::JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let serve = move || {
        if let Err(error) = runtime.block_on(admin::run(side, config, clock, stop)) {
            tracing::error!(%error, "the side port failed");
        }
    };
    Ok(std::thread::Builder::new().name("side-port".into()).spawn(serve)?)
}

async fn keep_accounts(
    registrar: Arc<Registrar>,
    leases: Arc<Leases>,
    clock: Clock,
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = clock.sleep(ACCOUNT_EVERY) => {}
        }
        leases.collect();
        registrar.remember_uses().await;
        registrar.look_at_the_store();
    }
}

async fn sweep(gateway: Arc<Gateway>, clock: Clock, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = clock.sleep(SWEEP_EVERY) => {}
        }
        let swept = Arc::clone(&gateway);
        // With many documents this takes milliseconds, which no thread that serves can spare.
        if tokio::task::spawn_blocking(move || swept.sweep()).await.is_err() {
            tracing::error!("a sweep panicked");
        }
    }
}
