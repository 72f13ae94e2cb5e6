//! Builds the gateway from its settings, and rebuilds it around the same state when settings change. Ports, tasks and
//! signals are in `app`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use http::HeaderValue;
use tokio_util::task::TaskTracker;

use crate::config::{Config, UpstreamConfig, read_backend_tls};
use crate::documents::{DocumentEngine, MirrorWorker, SharedFetches};
use crate::gateway::{
    AccessLog, AddressGuard, ConcurrencyLimit, Gateway, RemedyLinks, RequestRecorders,
    ServiceNotice, TargetMemo,
};
use crate::instruments::{LedgerInstruments, RequestInstruments, ServerInstruments};
use crate::pages::{self, ACCOUNT_SIGN_IN, Pages, PagesConfig};
use crate::quota::{Leases, LedgerCalls, SpawnLedgerWork};
use crate::site::Site;
use crate::statistics::UsageTracker;
use crate::upstream::{
    BuiltInUpstream as EmbeddedUpstream, HttpConfig, HttpUpstream, NameWatcher, ProtectedUpstream,
    ProtectionConfig, Upstream,
};
use scoregate_base::clock::{Clock, Wall};
use scoregate_base::keys::KeyForm;
use scoregate_base::routes::{API_VERSION, SourceDescription, root_of};
use scoregate_observe::telemetry::access_log_writer::{AccessLogWriter, is_enabled};
use scoregate_observe::telemetry::log::{self, LogStream};
use scoregate_observe::telemetry::metrics::MetricsRegistry;
use scoregate_observe::traces::{SpanExporter, Tracer};
use scoregate_scoring::{Archive, RunSource, Scoring};
use scoregate_store::{Mirror, Store};

use super::administration::ServerKeys;
use super::backend_watch::BackendInUse;
use super::data_dir::DataDir;
use super::mail_delivery::MailTasks;
use super::opened_days;
use super::site;
use super::status_report;
use super::store_engine::{ServerStore, open_for_server};
use super::trace_export;

/// Version of the encoding of shared documents. Gateways with different versions share none.
const DOCUMENT_FORMAT: &str = "format 1";
/// Time to build and publish a document that the backend sent in the last moment.
const CLAIM_MARGIN: Duration = Duration::from_secs(5);

pub(super) struct BuiltGateway {
    pub(super) gateway: Arc<Gateway>,
    pub(super) keys: ServerKeys,
    /// The pages of accounts, if people can sign up.
    pub(super) site: Option<Arc<Site>>,
    pub(super) store: Arc<dyn Store>,
    /// The built-in backend, if used.
    pub(super) scoring: Option<Arc<Scoring>>,
    /// The backend, if it is reached over the network.
    pub(super) backend: Option<BackendInUse>,
    /// The exporter of spans, if they are exported.
    pub(super) exporter: Option<SpanExporter>,
    /// The worker that sends mail, if it is configured.
    pub(super) mail: MailTasks,
}

/// The backend, and what keeps it current.
struct BuiltUpstream {
    upstream: ProtectedUpstream,
    scoring: Option<Arc<Scoring>>,
    backend: Option<BackendInUse>,
}

/// Builds the gateway on its store and backend, and loads the keys.
pub(super) async fn build(
    config: &Config,
    data_dir: &DataDir,
    clock: &Clock,
    registry: &MetricsRegistry,
    ledger_calls: &TaskTracker,
) -> anyhow::Result<BuiltGateway> {
    let instruments = instruments(config, registry);
    let opened = open_for_server(config, data_dir.path(), clock).await?;
    let store = Arc::clone(&opened.store);
    let mail = MailTasks::open(config, &store, clock, &instruments.mail)?;
    let keys = ServerKeys::new(config, &opened, clock, &instruments.store, ledger_calls)?;
    let shared = shared_fetches(&store, config)?;
    let BuiltUpstream {
        upstream,
        scoring,
        backend,
    } = upstream(config, clock).await?;
    let engine = DocumentEngine::new(
        config.cache_bytes,
        config.retention.clone(),
        upstream,
        Some(mirror(config, data_dir)),
        shared,
        clock,
        &instruments.documents,
    );
    // Begun here, so that it runs while the keys are loaded. It ends before requests are served.
    let restoring = restoring(&engine);
    let key_directory = Arc::clone(&opened.key_directory);
    let leases = leases(&opened, clock, &instruments.ledger, ledger_calls).await?;
    let is_single = opened.fleet.is_none();
    opened.load_keys(&keys.keeper).await?;
    if let Some(copy) = &keys.copy {
        copy.write_first().await;
    }
    // After a start from the local copy the store is unreachable, so no share can be claimed.
    if !key_directory.freshness.is_copied() {
        leases.keep_grace_share().await;
    }
    if is_single {
        let report = opened_days::report(&*store, data_dir.path(), clock.now().wall).await;
        report.context("the ledger of the days cannot be read")?;
    }
    let (tracer, exporter) = trace_export::open(config, registry, clock)?.unzip();
    restoring.await.context("restoring documents panicked")?;
    let status =
        status_report::publisher(config, &store, &engine.documents, clock, &instruments.store);
    let gateway = Arc::new(Gateway {
        clock: clock.clone(),
        form: KeyForm::new(&config.key_prefix, config.accept_imported),
        leases: Arc::new(leases),
        key_directory,
        engine,
        endpoints: config.endpoints.clone(),
        pages: pages(config),
        status,
        memo: TargetMemo::default(),
        guard: Arc::new(AddressGuard::new(config.guard_per_minute)),
        capacity: Arc::new(ConcurrencyLimit::new(
            config.concurrency,
            instruments.capacity,
        )),
        recorders: recorders(config, clock, registry, instruments.requests, tracer)?,
        proxies: config.proxies.clone(),
        cors: config.cors.clone(),
        deprecation: config.deprecation.clone(),
        notice: notice(config),
    });
    let site = site::build(
        config,
        &store,
        &keys.administration,
        clock,
        registry,
        ledger_calls,
    );
    Ok(BuiltGateway {
        gateway,
        keys,
        site,
        store,
        scoring,
        backend,
        exporter,
        mail,
    })
}

/// Restores documents of the disk mirror in the background.
fn restoring(engine: &DocumentEngine) -> tokio::task::JoinHandle<()> {
    let mirror = Arc::clone(&engine.mirror);
    tokio::task::spawn_blocking(move || mirror.restore())
}

/// Connects to the ledger. Units that earlier processes delivered on grace are charged before balances are read.
async fn leases(
    opened: &ServerStore,
    clock: &Clock,
    instruments: &Arc<LedgerInstruments>,
    ledger_calls: &TaskTracker,
) -> anyhow::Result<Leases> {
    let node = getrandom::u64().context("the operating system returned no random bytes")?;
    let calls = ledger_calls.clone();
    let spawn: SpawnLedgerWork = Box::new(move |work| drop(calls.spawn(work)));
    let ledger = Arc::clone(&opened.store);
    let calls = LedgerCalls::new(ledger, node, spawn, clock.clone(), Arc::clone(instruments));
    let calls = calls.with_key_freshness(&opened.key_directory.freshness);
    let calls = match &opened.fleet {
        Some(fleet) => calls.shared(fleet.gateways, fleet.timeout),
        None => calls,
    };
    let calls = calls.carrying(Arc::clone(&opened.local)).await;
    if let Err(error) = calls.charge_carried().await {
        tracing::error!(%error, "units delivered on grace before the last shutdown cannot be charged yet; no units are leased until they are");
    }
    Ok(Leases::of(calls))
}

/// Builds the gateway with other settings; it shares its state with the one before.
pub(super) fn renewed(
    before: &Gateway,
    old: &Config,
    config: &Config,
    registry: &MetricsRegistry,
) -> Gateway {
    before.guard.set_limit(config.guard_per_minute);
    if let Some(status) = &before.status {
        status.set_site(status_report::site(config));
    }
    let instruments = instruments(config, registry);
    let recorders = &before.recorders;
    // Pools of another size start empty: slots in the old ones are released as usual.
    let capacity = if config.concurrency == old.concurrency {
        Arc::clone(&before.capacity)
    } else {
        Arc::new(ConcurrencyLimit::new(
            config.concurrency,
            instruments.capacity,
        ))
    };
    Gateway {
        clock: before.clock.clone(),
        form: before.form.clone(),
        key_directory: Arc::clone(&before.key_directory),
        leases: Arc::clone(&before.leases),
        engine: before.engine.clone(),
        endpoints: before.endpoints.clone(),
        pages: pages(config),
        status: before.status.clone(),
        // An empty memo: targets may resolve differently with these settings.
        memo: TargetMemo::default(),
        guard: Arc::clone(&before.guard),
        capacity,
        recorders: RequestRecorders {
            clock: before.clock.clone(),
            instruments: instruments.requests,
            request_log: Arc::new(recorders.request_log.resampled(config.sampling)),
            usage: Arc::clone(&recorders.usage),
            requests: Arc::clone(&recorders.requests),
            tracer: recorders.tracer.clone(),
        },
        proxies: config.proxies.clone(),
        cors: config.cors.clone(),
        deprecation: config.deprecation.clone(),
        notice: notice(config),
    }
}

fn recorders(
    config: &Config,
    clock: &Clock,
    registry: &MetricsRegistry,
    instruments: Arc<RequestInstruments>,
    tracer: Option<Arc<Tracer>>,
) -> anyhow::Result<RequestRecorders> {
    Ok(RequestRecorders {
        clock: clock.clone(),
        instruments,
        request_log: Arc::new(request_log(config, registry)?),
        usage: Arc::new(UsageTracker::new(clock.now())),
        requests: Arc::default(),
        tracer,
    })
}

/// The access log on standard output.
fn request_log(config: &Config, registry: &MetricsRegistry) -> anyhow::Result<AccessLog> {
    let lost = log::count_lost_lines(registry);
    let lost = lost
        .of(LogStream::Access)
        .filter(|_| config.access_log && is_enabled());
    let Some(lost) = lost else {
        return Ok(AccessLog::default());
    };
    let lines = AccessLogWriter::start(config.log.json, lost.clone(), std::io::stdout());
    let lines = lines.context("the thread that writes the access log cannot be started")?;
    Ok(AccessLog::new(Arc::new(lines), config.sampling))
}

/// Handles for the configured tiers; existing counts continue.
fn instruments(config: &Config, registry: &MetricsRegistry) -> ServerInstruments {
    let tiers: Vec<String> = config.tiers.iter().map(|tier| tier.name.clone()).collect();
    let addresses = config.upstream.addresses();
    ServerInstruments::new(registry, &tiers, &config.endpoints, &addresses)
}

fn notice(config: &Config) -> ServiceNotice {
    ServiceNotice {
        license: config.license.clone(),
        challenge: challenge(&config.service),
        links: remedy_links(config),
        tiers: config.tiers.clone(),
        cadence_seconds: config.retention.cadence.as_secs(),
    }
}

fn remedy_links(config: &Config) -> RemedyLinks {
    let root = config.base_url.as_deref().map_or("", root_of);
    let sign_up = config
        .site
        .as_ref()
        .filter(|_| !root.is_empty())
        .map(|_| format!("{root}{ACCOUNT_SIGN_IN}"));
    RemedyLinks::new(
        root,
        sign_up,
        config.links.upgrade_url.clone(),
        config.deprecation.link(),
    )
}

/// A Bearer challenge whose realm is the name of the service. Without a realm if the name contains control characters.
fn challenge(service: &str) -> HeaderValue {
    let quoted = service.replace('\\', "\\\\").replace('"', "\\\"");
    let value = HeaderValue::try_from(format!("Bearer realm=\"{quoted}\""));
    value.unwrap_or(HeaderValue::from_static("Bearer"))
}

/// The disk mirror in the data directory.
fn mirror(config: &Config, data_dir: &DataDir) -> MirrorWorker {
    MirrorWorker {
        mirror: Mirror::new(data_dir.path(), config.cache_disk_bytes),
        backend: config.backend_identity(),
    }
}

/// The documents that gateways share, if they have a database and a backend in common.
fn shared_fetches(
    store: &Arc<dyn Store>,
    config: &Config,
) -> anyhow::Result<Option<SharedFetches>> {
    let UpstreamConfig::Http(http) = &config.upstream else {
        return Ok(None);
    };
    let node = getrandom::u64().context("the operating system returned no random bytes")?;
    let backend = config.backend_identity();
    let scope = format!("{backend} {DOCUMENT_FORMAT}");
    let claim_duration = config.protection.queue_timeout + http.total + CLAIM_MARGIN;
    let shared = Arc::clone(store).shared_documents(scope, node);
    Ok(shared.map(|shared| SharedFetches {
        shared,
        backend,
        claim_duration,
    }))
}

/// Opens the backend.
async fn upstream(config: &Config, clock: &Clock) -> anyhow::Result<BuiltUpstream> {
    let now = clock.now().wall;
    let scoring = match &config.upstream {
        UpstreamConfig::BuiltIn { archive } => open_scoring(archive.clone(), now).await?,
        UpstreamConfig::Simulated { seed } => Scoring::demo(*seed, now),
        UpstreamConfig::Http(http) => return http_upstream(http, config.protection, clock),
    };
    let scoring = Arc::new(scoring);
    let upstream: Arc<dyn Upstream> =
        Arc::new(EmbeddedUpstream::new(Arc::clone(&scoring), clock.clone()));
    let upstream = ProtectedUpstream::new(vec![upstream], config.protection, clock.clone());
    Ok(BuiltUpstream {
        upstream,
        scoring: Some(scoring),
        backend: None,
    })
}

/// The addresses of a backend over the network.
fn http_upstream(
    config: &HttpConfig,
    protection: ProtectionConfig,
    clock: &Clock,
) -> anyhow::Result<BuiltUpstream> {
    let tls = read_backend_tls(&config.tls, clock)?;
    let mut addresses = Vec::new();
    let mut upstreams: Vec<Arc<dyn Upstream>> = Vec::new();
    for one in config.each() {
        let base = one.base.clone();
        let address = HttpUpstream::new(one, &tls, clock.clone());
        let address = Arc::new(address.with_context(|| format!("backend address {base}"))?);
        upstreams.push(Arc::<HttpUpstream>::clone(&address));
        addresses.push(address);
    }
    let upstream = ProtectedUpstream::new(upstreams, protection, clock.clone());
    let watcher = NameWatcher::new(addresses.clone(), clock.clone());
    let backend = BackendInUse {
        addresses,
        watcher,
        settings: config.tls.clone(),
        tls,
    };
    Ok(BuiltUpstream {
        upstream,
        scoring: None,
        backend: Some(backend),
    })
}

/// Opens the built-in backend on its archive, which is created if missing. Reads the runs of two months.
pub async fn open_scoring(archive: PathBuf, now: Wall) -> anyhow::Result<Scoring> {
    tokio::task::spawn_blocking(move || {
        let archive = Archive::open(&archive)?;
        if archive.is_empty()? {
            let path = archive.path().display().to_string();
            tracing::warn!(
                path,
                "the archive has no runs; add some with `scoregate scoring import`"
            );
        }
        Ok(Scoring::open(RunSource::Archive(archive), now)?)
    })
    .await
    .context("opening the archive panicked")?
}

fn pages(config: &Config) -> Pages {
    Pages::build(&PagesConfig {
        endpoints: config.endpoints.clone(),
        service: config.service.clone(),
        license: config.license.clone(),
        version: API_VERSION.to_owned(),
        tiers: config.tiers.clone(),
        field_sets: config.retention.field_sets.clone(),
        base_url: config.base_url.clone(),
        local_url: config.local_url(),
        key_prefix: config.key_prefix.clone(),
        // The models of other backends are unknown.
        example_model: matches!(config.upstream, UpstreamConfig::Simulated { .. })
            .then(|| pages::EXAMPLE_MODEL.to_owned()),
        guard_per_minute: config.guard_per_minute,
        source: match &config.upstream {
            UpstreamConfig::Http(http) => http.mapping.description(),
            UpstreamConfig::BuiltIn { .. } | UpstreamConfig::Simulated { .. } => {
                SourceDescription::default()
            }
        },
        status_page: config.status_page,
        sign_up: config.site.is_some(),
        mcp: config.mcp,
        links: config.links.clone(),
        terms: config.terms.clone(),
    })
}
