//! A gateway in front of a backend inside the test process, which can do what no backend on a socket can, such as
//! panic. Scripted responses are in `backend`.

use std::sync::Arc;

use bytes::Bytes;
use scoregate::cache::{DocumentContent, Validators};
use scoregate::clock::Clock;
use scoregate::config::{Config, read_text, resolve};
use scoregate::documents::DocumentEngine;
use scoregate::gateway::{AccessLog, AddressGuard, ConcurrencyLimit, Gateway, RequestRecorders};
use scoregate::server::{Server, bind};
use scoregate::telemetry::metrics::MetricsRegistry;
use scoregate::upstream::{ProtectedUpstream, Upstream, UpstreamResponse};
use tokio_util::sync::CancellationToken;

use crate::world::World;

/// A response with one model.
pub fn one_model() -> UpstreamResponse {
    let content = DocumentContent {
        data: Bytes::from_static(br#"[{"id":"atlas"}]"#),
        count: 1,
        generated_at: Clock::system().now().wall,
        stated_at: None,
        source: Validators::default(),
    };
    UpstreamResponse::Content { content, next_refresh: None }
}

/// A second gateway of the `World` with this backend and this access log, on another port.
pub async fn behind(
    world: &mut World,
    backend: Arc<dyn Upstream>,
    request_log: AccessLog,
) -> CancellationToken {
    let config: Config = resolve(&read_text("upstream = \"built-in\"").unwrap()).unwrap();
    let whole = world.running.gateway();
    let (clock, instruments) = (world.clock.clone(), Arc::clone(&whole.recorders.instruments));
    let protected = ProtectedUpstream::new(backend, config.protection, clock.clone());
    let engine = DocumentEngine::new(
        config.cache_bytes,
        config.retention.clone(),
        protected,
        None,
        None,
        &clock,
        &instruments,
    );
    let gateway = Arc::new(Gateway {
        clock: clock.clone(),
        form: whole.form.clone(),
        key_directory: Arc::clone(&whole.key_directory),
        leases: Arc::clone(&whole.leases),
        engine,
        pages: whole.pages.clone(),
        status: None,
        proxies: config.proxies.clone(),
        guard: Arc::new(AddressGuard::new(config.guard_per_minute)),
        capacity: Arc::new(ConcurrencyLimit::new(config.concurrency, Arc::clone(&instruments))),
        recorders: RequestRecorders {
            clock: whole.clock.clone(),
            instruments,
            request_log: Arc::new(request_log),
            usage: Arc::clone(&whole.recorders.usage),
            requests: Arc::clone(&whole.recorders.requests),
            tracer: None,
        },
        cors: config.cors,
        deprecation: config.deprecation,
        notice: whole.notice.clone(),
    });
    let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    world.running.public = listener.address().unwrap();
    world.running.gateway.store(gateway);
    let stop = CancellationToken::new();
    let server = Server::new(
        listener,
        Arc::clone(&world.running.gateway),
        config.server,
        clock,
        &MetricsRegistry::default(),
    );
    tokio::spawn(server.run(stop.clone()));
    stop
}
