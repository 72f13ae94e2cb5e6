//! Builds the gateway from its settings, and builds it anew around the same state when they change.
//!
//! Not for: ports, tasks and signals (`app`).

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use tokio_util::task::TaskTracker;

use crate::accounts::{Leases, Registrar, Roster, Spawn, TermsByTier};
use crate::clock::{Clock, Wall};
use crate::config::{Config, UpstreamConfig};
use crate::documents::{DocumentEngine, MirrorDisk};
use crate::gateway::{AddressGuard, Capacity, Gateway, Notice, RequestLog, Usage};
use crate::instruments::Instruments;
use crate::keys::KeyForm;
use crate::pages::{self, Pages, PagesConfig};
use crate::routes::API_VERSION;
use crate::scoring::{self, Archive, Scoring};
use crate::store::{Embedded as EmbeddedStore, OwedFile, Shelf, Store};
use crate::telemetry::log::{self, Log};
use crate::telemetry::metrics::Registry;
use crate::telemetry::requests::{Lines, is_heard};
use crate::upstream::{Embedded as EmbeddedUpstream, Http, Protected, Upstream};

use super::data_dir::{DOCUMENTS, DataDir};
use super::opened_days;

/// What was built.
pub(super) struct Built {
    pub(super) gateway: Arc<Gateway>,
    pub(super) registrar: Arc<Registrar>,
    /// The built-in backend, if it is that one.
    pub(super) scoring: Option<Arc<Scoring>>,
}

/// Builds the gateway on its store and its backend, and loads who may come in.
pub(super) async fn build(
    config: &Config,
    data_dir: &DataDir,
    clock: &Clock,
    registry: &Registry,
    ledger_calls: &TaskTracker,
) -> anyhow::Result<Built> {
    let instruments = instruments(config, registry);
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
    let (upstream, scoring) = upstream(config, clock).await?;
    let engine = DocumentEngine::new(
        config.cache_bytes,
        config.retention.clone(),
        Protected::new(upstream, config.protection, clock.clone()),
        open_mirror(config, data_dir).await?,
        clock,
        &instruments,
    );
    let mirror = Arc::clone(&engine.mirror);
    let restoring = tokio::task::spawn_blocking(move || mirror.restore());
    let leases = leases(Arc::clone(&store), data_dir, clock, &instruments, ledger_calls).await?;
    registrar.load().await.context("the stored applications and keys cannot be read")?;
    let looked = opened_days::report(&*store, data_dir.path(), clock.now().wall).await;
    looked.context("the ledger of the days cannot be read")?;
    restoring.await.context("restoring documents panicked")?;
    let gateway = Gateway {
        clock: clock.clone(),
        form,
        roster,
        leases: Arc::new(leases),
        engine,
        pages: pages(config),
        guard: Arc::new(AddressGuard::new(config.guard_per_minute)),
        capacity: Arc::new(Capacity::new(config.capacity, Arc::clone(&instruments))),
        instruments,
        request_log: Arc::new(request_log(config, registry)?),
        usage: Arc::new(Usage::new(clock.now())),
        proxies: config.proxies.clone(),
        cors: config.cors.clone(),
        retirement: config.retirement.clone(),
        notice: notice(config),
    };
    Ok(Built { gateway: Arc::new(gateway), registrar: Arc::new(registrar), scoring })
}

/// The way to the ledger. What earlier processes delivered on grace is charged before the balances are read.
async fn leases(
    store: Arc<dyn Store>,
    data_dir: &DataDir,
    clock: &Clock,
    instruments: &Arc<Instruments>,
    ledger_calls: &TaskTracker,
) -> anyhow::Result<Leases> {
    let node = getrandom::u64().context("the operating system gave no randomness")?;
    let calls = ledger_calls.clone();
    let spawn: Spawn = Box::new(move |work| drop(calls.spawn(work)));
    let leases = Leases::new(store, node, spawn, clock.clone(), Arc::clone(instruments));
    let leases = leases.carrying(OwedFile::of(data_dir.path())).await;
    if let Err(error) = leases.charge_carried().await {
        tracing::error!(%error, "units delivered on grace before the last stop cannot be charged yet: nothing is leased before");
    }
    Ok(leases)
}

/// The same gateway by other settings: what it knows and holds is shared with the one before.
pub(super) fn renewed(before: &Gateway, old: &Config, config: &Config, registry: &Registry) -> Gateway {
    before.guard.set_limit(config.guard_per_minute);
    let instruments = instruments(config, registry);
    // Rooms of another size begin empty: who is in the old ones leaves them as they are.
    let capacity = if config.capacity == old.capacity {
        Arc::clone(&before.capacity)
    } else {
        Arc::new(Capacity::new(config.capacity, Arc::clone(&instruments)))
    };
    Gateway {
        clock: before.clock.clone(),
        form: before.form.clone(),
        roster: Arc::clone(&before.roster),
        leases: Arc::clone(&before.leases),
        engine: before.engine.clone(),
        pages: pages(config),
        guard: Arc::clone(&before.guard),
        capacity,
        instruments,
        request_log: Arc::new(before.request_log.resampled(config.sampling)),
        usage: Arc::clone(&before.usage),
        proxies: config.proxies.clone(),
        cors: config.cors.clone(),
        retirement: config.retirement.clone(),
        notice: notice(config),
    }
}

/// Where requests are told: standard output is data, and so are they.
fn request_log(config: &Config, registry: &Registry) -> anyhow::Result<RequestLog> {
    let lost = log::count_lost_lines(registry);
    let lost = lost.of(Log::Access).filter(|_| config.tells_requests && is_heard());
    let Some(lost) = lost else { return Ok(RequestLog::default()) };
    let lines = Lines::start(config.log.json, lost.clone(), std::io::stdout());
    let lines = lines.context("the thread that writes the access log cannot be started")?;
    Ok(RequestLog::new(Arc::new(lines), config.sampling))
}

/// Handles for the tiers that there are: whatever was counted goes on.
fn instruments(config: &Config, registry: &Registry) -> Arc<Instruments> {
    let tiers: Vec<String> = config.tiers.iter().map(|tier| tier.name.clone()).collect();
    Arc::new(Instruments::new(registry, &tiers))
}

fn notice(config: &Config) -> Notice {
    Notice {
        license: config.license.clone(),
        realm: config.service.clone(),
        cadence_seconds: config.retention.cadence.as_secs(),
    }
}

async fn open_store(data_dir: &DataDir) -> anyhow::Result<Arc<dyn Store>> {
    let directory = data_dir.path().to_owned();
    // Opening checks the file and may upgrade it: not for a thread that serves.
    let store = tokio::task::spawn_blocking(move || EmbeddedStore::open(&directory)).await??;
    Ok(Arc::new(store))
}

/// The last good documents. Without a shelf the program runs all the same: it holds nothing that cannot be fetched.
async fn open_mirror(config: &Config, data_dir: &DataDir) -> anyhow::Result<Option<MirrorDisk>> {
    let (path, most_bytes) = (data_dir.path().join(DOCUMENTS), config.shelf_bytes);
    Ok(match tokio::task::spawn_blocking(move || Shelf::open(&path, most_bytes)).await? {
        Ok(shelf) => Some(MirrorDisk { shelf, backend: config.upstream.identity() }),
        Err(error) => {
            tracing::error!(%error, "documents are not kept on disk");
            None
        }
    })
}

/// The backend, and what has to be kept current if it is the built-in one.
async fn upstream(
    config: &Config,
    clock: &Clock,
) -> anyhow::Result<(Arc<dyn Upstream>, Option<Arc<Scoring>>)> {
    let now = clock.now().wall;
    let scoring = match &config.upstream {
        UpstreamConfig::BuiltIn { archive } => open_scoring(archive.clone(), now).await?,
        UpstreamConfig::Simulated { seed } => Scoring::demo(*seed, now),
        UpstreamConfig::Http(http) => {
            let backend = Http::new(http.clone(), clock.clone());
            let backend = backend.with_context(|| format!("upstream.url {}", http.base))?;
            return Ok((Arc::new(backend), None));
        }
    };
    let scoring = Arc::new(scoring);
    Ok((Arc::new(EmbeddedUpstream::new(Arc::clone(&scoring), clock.clone())), Some(scoring)))
}

/// The built-in backend on its archive. Opening reads the runs of two months.
async fn open_scoring(archive: PathBuf, now: Wall) -> anyhow::Result<Scoring> {
    tokio::task::spawn_blocking(move || {
        let archive = Archive::open(&archive, now)?;
        if archive.is_empty()? {
            let path = archive.path().display().to_string();
            tracing::warn!(path, "the archive has no runs yet: `scoregate scoring import` brings them in");
        }
        Ok(Scoring::open(scoring::Source::Archive(archive), now)?)
    })
    .await
    .context("opening the archive panicked")?
}

fn pages(config: &Config) -> Pages {
    Pages::build(&PagesConfig {
        service: config.service.clone(),
        license: config.license.clone(),
        version: API_VERSION.to_owned(),
        tiers: config.tiers.clone(),
        base_url: config.base_url.clone(),
        key_prefix: config.key_prefix.clone(),
        // Of the other backends nobody knows which models they have.
        example_model: matches!(config.upstream, UpstreamConfig::Simulated { .. })
            .then(|| pages::EXAMPLE_MODEL.to_owned()),
        guard_per_minute: config.guard_per_minute,
    })
}
