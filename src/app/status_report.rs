//! Observes this gateway for the status page, at fixed intervals.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    config::Config,
    documents::Documents,
    pages::status::StatusSite,
    status::{Observation, StatusPublisher},
    upstream::BreakerState,
};
use scoregate_store::Store;

use super::{background::Background, server_parts::ServerParts, start_context::StartContext};

/// Interval between observations. The status page states it.
const OBSERVE_EVERY: Duration = Duration::from_secs(5);
/// Interval between observations until the first data arrives, which is soon after startup.
const FIRST_EVERY: Duration = Duration::from_secs(1);

/// The publisher of the status page, if it is served.
pub fn publisher(
    context: &StartContext,
    store: &Store,
    documents: &Documents,
) -> Option<Arc<StatusPublisher>> {
    let StartContext { config, clock, .. } = context;
    if !config.status_page {
        return None;
    }
    Some(Arc::new(StatusPublisher::new(
        store.clone(),
        site(config),
        documents.data_state(clock.now()),
        clock.clone(),
        Arc::clone(&context.instruments.store),
    )))
}

/// The service that the status page describes.
pub fn site(config: &Config) -> StatusSite {
    StatusSite {
        service: config.service.clone(),
        base_url: config.base_url.clone(),
        sign_up: config.site.is_some(),
    }
}

/// Starts the observations, the first one immediately.
pub fn start(background: &Background, server: &Arc<ServerParts>) {
    if let Some(publisher) = server.gateway.load().status.clone() {
        let stop = background.stop.clone();
        background.spawn(observe(Arc::clone(server), publisher, stop));
    }
}

async fn observe(
    server: Arc<ServerParts>,
    publisher: Arc<StatusPublisher>,
    stop: CancellationToken,
) {
    while !stop.is_cancelled() {
        let began = server.clock.mono();
        let seen = observation(&server);
        let has_data = seen.data.newest.is_some();
        publisher.observe(seen).await;
        let wait = if has_data { OBSERVE_EVERY } else { FIRST_EVERY };
        let next = server.clock.sleep_until(began.plus(wait));
        stop.run_until_cancelled(next).await;
    }
}

fn observation(server: &ServerParts) -> Observation {
    let breaker = server.engine.fetcher.status().condition.breaker;
    let facts = server.leases.serving_facts();
    Observation {
        is_ready: server.readiness.check_from_within(&facts).is_ok(),
        backend_fails: breaker != BreakerState::Closed,
        data: server.engine.documents.data_state(server.clock.now()),
    }
}
