//! Builds the gateway from its settings, and rebuilds it around the same state when settings change. Other modules of
//! `app` handle ports, tasks and signals.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use http::HeaderValue;

use crate::{
    accounts::KeyDirectory,
    config::{Config, UpstreamConfig},
    documents::{DocumentEngine, MirrorWorker, SharedFetches},
    gateway::{
        AccessLog, AddressGuard, ConcurrencyLimit, Gateway, RemedyLinks, RequestRecorders,
        ServiceNotice, TargetMemo,
    },
    instruments::CapacityInstruments,
    pages::{self, ACCOUNT_SIGN_IN, Pages, PagesConfig},
    quota::{Leases, LedgerCalls, SpawnLedgerWork},
    site::Site,
    statistics::UsageTracker,
    upstream::{BuiltInUpstream as EmbeddedUpstream, HttpUpstream, ProtectedUpstream, Upstream},
};
use scoregate_base::{
    clock::Wall,
    keys::KeyForm,
    routes::{API_VERSION, SourceDescription, root_of},
};
use scoregate_observe::{
    telemetry::{
        access_log_writer::{AccessLogWriter, is_enabled},
        log::{self, LogStream},
        metrics::MetricsRegistry,
    },
    traces::{SpanExporter, Tracer},
};
use scoregate_scoring::{Archive, RunSource, Scoring};
use scoregate_store::{Mirror, Store};

use super::{
    administration::ServerKeys,
    data_dir::DataDir,
    mail_delivery::MailTasks,
    network_backend::NetworkBackend,
    opened_days, site,
    start_context::{StartContext, instruments},
    status_report,
    store_engine::{ServerStore, open_for_server},
    trace_export,
};

/// Version of the encoding of shared documents. Gateways with different versions do not share documents.
const DOCUMENT_FORMAT: &str = "format 1";
/// Time to build and publish a document that the backend sent just before its timeout.
const CLAIM_MARGIN: Duration = Duration::from_secs(5);

/// The parts that are built at startup.
pub struct BuiltGateway {
    pub gateway: Arc<Gateway>,
    pub keys: ServerKeys,
    /// The account pages, if people can sign up.
    pub site: Option<Arc<Site>>,
    pub store: Store,
    pub backend: BackendInUse,
    /// The span exporter, if trace export is configured.
    pub exporter: Option<SpanExporter>,
    /// The worker that sends mail, if mail is configured.
    pub mail: MailTasks,
}

/// The backend, for the tasks that keep it current.
pub enum BackendInUse {
    BuiltIn(Arc<Scoring>),
    Network(Arc<NetworkBackend>),
}

impl BackendInUse {
    /// The backend, if it is reached over the network.
    pub fn network(&self) -> Option<Arc<NetworkBackend>> {
        match self {
            Self::BuiltIn(_) => None,
            Self::Network(network) => Some(Arc::clone(network)),
        }
    }
}

/// Builds the gateway on its store and backend, and loads the keys.
pub async fn build(context: &StartContext, data_dir: &DataDir) -> anyhow::Result<BuiltGateway> {
    let opened = open_for_server(&context.config, data_dir.path(), &context.clock).await?;
    let store = opened.store.clone();
    let mail = MailTasks::open(context, &store)?;
    let keys = ServerKeys::new(context, &opened)?;
    let backend = backend(context).await?;
    let engine = document_engine(context, data_dir, &store, &backend)?;
    // The disk mirror is read while the keys are loaded. Both finish before requests are served.
    let mirror = Arc::clone(&engine.mirror);
    let restoring = tokio::task::spawn_blocking(move || mirror.restore());
    let key_directory = Arc::clone(&opened.key_directory);
    let leases = leases(context, &opened).await?;
    load_keys(context, opened, &keys, &leases, data_dir).await?;
    let (tracer, exporter) = trace_export::open(context)?.unzip();
    restoring.await.context("restoring documents panicked")?;
    let state = GatewayState {
        engine,
        leases: Arc::new(leases),
        key_directory,
    };
    Ok(BuiltGateway {
        gateway: Arc::new(gateway(context, &store, state, tracer)?),
        site: site::build(context, &store, &keys.administration),
        keys,
        store,
        backend,
        exporter,
        mail,
    })
}

/// The state that requests share, even across a reload.
struct GatewayState {
    engine: DocumentEngine,
    leases: Arc<Leases>,
    key_directory: Arc<KeyDirectory>,
}

fn gateway(
    context: &StartContext,
    store: &Store,
    state: GatewayState,
    tracer: Option<Arc<Tracer>>,
) -> anyhow::Result<Gateway> {
    let config = &context.config;
    Ok(Gateway {
        clock: context.clock.clone(),
        form: KeyForm::new(&config.key_prefix, config.accept_imported),
        leases: state.leases,
        key_directory: state.key_directory,
        endpoints: config.endpoints.clone(),
        pages: pages(config),
        status: status_report::publisher(context, store, &state.engine.documents),
        engine: state.engine,
        memo: TargetMemo::default(),
        guard: Arc::new(AddressGuard::new(config.guard_per_minute)),
        capacity: capacity(config, &context.instruments.capacity),
        recorders: recorders(context, tracer)?,
        proxies: config.proxies.clone(),
        cors: config.cors.clone(),
        deprecation: config.deprecation.clone(),
        notice: notice(config),
    })
}

/// Loads the keys, and claims the grace share that requests may need.
async fn load_keys(
    context: &StartContext,
    opened: ServerStore,
    keys: &ServerKeys,
    leases: &Leases,
    data_dir: &DataDir,
) -> anyhow::Result<()> {
    let store = opened.store.clone();
    let freshness = Arc::clone(&opened.key_directory.freshness);
    let is_single = opened.fleet.is_none();
    opened.load_keys(&keys.keeper).await?;
    if let Some(copy) = &keys.copy {
        copy.write_first().await;
    }
    // After a start from the local copy, the store is unreachable, so no share can be claimed.
    if !freshness.is_copied() {
        leases.keep_grace_share().await;
    }
    if is_single {
        let now = context.clock.now().wall;
        let report = opened_days::report(&store, data_dir.path(), now).await;
        report.context("the days in the ledger cannot be read")?;
    }
    Ok(())
}

/// Connects to the ledger. Units that previous processes delivered on grace are charged before balances are read.
async fn leases(context: &StartContext, opened: &ServerStore) -> anyhow::Result<Leases> {
    let node = getrandom::u64().context("the operating system returned no random bytes")?;
    let calls = context.calls.clone();
    let spawn: SpawnLedgerWork = Box::new(move |work| drop(calls.spawn(work)));
    let calls = LedgerCalls::new(
        Arc::new(opened.store.clone()),
        node,
        spawn,
        context.clock.clone(),
        Arc::clone(&context.instruments.ledger),
    );
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

/// Builds the gateway with changed settings. It shares the state of the previous gateway.
pub fn renewed(
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
    // Pools of another size start empty. Slots in the old pools are released as usual.
    let capacity = if config.concurrency == old.concurrency {
        Arc::clone(&before.capacity)
    } else {
        capacity(config, &instruments.capacity)
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
        // The memo starts empty, because targets may resolve differently with the new settings.
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

fn capacity(config: &Config, instruments: &Arc<CapacityInstruments>) -> Arc<ConcurrencyLimit> {
    Arc::new(ConcurrencyLimit::new(
        config.concurrency,
        Arc::clone(instruments),
    ))
}

fn recorders(
    context: &StartContext,
    tracer: Option<Arc<Tracer>>,
) -> anyhow::Result<RequestRecorders> {
    Ok(RequestRecorders {
        clock: context.clock.clone(),
        instruments: Arc::clone(&context.instruments.requests),
        request_log: Arc::new(request_log(&context.config, &context.registry)?),
        usage: Arc::new(UsageTracker::new(context.clock.now())),
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
        &config.links,
        &config.tiers,
        config.deprecation.link(),
    )
}

/// A Bearer challenge whose realm is the name of the service. It has no realm if the name contains control characters.
fn challenge(service: &str) -> HeaderValue {
    let quoted = service.replace('\\', "\\\\").replace('"', "\\\"");
    let value = HeaderValue::try_from(format!("Bearer realm=\"{quoted}\""));
    value.unwrap_or(HeaderValue::from_static("Bearer"))
}

/// The documents, with their copies in the data directory.
fn document_engine(
    context: &StartContext,
    data_dir: &DataDir,
    store: &Store,
    backend: &BackendInUse,
) -> anyhow::Result<DocumentEngine> {
    let config = &context.config;
    let mirror = MirrorWorker {
        mirror: Mirror::new(data_dir.path(), config.cache_disk_bytes),
        backend: config.backend_identity(),
    };
    Ok(DocumentEngine::new(
        config.cache_bytes,
        config.retention.clone(),
        protected(context, backend),
        Some(mirror),
        shared_fetches(store, config)?,
        &context.clock,
        &context.instruments.documents,
    ))
}

/// The documents that gateways share, if they have a database and a backend in common.
fn shared_fetches(store: &Store, config: &Config) -> anyhow::Result<Option<SharedFetches>> {
    let UpstreamConfig::Http(http) = &config.upstream else {
        return Ok(None);
    };
    let node = getrandom::u64().context("the operating system returned no random bytes")?;
    let backend = config.backend_identity();
    let scope = format!("{backend} {DOCUMENT_FORMAT}");
    let claim_duration = config.protection.queue_timeout + http.total + CLAIM_MARGIN;
    let shared = store.shared_documents(scope, node);
    Ok(shared.map(|shared| SharedFetches {
        shared,
        backend,
        claim_duration,
    }))
}

/// Opens the backend.
async fn backend(context: &StartContext) -> anyhow::Result<BackendInUse> {
    let now = context.clock.now().wall;
    let scoring = match &context.config.upstream {
        UpstreamConfig::BuiltIn { archive } => open_scoring(archive.clone(), now).await?,
        UpstreamConfig::Simulated { seed } => Scoring::demo(*seed, now),
        UpstreamConfig::Http(http) => {
            let backend = NetworkBackend::open(http, &context.clock)?;
            return Ok(BackendInUse::Network(Arc::new(backend)));
        }
    };
    Ok(BackendInUse::BuiltIn(Arc::new(scoring)))
}

/// The backend with its queue and its circuit breakers.
fn protected(context: &StartContext, backend: &BackendInUse) -> ProtectedUpstream {
    let clock = &context.clock;
    let mut addresses: Vec<Arc<dyn Upstream>> = Vec::new();
    match backend {
        BackendInUse::BuiltIn(scoring) => {
            let scoring = EmbeddedUpstream::new(Arc::clone(scoring), clock.clone());
            addresses.push(Arc::new(scoring));
        }
        BackendInUse::Network(network) => {
            for address in &network.addresses {
                addresses.push(Arc::<HttpUpstream>::clone(address));
            }
        }
    }
    ProtectedUpstream::new(addresses, context.config.protection, clock.clone())
}

/// Opens the built-in backend with its archive, which is created if it is missing. Reads the runs of the last two months.
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
        // The models of the other backends are not known.
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
        registry_auth: config.registry_auth.clone(),
        links: config.links.clone(),
        terms: config.terms.clone(),
    })
}
